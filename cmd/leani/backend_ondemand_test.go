package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leani-go/leani/config"
)

// What is wrong with a source on this machine is known without a request, and says what to do; mirrors are not asked.
func TestOnDemandLocalProblem(t *testing.T) {
	dir := t.TempDir()
	bare := filepath.Join(dir, "bare")
	if err := os.Mkdir(bare, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		entry config.HistorySource
		want  string // empty: no problem
	}{
		{config.HistorySource{Kind: config.SourceEra, Folder: filepath.Join(dir, "none")}, "none does not exist: check the endpoint of sources.history"},
		{config.HistorySource{Kind: config.SourceEra, Folder: bare}, "has no checksums_sha256.txt: take the one"},
		{config.HistorySource{Kind: config.SourceEra, Folder: bundledFiles(t)}, ""},
		{config.HistorySource{Kind: config.SourceEra, Endpoint: "http://127.0.0.1:1/"}, ""},
		{config.HistorySource{Kind: config.SourceArchive, Manifest: filepath.Join(dir, "manifest.json")}, "no such file or directory: check the manifest of sources.history"},
	} {
		err := localProblem(&config.Config{}, &c.entry)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.entry, err, c.want)
		}
	}
}

// Room is made for all threads of low priority that history on demand may keep busy: those of the requests, that of a copy and that
// which looks for damage.
func TestOnDemandThreads(t *testing.T) {
	var none *fetchedHistory
	if got := none.threads(); got != 0 {
		t.Errorf("without history on demand: got %d", got)
	}
	if got := (&fetchedHistory{requests: 2}).threads(); got != 4 {
		t.Errorf("two requests: got %d, want 4", got)
	}
}

// A node whose sources are not there starts, and its log says what to do.
func TestOnDemandMissingSources(t *testing.T) {
	t.Parallel()
	l := newLab(t, bundled(t))
	l.must(fillArgs(bundledSpans[0])...)
	l.sourcesOf(entryOf("gone", "1", "file:"+l.dir+"/gone/"), entryOf("there", "2", "file:"+l.era()+"/"))
	l.onDemand()
	s := l.serve()
	l.stopped(s)
	const message = `"level":"WARN","msg":"history source is not there now; requests try it again","component":"on-demand","source":"gone","cause":"the era folder `
	if log := s.log.String(); strings.Count(log, "history source is not there now") != 1 || !strings.Contains(log, message) || !strings.Contains(log, "check the endpoint of sources.history") {
		t.Errorf("logged %s", log)
	}
}
