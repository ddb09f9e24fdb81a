package engine

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/leani-go/leani/engine/internal/crashfs"
)

var update = flag.Bool("update", false, "rewrite golden files")

var databaseFile = regexp.MustCompile(`db/\d+\.log`)

// TestFileOperations writes the exact order of file operations and events of one life of a
// file to a golden file, so that the order of sync, rename, directory sync and batch is
// visible, and a change of it is a diff.
func TestFileOperations(t *testing.T) {
	var mu sync.Mutex // Pebble works in the background too
	var log []string
	var session string
	recording := false
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if !recording {
			return
		}
		line := strings.ReplaceAll(fmt.Sprintf(format, args...), testDir+"/", "")
		if session != "" {
			line = strings.ReplaceAll(line, session, "session")
		}
		line = strings.TrimRight(line, " ")
		log = append(log, databaseFile.ReplaceAllString(line, "db/log"))
	}
	m := vfs.NewCrashableMem()
	record := func(on bool) {
		mu.Lock()
		defer mu.Unlock()
		recording = on
	}
	machine := crashfs.New(m, nil)
	machine.OnChange = func(op, path string) { note("  %s %s", op, path) }
	opts := testOptions(machine.FS())
	opts.OnEvent = func(ev Event) {
		switch ev.Kind {
		case EventCommitted:
			note("event %s generation %d", ev.Kind, ev.Generation)
			for _, r := range ev.Added {
				note("    added %s", r)
			}
			for _, r := range ev.Removed {
				note("    removed %s", r)
			}
		default:
			note("event %s %s %s", ev.Kind, ev.Path, ev.To)
		}
	}
	e := mustOpen(t, opts)
	session = e.session
	record(true)

	note("# begin and write two files")
	d := mustPending(t, e, KindData, 0, 0, 4)
	i := mustPending(t, e, KindIndex, 0, 0, 4)
	note("# commit them")
	mustCommit(t, e, nil, d, i)
	note("# begin and abort a file")
	if err := mustPending(t, e, KindData, 0, 4, 8).File.Abort(); err != nil {
		t.Fatal(err)
	}
	note("# replace the index while a snapshot holds it")
	held := e.Acquire()
	mustCommit(t, e, []*FileRow{rowAt(t, e, KindIndex, 0, 0)}, mustPending(t, e, KindIndex, 1, 0, 4))
	note("# delete what is free: nothing")
	if err := e.reap(); err != nil {
		t.Fatal(err)
	}
	note("# release the snapshot, delete what is free")
	held.Release()
	if err := e.reap(); err != nil {
		t.Fatal(err)
	}
	note("# a refused edit")
	if err := e.Commit(t.Context(), Edit{Remove: []*FileRow{{Kind: KindData, From: 99, Generation: 1}}}); err == nil {
		t.Fatal("the edit is accepted")
	}
	note("# leave a file behind and plant a foreign one; close")
	_ = mustPending(t, e, KindData, 0, 4, 8)
	record(false)
	if err := e.Close(); err == nil {
		t.Error("close says nothing about a file left behind")
	}
	record(true)
	foreign, err := m.Create(testDir+"/segments/data/notes.txt", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_ = foreign.Close()

	note("# open: recovery in the segment tier")
	before := len(log)
	e = mustOpen(t, opts)
	record(false)
	kept := log[:before]
	for _, line := range log[before:] {
		if !strings.Contains(line, "db/") && !strings.HasSuffix(line, " db") {
			kept = append(kept, line)
		}
	}
	mustClose(t, e)

	got := strings.Join(kept, "\n") + "\n"
	golden := filepath.Join("testdata", "file_operations.golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("order of operations (-want +got), rewrite with -update:\n%s", diff)
	}
}
