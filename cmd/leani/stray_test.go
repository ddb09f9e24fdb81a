package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStrayFile: a command that only reads leaves a file that no row names where it is, and does not say that it moved it;
// one that writes moves it, and says so.
func TestStrayFile(t *testing.T) {
	t.Parallel()
	c := bundled(t)
	c.files, c.blocks = c.files[:1], bundledSpans[0]
	l := newLab(t, c)
	l.must(fillArgs(c.blocks)...)
	stray := filepath.Join(l.data(), "segments", "data", "stray")
	writeFile(t, stray, []byte("x"))
	for range 2 {
		if o := l.run("history", "status"); o.code != exitOK || !strings.Contains(o.err, "will be moved to quarantine") || strings.Contains(o.err, "was moved") {
			t.Errorf("code %d: %s", o.code, o.err)
		}
		if _, err := os.Stat(stray); err != nil {
			t.Error(err)
		}
	}
	if o := l.run("db", "compact"); o.code != exitOK || !strings.Contains(o.err, "was moved to quarantine") {
		t.Errorf("code %d: %s", o.code, o.err)
	}
	if _, err := os.Stat(stray); !os.IsNotExist(err) {
		t.Error(err)
	}
}
