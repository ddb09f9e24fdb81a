package clients

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leani-go/leani/clients/harness"
)

// pieces are the blocks of JavaScript in docs/clients.md by name.
func pieces(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "clients.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, m := range regexp.MustCompile("(?ms)^```js ([a-z0-9-]+)\n(.*?)^```$").FindAllSubmatch(text, -1) {
		found[string(m[1])] = string(m[2])
	}
	if all := strings.Count(string(text), "\n```js"); len(found) != all {
		t.Fatalf("%d of %d pieces have a name of their own", len(found), all)
	}
	return found
}

// runPiece runs a piece against a node, about a token of its chain. What it prints comes as messages "line".
func runPiece(t *testing.T, name, code string, n *harness.Node, token fmt.Stringer) *harness.Session {
	t.Helper()
	harness.NodeModules(t, ".")
	for from, to := range map[string]string{
		"http://127.0.0.1:8545": n.HTTP, "ws://127.0.0.1:8546": n.WebSocket, "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48": token.String(),
	} {
		code = strings.ReplaceAll(code, from, to)
	}
	// Imports come first wherever they stand.
	code = "console.log = (...words) => process.stdout.write(JSON.stringify({ line: words.join(' ') }) + '\\n')\n" + code
	return harness.StartSession(t, name, exec.Command("node", "--input-type=module", "--eval", code))
}

// TestDocuments runs the pieces of JavaScript in docs/clients.md.
func TestDocuments(t *testing.T) {
	c := harness.Chainlab(t)
	token := busiest(c.Span(older, newer))
	for name, code := range pieces(t) {
		client, does, _ := strings.Cut(name, "-")
		t.Run(name, func(t *testing.T) {
			n := harness.Start(c, harness.Options{First: recent, Filled: filled, Settings: map[string]string{"max_log_results": "1000"}})
			s := runPiece(t, name, code, n, token)
			switch does {
			case "logs":
				blocks := uint64(100)
				if client == "web3" { // it shows no more than it has to
					blocks = 10
				}
				for _, want := range wantTransfers(c.Span(filled-blocks, filled-1), token) {
					want := want.(object)
					var line string
					if s.Expect("line", &line); line != fmt.Sprint(want["blockNumber"], " ", want["logIndex"], " ", want["value"]) {
						t.Fatalf("line %q, want %v", line, want)
					}
				}
				s.End()
			case "follow":
				followPiece(t, c, n, s, token)
			default:
				t.Errorf("no test of %s", name)
			}
		})
	}
}

// followPiece lets a piece follow two blocks, of which another replaces the second.
func followPiece(t *testing.T, c *harness.Chain, n *harness.Node, s *harness.Session, token fmt.Stringer) {
	t.Helper()
	lines := func(sign string, b *harness.Block) map[string]bool {
		want := make(map[string]bool)
		for _, l := range b.Logs() {
			if l.Address.String() == token.String() && l.Topics[0] == harness.TransferTopic {
				want[fmt.Sprintf("%s %s %d", sign, b.Hash(), l.Index)] = true
			}
		}
		if len(want) == 0 {
			t.Fatalf("no transfers in block %d", b.NumberU64())
		}
		return want
	}
	expect := func(want map[string]bool) {
		t.Helper()
		for len(want) > 0 {
			var line string
			if s.Expect("line", &line); !want[line] {
				t.Fatalf("line %q", line)
			}
			delete(want, line)
		}
	}
	// Nobody tells when it has begun to follow: blocks come until it says something.
	last := c.Block(filled - 1)
	for said := false; !said; {
		last = c.Block(last.NumberU64() + 1)
		n.Apply(last)
		said = s.Waits(500 * time.Millisecond)
	}
	expect(lines("+", last))
	other := c.Fork(c.Block(last.NumberU64()-1), last, changed(busiest([]*harness.Block{last}), last.NumberU64()))
	n.Apply(other)
	want := lines("-", last)
	for line := range lines("+", other) {
		want[line] = true
	}
	expect(want)
}
