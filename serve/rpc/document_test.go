package rpc

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/leani-go/leani/internal/shareddata"
)

// The reference in docs/rpc.md names every method that is served or listed, every reason and
// every code, and gives the limits their real defaults.
func TestDocumentIsComplete(t *testing.T) {
	root := shareddata.Root(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "rpc.md"))
	if err != nil {
		t.Fatal(err)
	}
	document := string(text)
	mention := func(what, word string) {
		if !strings.Contains(document, word) {
			t.Errorf("docs/rpc.md lacks the %s %s", what, word)
		}
	}
	for _, table := range []map[string]method{methodTable(), socketMethodTable()} {
		for name := range table {
			mention("method", "`"+name+"`")
		}
	}
	for name, value := range stringConstants(t, filepath.Join(root, "api", "jsonrpc", "reasons.go")) {
		mention("reason "+name, "`"+value+"`")
	}
	for _, code := range []string{"-32700", "-32600", "-32601", "-32602", "-32603", "-32000", "-32004", "-32005"} {
		mention("code", "| "+code+" |")
	}
	l := Limits{}.withDefaults()
	for _, row := range []string{
		"| body of a request | " + mebibytes(maxRequestBytes),
		"| calls of a batch | " + strconv.Itoa(l.MaxBatchRequests),
		"| response, single or batch | " + mebibytes(l.MaxResponseBytes),
		"| logs of an answer | " + strconv.Itoa(l.MaxLogResults),
		"| addresses of a filter | " + strconv.Itoa(l.MaxLogAddresses),
		"| alternatives at a topic position | " + strconv.Itoa(l.MaxLogTopicAlternatives),
		"| nesting of JSON | " + strconv.Itoa(maxNesting),
		"| time for one HTTP request, waiting included | " + strconv.Itoa(int(l.RequestTime.Seconds())) + " s",
		"| time to send a request | " + strconv.Itoa(int(readTimeout.Seconds())) + " s",
		"| time to read a response up to " + mebibytes(largeResponse) + " | " + strconv.Itoa(int(writeTimeout.Seconds())) + " s",
		"| time to read each " + strconv.Itoa(writeChunk>>10) + " KiB of a larger one | " + strconv.Itoa(int(stallTimeout.Seconds())) + " s",
		"| the same while others wait for the memory of large responses | " + strconv.Itoa(int(scarceTimeout.Seconds())) + " s",
		"| connection without request | " + strconv.Itoa(int(idleTimeout.Seconds())) + " s",
		"| open connections | " + strconv.Itoa(l.MaxConnections),
		"| memory of large responses, all clients | " + mebibytes(l.InFlightResponseBytes),
		"| memory of large bodies, all clients | " + mebibytes(l.InFlightRequestBytes),
		"| heavy log queries that wait | " + strconv.Itoa(l.LaneQueue),
		"| WebSockets | " + strconv.Itoa(l.MaxWebSocketConnections),
		"| message on a WebSocket | " + mebibytes(maxRequestBytes),
		"| subscriptions of a WebSocket | " + strconv.Itoa(l.MaxSubscriptions),
		"| addresses and topics of its subscriptions | " + mebibytes(maxFilterBytes),
		"| addresses and topics of all subscriptions | " + mebibytes(l.SubscriptionBytes),
		"| notifications of one event on a WebSocket | " + mebibytes(l.MaxEventBytes),
		"| its unsent notifications | " + mebibytes(l.MaxEventBytes),
		"| more than a quarter of that unsent | " + strconv.Itoa(int(defaultSocketTimes().congestion.Seconds())) + " s",
		"| unsent notifications of all WebSockets | " + mebibytes(l.MaxOutboundBytes),
		"| installed filters | " + strconv.Itoa(l.MaxFilters),
		"| memory of installed filters | " + mebibytes(l.FilterBytes),
		"| time between polls of a filter | " + strconv.Itoa(int(filterExpiry.Seconds())) + " s",
		"| blocks of a fee history | " + strconv.Itoa(maxFeeBlocks),
		"| percentiles of a fee history | " + strconv.Itoa(maxFeePercentiles),
		"| headers above " + strconv.Itoa(maxHeaderBytes>>10) + " KiB",
	} {
		mention("row", row+" |")
	}
}

func mebibytes(n int) string { return strconv.Itoa(n>>20) + " MiB" }

// stringConstants reads the string constants that a Go file declares.
func stringConstants(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants := make(map[string]string)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, value := range spec.Values {
			if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				text, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				constants[spec.Names[i].Name] = text
			}
		}
		return true
	})
	if len(constants) == 0 {
		t.Fatalf("%s declares no constants", path)
	}
	return constants
}
