//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/leani-go/leani/ingest/archive"
)

// TestNotRegular puts a pipe, and then a folder, in the place of each file that a command reads: it is refused at once, and
// called by its path and what it is. Nobody waits for the other end of a pipe.
func TestNotRegular(t *testing.T) {
	skipWithRace(t)
	t.Parallel()
	c := bundled(t)
	l := newLab(t, c)
	l.must(fillArgs(bundledSpans[0])...)
	out := filepath.Join(l.dir, "archive")
	l.must(createArgs(bundledSpans[0], out)...)
	segment, err := filepath.Glob(filepath.Join(l.data(), "segments", "data", "*.seg"))
	if err != nil || len(segment) != 1 {
		t.Fatal(segment, err)
	}
	settings := readFile(t, l.config)
	genesis := filepath.Join(l.dir, "genesis.json")
	withGenesis := filepath.Join(l.dir, "genesis.toml")
	settings = bytes.Replace(settings, []byte("chain_id = 1\n"), []byte("chain_id = 5\ngenesis = \"genesis.json\"\n"), 1)
	writeFile(t, withGenesis, bytes.Replace(settings, []byte("name = \"mainnet\""), []byte("name = \"other\""), 1))
	writeFile(t, genesis, []byte("{}"))
	eraFile := filepath.Join(l.era(), filepath.Base(c.files[0]))
	fill := append([]string{"--config", l.config}, fillArgs(bundledSpans[1])...)
	for path, args := range map[string][]string{
		l.config: {"--config", l.config, "doctor"},
		genesis:  {"--config", withGenesis, "history", "status"},
		filepath.Join(l.era(), "checksums_sha256.txt"): fill,
		eraFile:                                  {"--config", l.config, "history", "sources"},
		filepath.Join(out, archive.ManifestName): {"archive", "verify", filepath.Join(out, archive.ManifestName)},
		filepath.Join(l.data(), "GENERATION"):    {"--config", l.config, "history", "status"},
		segment[0]:                               {"segment", "check", segment[0]},
	} {
		aside := path + ".aside"
		if err := os.Rename(path, aside); err != nil {
			t.Fatal(err)
		}
		for what, replace := range map[string]func() error{
			"is a pipe":   func() error { return syscall.Mkfifo(path, 0o600) },
			"is a folder": func() error { return os.Mkdir(path, 0o700) },
		} {
			if err := replace(); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			text, err := exec.CommandContext(ctx, "leani", args...).CombinedOutput()
			if ctx.Err() != nil {
				t.Errorf("leani %s waits for %s, which %s", strings.Join(args, " "), path, what)
			}
			cancel()
			var exit *exec.ExitError
			shown := strings.Contains(string(text), path) || strings.Contains(string(text), filepath.Base(path))
			if listed := strings.Contains(strings.Join(args, " "), "sources"); !listed && !errors.As(err, &exit) || !shown || !strings.Contains(string(text), what) {
				t.Errorf("leani %s, where %s %s: %v\n%s", strings.Join(args, " "), path, what, err, text)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Rename(aside, path); err != nil {
			t.Fatal(err)
		}
	}
	l.verify()
}
