package history

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leani-go/leani/engine"
)

// A store of each older format version opens in this build and holds what it held: the
// directories of testdata, with the digest of their history, are never rewritten.
//
// STO-020
func TestStoresOfEveryFormat(t *testing.T) {
	for _, name := range []string{"format-1"} {
		t.Run(name, func(t *testing.T) {
			from := filepath.Join("testdata", name)
			want, err := os.ReadFile(filepath.Join(from, "digest.txt"))
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "store")
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(from, "store"))); err != nil {
				t.Fatal(err)
			}
			for range 2 { // as it was written, and as this build left it
				e, err := engine.Open(engine.Options{Dir: dir, ChainID: 1})
				if err != nil {
					t.Fatal(err)
				}
				if e.FormatVersion() != 2 {
					t.Errorf("format version %d after the open", e.FormatVersion())
				}
				if !e.Recovery().Empty() {
					t.Errorf("recovery %+v", e.Recovery())
				}
				s := New(e, smallOptions(8))
				r, err := s.Verify(t.Context(), VerifyOptions{Senders: true})
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Problems) > 0 {
					t.Error(errors.Join(r.Problems...))
				}
				if got := hex.EncodeToString(r.Digest[:]); got != strings.TrimSpace(string(want)) || r.Blocks != 23 {
					t.Errorf("digest %s of %d blocks, want %s of 23", got, r.Blocks, want)
				}
				report, err := e.Check(t.Context(), engine.CheckOptions{})
				if err != nil || !report.Clean() {
					t.Errorf("check: %v %v", report.Problems, err)
				}
				if _, err := s.Compact(t.Context()); err != nil {
					t.Error(err)
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
