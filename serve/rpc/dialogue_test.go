package rpc

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/leani-go/leani/chain"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the answers in testdata/dialogues")

// The files in testdata/dialogues are conversations with a server: what was said (>>) and what
// came back (<<), byte for byte. Lines in front set up the store and the limits:
//
//	store N          a chain of N blocks, all retained
//	retain A B …     only the blocks from A to B, both included, and further pairs
//	finalized N      block N is finalized
//	limit NAME N     a limit of Limits by its field name
//
// The answer of a request starts with its HTTP status unless that is 200. To see what a change
// does to the answers run the test with -rewrite and read the difference.
func TestDialogues(t *testing.T) {
	paths, err := filepath.Glob("testdata/dialogues/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no dialogues: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) { runDialogue(t, path) })
	}
}

func runDialogue(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var (
		store  *fakeStore
		limits Limits
		server *testServer
		out    strings.Builder
		asked  string
	)
	for number, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		where := fmt.Sprintf("%s:%d", path, number+1)
		if strings.HasPrefix(line, "<<") {
			if asked == "" {
				t.Fatalf("%s: answer without request", where)
			}
			got := ask(server, asked)
			if got != line && !*rewrite {
				t.Errorf("%s: %s\ngot  %s\nwant %s", where, asked, got, line)
			}
			asked = ""
			out.WriteString(got + "\n")
			continue
		}
		if asked != "" {
			if !*rewrite {
				t.Fatalf("%s: the request before has no answer", where)
			}
			out.WriteString(ask(server, asked) + "\n")
			asked = ""
		}
		out.WriteString(line + "\n")
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, ">> "):
			if server == nil {
				server = startServer(t, store, func(o *Options) { o.Limits = limits })
			}
			asked = strings.TrimPrefix(line, ">> ")
		case words[0] == "store":
			store = newFakeStore(t, atoi(t, words[1]))
		case words[0] == "retain":
			store.coverage = nil
			for i := 1; i < len(words); i += 2 {
				r := chain.Range{From: uint64(atoi(t, words[i])), To: uint64(atoi(t, words[i+1])) + 1}
				store.coverage = append(store.coverage, r)
			}
		case words[0] == "finalized":
			store.finalized = &store.blocks[uint64(atoi(t, words[1]))].BlockRef
		case words[0] == "limit":
			setLimit(t, &limits, words[1], atoi(t, words[2]))
		default:
			t.Fatalf("%s: unknown line %q", where, line)
		}
	}
	if asked != "" {
		if !*rewrite {
			t.Fatalf("%s: the last request has no answer", path)
		}
		out.WriteString(ask(server, asked) + "\n")
	}
	if *rewrite {
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// ask sends a request and gives the answer as a line of a dialogue. Whatever the dialogue says,
// an answer with a body is valid JSON.
func ask(s *testServer, body string) string {
	a := s.do(http.MethodPost, body)
	line := "<<"
	if a.status != http.StatusOK {
		line += " " + strconv.Itoa(a.status)
	}
	if a.body != "" {
		if !json.Valid([]byte(a.body)) {
			s.t.Errorf("invalid JSON for %s: %s", body, a.body)
		}
		line += " " + a.body
	}
	return line
}

func setLimit(t *testing.T, l *Limits, name string, value int) {
	t.Helper()
	switch name {
	case "MaxBatchRequests":
		l.MaxBatchRequests = value
	case "MaxResponseBytes":
		l.MaxResponseBytes = value
	case "MaxLogResults":
		l.MaxLogResults = value
	case "MaxLogAddresses":
		l.MaxLogAddresses = value
	case "MaxLogTopicAlternatives":
		l.MaxLogTopicAlternatives = value
	default:
		t.Fatalf("unknown limit %s", name)
	}
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
