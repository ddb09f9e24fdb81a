package chain

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"pgregory.net/rapid"

	"github.com/leani-go/leani/internal/shareddata"
)

// The genesis hash of known networks comes out of their genesis text, plain and gzipped.
func TestLoadGenesisOfKnownNetworks(t *testing.T) {
	for _, c := range []struct {
		name    string
		genesis *core.Genesis
		want    common.Hash
		chainID uint64
	}{
		{"mainnet", core.DefaultGenesisBlock(), params.MainnetGenesisHash, 1},
		{"sepolia", core.DefaultSepoliaGenesisBlock(), params.SepoliaGenesisHash, 11_155_111},
		{"hoodi", core.DefaultHoodiGenesisBlock(), params.HoodiGenesisHash, 560_048},
	} {
		text, err := json.Marshal(c.genesis)
		if err != nil {
			t.Fatal(err)
		}
		var zipped bytes.Buffer
		w := gzip.NewWriter(&zipped)
		w.Write(text)
		w.Close()
		for _, form := range [][]byte{text, zipped.Bytes()} {
			n, err := LoadGenesis(c.name, bytes.NewReader(form))
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			g, ok := n.Genesis()
			if !ok || g.Hash != c.want || g.Timestamp != c.genesis.Timestamp {
				t.Errorf("%s: got genesis %v, want %s", c.name, g, c.want)
			}
			if n.ChainID() != c.chainID || len(n.Forks()) == 0 {
				t.Errorf("%s: got chain id %d and %d forks", c.name, n.ChainID(), len(n.Forks()))
			}
		}
	}
}

// The hash of block 0 of the conformance chain and of a chain with a large allocation.
func TestLoadGenesisFile(t *testing.T) {
	for _, c := range []struct {
		path  []string
		forks []string
	}{
		{[]string{"execution-apis", "tests", "genesis.json"}, []string{"cancun", "prague", "osaka", "bpo1", "bpo2"}},
		{[]string{"chainlab-800", "genesis.json.gz"}, []string{"osaka"}},
	} {
		file, err := os.Open(shareddata.Path(t, c.path...))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		n, err := LoadGenesis("test", file)
		if err != nil {
			t.Errorf("%v: %v", c.path, err)
			continue
		}
		var names []string
		for _, f := range n.Forks() {
			names = append(names, f.Name)
		}
		if strings.Join(names, " ") != strings.Join(c.forks, " ") {
			t.Errorf("%v: got forks %v, want %v", c.path, names, c.forks)
		}
		var genesis core.Genesis
		if err := json.Unmarshal(readGenesisText(t, c.path), &genesis); err != nil {
			t.Fatal(err)
		}
		if g, _ := n.Genesis(); g.Hash != genesis.ToBlock().Hash() {
			t.Errorf("%v: got hash %s, want %s", c.path, g.Hash, genesis.ToBlock().Hash())
		}
	}
}

func readGenesisText(t *testing.T, path []string) []byte {
	t.Helper()
	content, err := os.ReadFile(shareddata.Path(t, path...))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(path[len(path)-1], ".gz") {
		return content
	}
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// Random small genesis blocks hash as go-ethereum hashes them, whatever forks are active in
// them and however their keys share prefixes.
func TestGenesisHashEqualsGeth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := drawConfig(t)
		genesis := &core.Genesis{
			Config:     config,
			Nonce:      rapid.Uint64().Draw(t, "nonce"),
			Timestamp:  rapid.Uint64Range(0, 120).Draw(t, "timestamp"),
			ExtraData:  rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "extra"),
			GasLimit:   rapid.Uint64Range(0, 3).Draw(t, "gas limit"),
			Difficulty: common.Big32,
			Alloc:      types.GenesisAlloc{},
		}
		if rapid.Bool().Draw(t, "explicit blob gas") {
			v := rapid.Uint64().Draw(t, "excess")
			genesis.ExcessBlobGas = &v
		}
		if rapid.Bool().Draw(t, "explicit base fee") {
			genesis.BaseFee = common.Big256
		}
		for range rapid.IntRange(0, 40).Draw(t, "accounts") {
			account := types.Account{
				Balance: common.Big1,
				Nonce:   rapid.Uint64Range(0, 300).Draw(t, "account nonce"),
				Code:    rapid.SliceOfN(rapid.Byte(), 0, 70).Draw(t, "code"),
				Storage: map[common.Hash]common.Hash{},
			}
			for range rapid.IntRange(0, 3).Draw(t, "slots") {
				account.Storage[common.BytesToHash(rapid.SliceOfN(rapid.Byte(), 1, 3).Draw(t, "slot"))] =
					common.BytesToHash(rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "word"))
			}
			genesis.Alloc[common.BytesToAddress(rapid.SliceOfN(rapid.Byte(), 1, 3).Draw(t, "address"))] = account
		}
		text, err := json.Marshal(genesis)
		if err != nil {
			t.Fatal(err)
		}
		n, err := LoadGenesis("random", bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if g, _ := n.Genesis(); g.Hash != genesis.ToBlock().Hash() {
			t.Fatalf("got hash %s, want %s", g.Hash, genesis.ToBlock().Hash())
		}
	})
}

// Text that is no usable genesis is refused, never followed by a panic.
func TestLoadGenesisRefuses(t *testing.T) {
	valid, err := json.Marshal(core.DefaultHoodiGenesisBlock())
	if err != nil {
		t.Fatal(err)
	}
	edit := func(old, new string) string {
		s := strings.Replace(string(valid), old, new, 1)
		if s == string(valid) {
			t.Fatalf("%s does not occur in the genesis", old)
		}
		return s
	}
	for name, text := range map[string]string{
		"empty":               "",
		"no object":           "[]",
		"cut":                 string(valid[:len(valid)/2]),
		"bad gzip":            "\x1f\x8bgarbage",
		"no config":           edit(`"config":{`, `"other":{`),
		"no chain id":         edit(`"chainId":560048`, `"x":1`),
		"negative chain id":   edit(`"chainId":560048`, `"chainId":-1`),
		"wide chain id":       edit(`"chainId":560048`, `"chainId":18446744073709551616`),
		"negative difficulty": edit(`"difficulty":"0x1"`, `"difficulty":"-1"`),
		"forks out of order":  edit(`"cancunTime":0`, `"cancunTime":99999999999`),
		"wide fork block":     edit(`"londonBlock":0`, `"londonBlock":18446744073709551616`),
		"no blob parameters":  edit(`"blobSchedule":`, `"other":`),
		"zero fraction":       edit(`"baseFeeUpdateFraction":3338477`, `"baseFeeUpdateFraction":0`),
		"not block 0":         edit(`"number":"0x0"`, `"number":"0x1"`),
		"negative balance":    edit(`"balance":"0x1"`, `"balance":"-1"`),
		"binary tree":         edit(`"ethash":{}`, `"enableUBTAtGenesis":true`),
	} {
		if n, err := LoadGenesis(name, strings.NewReader(text)); err == nil {
			t.Errorf("%s: got network %v, want an error", name, n)
		}
	}
}

func FuzzLoadGenesis(f *testing.F) {
	text, err := json.Marshal(core.DefaultHoodiGenesisBlock())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"config":{"chainId":1},"gasLimit":"1","difficulty":"2","alloc":{}}`))
	f.Add([]byte("\x1f\x8b\x08\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := LoadGenesis("fuzz", bytes.NewReader(text))
		if (n == nil) == (err == nil) {
			t.Errorf("got network %v and error %v", n, err)
		}
	})
}
