package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leani-go/leani/chain"
)

// FuzzRequest sends arbitrary bodies through everything behind the transport, on a store with
// a hole and with small limits. Whatever comes in: the answer is empty or JSON, every object
// in it is a response with either a result or an error and an id that the request had, it is no
// larger than the limit and the refusals allow, no call fails inside the node, and no view and
// no memory is left over.
func FuzzRequest(f *testing.F) {
	paths, err := filepath.Glob("testdata/dialogues/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if body, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), ">> "); ok {
				f.Add([]byte(body))
			}
		}
	}
	for _, text := range textSeeds {
		f.Add([]byte(text))
	}

	store := newFakeStore(f, 12)
	store.coverage = []chain.Range{{From: 0, To: 5}, {From: 6, To: 12}}
	store.finalized = &store.blocks[9].BlockRef
	store.onCost = alternateCost()
	o := Options{Store: store, Network: testNetwork(), Limits: Limits{
		MaxBatchRequests: 6, MaxResponseBytes: 4 << 10, MaxLogResults: 9, MaxLogAddresses: 3, MaxLogTopicAlternatives: 3,
	}}.withDefaults()
	s := newService(o)
	f.Cleanup(s.close)
	x := new(exchange)

	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > maxRequestBytes {
			return
		}
		x.open(s, context.Background())
		x.body = append(x.body, body...)
		x.run()
		checkResponse(t, body, x.out.buf, o.Limits.MaxResponseBytes)
		x.release()
		if n := s.failures.Swap(0); n != 0 {
			t.Errorf("%d calls failed inside the node", n)
		}
		if n := store.open.Load(); n != 0 {
			t.Errorf("%d views are open", n)
		}
		if b := s.memory.budget; b.mu.free != b.size {
			t.Errorf("%d of %d bytes of memory are free", b.mu.free, b.size)
		}
	})
}

// checkResponse checks that out is a proper answer to the body.
func checkResponse(t *testing.T, body, out []byte, limit int) {
	if len(out) == 0 {
		return
	}
	// Refusals may pass the limit by their own size; ids come on top, and were in the body.
	const refusal = 200
	if most := limit + len(body) + refusal*6; len(out) > most {
		t.Errorf("response of %d bytes, want at most %d", len(out), most)
	}
	var responses []json.RawMessage
	if out[0] == '[' {
		if err := json.Unmarshal(out, &responses); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if len(responses) == 0 {
			t.Errorf("empty array")
		}
	} else {
		responses = append(responses, out)
	}
	for _, text := range responses {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(text, &members); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		_, hasResult := members["result"]
		_, hasError := members["error"]
		if len(members) != 3 || string(members["jsonrpc"]) != `"2.0"` || hasResult == hasError {
			t.Errorf("no response: %s", text)
		}
		if id := members["id"]; string(id) != "null" && !bytes.Contains(body, id) {
			t.Errorf("id %s is not that of a call", id)
		}
		if hasError {
			var e struct {
				Code    *int
				Message *string
			}
			if err := json.Unmarshal(members["error"], &e); err != nil || e.Code == nil || e.Message == nil {
				t.Errorf("no error object: %s", text)
			}
		}
	}
}
