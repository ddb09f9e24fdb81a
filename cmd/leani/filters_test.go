package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/progress"
)

// TestFiltersFollow polls filters of a node that follows a chain: they tell the logs and hashes of blocks that were
// applied, the same logs as removed when the blocks are undone, also those from before the filter, and the logs
// anew when they come back. In the end the headers say what is recent.
//
// RPC-044: finalized is what the live source proved final, and nothing before that. RPC-063: the head is the newest
// block, although nobody attested it.
func TestFiltersFollow(t *testing.T) {
	t.Parallel()
	c := chainlab(t)
	l := newLab(t, c)
	const border, head = 560, 600
	apply := fmt.Sprintf(`{"apply": {"era": %q, "fromBlock": %d, "toBlock": %d}}`, c.files[0], border-3, head-1)
	l.live(apply, fmt.Sprintf(`{"finalized": {"number": %d}}`, border+5))
	n := l.open(false)
	if err := n.fill(t.Context(), chain.Range{From: 0, To: border}, func(progress.Count) {}); err != nil {
		t.Fatal(err)
	}
	n.settings.RPC.MaxLogResults = 50_000
	asker, stop := serveWithin(t, n)
	defer stop()
	ask := func(method, params string) string {
		t.Helper()
		r, err := asker.call(method, params)
		if err != nil || r.Error != nil {
			t.Fatalf("%s %s: %v, %+v", method, params, err, r.Error)
		}
		return string(r.Result)
	}
	follow := func(more ...string) {
		t.Helper()
		path := filepath.Join(l.dir, "events.jsonl")
		writeFile(t, path, []byte(strings.Join(append(strings.Split(string(readFile(t, path)), "\n"), more...), "\n")))
		if err := n.follow(t.Context(), func() {}); err != nil {
			t.Fatal(err)
		}
	}
	logsOf := func(from, to int) string {
		t.Helper()
		return ask("eth_getLogs", fmt.Sprintf(`[{"fromBlock":"%#x","toBlock":"%#x"}]`, from, to-1))
	}
	if r, err := asker.call("eth_getBlockByNumber", `["finalized",false]`); err != nil || r.Error == nil || r.Error.Code != -32004 {
		t.Errorf("finalized before any: %v, %+v", err, r)
	}
	early, blocks := ask("eth_newFilter", "[{}]"), ask("eth_newBlockFilter", "[]")
	follow()
	if got := ask("eth_getBlockByNumber", `["finalized",false]`); !strings.Contains(got, fmt.Sprintf(`"number":"%#x"`, border+5)) {
		t.Errorf("finalized: %.300s", got)
	}
	if got := ask("eth_blockNumber", "[]"); got != fmt.Sprintf(`"%#x"`, head-1) {
		t.Errorf("head: %s", got)
	}
	applied := ask("eth_getFilterChanges", "["+early+"]")
	if want := logsOf(border, head); applied != want || len(want) < 1000 {
		t.Fatalf("applied: got %.300s\nwant %.300s", applied, want)
	}
	if got := ask("eth_getFilterChanges", "["+blocks+"]"); strings.Count(got, "0x") != head-border {
		t.Errorf("hashes: %.300s", got)
	}
	late := ask("eth_newFilter", "[{}]")

	const undone = 12
	want := ""
	for number := head - 1; number >= head-undone; number-- {
		if logs := logsOf(number, number+1); logs != "[]" {
			want += "," + strings.Trim(logs, "[]")
		}
	}
	want = "[" + strings.ReplaceAll(strings.TrimPrefix(want, ","), `"removed":false`, `"removed":true`) + "]"
	follow(fmt.Sprintf(`{"undo": {"number": %d}}`, head-undone-1)) // the head from then on
	for name, id := range map[string]string{"early": early, "late": late} {
		if got := ask("eth_getFilterChanges", "["+id+"]"); got != want {
			t.Errorf("%s: undone: got %.300s\nwant %.300s", name, got, want)
		}
	}
	if got := ask("eth_getFilterChanges", "["+blocks+"]"); got != "[]" {
		t.Errorf("hashes of undone blocks: %.300s", got)
	}
	follow(fmt.Sprintf(`{"apply": {"era": %q, "fromBlock": %d, "toBlock": %d}}`, c.files[0], head-undone, head-1))
	for _, id := range []string{early, late} {
		if got, want := ask("eth_getFilterChanges", "["+id+"]"), logsOf(head-undone, head); got != want {
			t.Errorf("again: got %.300s\nwant %.300s", got, want)
		}
	}
	if got := ask("eth_getFilterChanges", "["+blocks+"]"); strings.Count(got, "0x") != undone {
		t.Errorf("hashes again: %.300s", got)
	}
	if _, err := n.history.SealFinal(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{early, late, blocks} {
		if got := ask("eth_getFilterChanges", "["+id+"]"); got != "[]" {
			t.Errorf("sealing is no change: %.300s", got)
		}
	}
	for number, want := range map[int]string{
		border:     "source=store, path=materialized, finality=finalized",
		border + 6: "source=store, path=recent, finality=unattested",
	} {
		response, err := asker.http.Post(asker.url, "application/json", strings.NewReader(
			fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["%#x",false]}`, number)))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := response.Header.Get("leani-answer"); got != want {
			t.Errorf("block %d: got %q, want %q", number, got, want)
		}
	}
}
