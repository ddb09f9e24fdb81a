package main

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
)

// mirrorOf serves the files of a lab's era folder over HTTP. Of the files in damaged a byte differs.
func mirrorOf(t *testing.T, l *lab, damaged ...string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Base(r.URL.Path)
		for _, d := range damaged {
			if strings.Contains(name, d) {
				content := readFile(t, filepath.Join(l.era(), name))
				content[len(content)/2] ^= 1
				http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
				return
			}
		}
		http.ServeFile(w, r, filepath.Join(l.era(), name))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/path/secret/"
}

// sourcesOf replaces the history sources of a lab.
func (l *lab) sourcesOf(entries ...string) {
	l.tb.Helper()
	text := string(readFile(l.tb, l.config))
	begin, end := strings.Index(text, "[[sources.history]]"), strings.Index(text, "# Nothing follows the head")
	writeFile(l.tb, l.config, []byte(text[:begin]+strings.Join(entries, "")+text[end:]))
}

// entryOf is a history source of a settings file.
func entryOf(id, priority, endpoint string) string {
	return "[[sources.history]]\nid = \"" + id + "\"\nkind = \"era_e\"\npriority = " + priority +
		"\ntrust = \"verified_material\"\nendpoint = \"" + endpoint + "\"\n\n"
}

// TestMirrors: a store filled from a mirror that serves damaged bytes and another source beside it is
// the store that the undamaged files give, and the failure is named everywhere.
//
// SRC-002, SRC-007, SRC-030
func TestMirrors(t *testing.T) {
	plain := newLab(t, bundled(t))
	both := newLab(t, bundled(t))
	bad := mirrorOf(t, plain, "19426586")
	both.sourcesOf(entryOf("folder", "20", "file:"+both.era()+"/"), entryOf("mirror", "10", bad))
	if out := both.must("doctor"); strings.Contains(out, "secret") || strings.Index(out, "mirror: era_e, priority 10, http://127.0.0.1:") > strings.Index(out, "folder: era_e") {
		t.Errorf("doctor prints %s", out)
	}
	var sources sourcesReport
	parseJSON(t, both.must("history", "sources", "--json"), &sources)
	if len(sources.Sources) != 2 || sources.Sources[0].ID != "mirror" || len(sources.Files) != 6 || sources.Files[0].Bytes == 0 || len(sources.Coverage) != 3 {
		t.Errorf("sources: %+v", sources)
	}

	for i, span := range bundledSpans {
		plain.must(fillArgs(span)...)
		switch out := both.run(append(fillArgs(span), "--json")...); {
		case out.code != exitOK:
			t.Fatalf("fill: code %d, %s%s", out.code, out.out, out.err)
		case strings.Contains(out.out+out.err, "secret"):
			t.Errorf("fill prints %s%s", out.out, out.err)
		case (i == 1) != strings.Contains(out.out, `{"event":"sourceFailure","source":"mirror","file":"http://127.0.0.1:`):
			t.Errorf("fill prints %s", out.out)
		case (i == 1) != strings.Contains(out.err, "history source failed"):
			t.Errorf("fill logs %s", out.err)
		}
	}
	both.clean()
	if got, want := both.verify().Digest, plain.verify().Digest; got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	if names := readDir(t, filepath.Join(both.data(), "temporary")); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}

	alone := newLab(t, bundled(t))
	alone.sourcesOf(entryOf("mirror", "10", bad))
	if message := alone.fails(fillArgs(bundledSpans[1])...); !strings.Contains(message, "sha256") || strings.Contains(message, "secret") {
		t.Errorf("alone: %s", message)
	}
	if message := alone.fails(fillArgs(chain.Range{From: 5, To: 6})...); !strings.Contains(message, "no file holds block 5; the folder holds blocks 17034869 to 17034870, ") {
		t.Errorf("hole: %s", message)
	}
	alone.must(fillArgs(bundledSpans[0])...)

	down := newLab(t, bundled(t))
	down.sourcesOf(entryOf("archive", "1", "file:"+down.dir+"/nothing/"), entryOf("folder", "2", "file:"+down.era()+"/"))
	if out := down.must(fillArgs(bundledSpans[2])...); !strings.Contains(out, "Sources failed, and others had the blocks (1 failure):\n  archive, from block 22431083 on: the era folder ") {
		t.Errorf("with a folder that is not there: %s", out)
	}
	if out := down.must("history", "sources"); !strings.Contains(out, "not usable: the era folder") || !strings.Contains(out, "3 files: ") {
		t.Errorf("sources: %s", out)
	}
}

// A list does not wait long for a mirror that does not answer, and says which one it is.
func TestSourcesOfSilentMirror(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "not now", http.StatusServiceUnavailable)
	}))
	t.Cleanup(s.Close)
	l := newLab(t, bundled(t))
	mirror := entryOf("faraway", "1", s.URL+"/")
	l.sourcesOf(mirror)
	if message := l.fails("history", "sources"); !strings.Contains(message, "list history source faraway: ") {
		t.Errorf("alone: %s", message)
	}
	if n := asked.Swap(0); n != int64(listingAttempts) {
		t.Errorf("alone: asked %d times", n)
	}
	l.sourcesOf(mirror, entryOf("folder", "2", "file:"+l.era()+"/"))
	if out := l.must("history", "sources"); !strings.Contains(out, "faraway: era_e, priority 1") || !strings.Contains(out, "not usable: ") || !strings.Contains(out, "3 files: ") {
		t.Errorf("beside a folder: %s", out)
	}
	if n := asked.Load(); n != int64(listingAttempts) {
		t.Errorf("beside a folder: asked %d times", n)
	}
}

// A mirror that cannot be asked what its files hold is not said to hold the blocks that it is said to lack.
func TestHoleOfGuessedFiles(t *testing.T) {
	cause := errors.New("fetch: the server answers 500")
	hole := &era.HoleError{Folder: "http://mirror/", Missing: []chain.Range{{From: 5, To: 6}}, Unread: []error{cause}}
	for _, c := range []struct {
		held chain.Range
		want string
	}{
		{chain.Range{From: 0, To: 8192}, "era folder http://mirror/: no file holds block 5 as far as the files could be read; fetch: the server answers 500"},
		{chain.Range{From: 6, To: 8}, "era folder http://mirror/: no file holds block 5; the folder holds blocks 6 to 7: do that; fetch: the server answers 500"},
	} {
		err := explainHole(hole, "do that", []era.Entry{{Range: c.held}})
		var kept *era.HoleError
		if err.Error() != c.want || !errors.Is(err, cause) || !errors.As(err, &kept) {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
}
