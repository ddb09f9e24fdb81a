package ethjson

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/chainfixture"
	"github.com/leani-go/leani/internal/shareddata"
)

// sameJSON fails the test where two texts are not the same JSON value, whatever the order of
// members.
func sameJSON(t testing.TB, subject string, got, want []byte) {
	t.Helper()
	g, w := parseJSON(t, subject, got), parseJSON(t, subject, want)
	if !reflect.DeepEqual(g, w) {
		t.Errorf("%s (-want +got):\n%s", subject, cmp.Diff(w, g))
	}
}

func parseJSON(t testing.TB, subject string, text []byte) (v any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%s: %v in %.200s", subject, err, text)
	}
	if decoder.More() {
		t.Fatalf("%s: text after the value", subject)
	}
	return v
}

// without drops members from an object.
func without(t testing.TB, object []byte, members ...string) []byte {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(object, &m); err != nil {
		t.Fatal(err)
	}
	for _, name := range members {
		delete(m, name)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// answered is a fixture with go-ethereum's answers and the network to encode it for.
type answered struct {
	network *chain.Network
	blocks  []*chainfixture.Block
}

func conformanceChain(t testing.TB) answered {
	t.Helper()
	return answered{conformanceNetwork(t), chainfixture.ConformanceChain(t)}
}

func realBlocks(t testing.TB) answered {
	t.Helper()
	real := answered{network: chain.Mainnet()}
	for _, b := range chainfixture.AnsweredBlocks(t) {
		// What an incomplete source lacks is made up here, and left out of comparisons.
		if !b.Complete && b.Ommers == nil {
			b.Ommers = []byte{0xc0}
		}
		if !b.Complete && b.Withdrawals == nil {
			b.Withdrawals = []byte{0xc0}
		}
		real.blocks = append(real.blocks, b)
	}
	return real
}

func conformanceNetwork(t testing.TB) *chain.Network {
	t.Helper()
	file, err := os.Open(shareddata.Path(t, "execution-apis", "tests", "genesis.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	network, err := chain.LoadGenesis("conformance", file)
	if err != nil {
		t.Fatal(err)
	}
	return network
}
