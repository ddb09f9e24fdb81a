package archive

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
)

// emptyFrame is a made-up frame with complete and empty lists.
func emptyFrame(n uint64) *chain.Frame {
	f := &chain.Frame{Block: chain.Block{BlockRef: chain.BlockRef{Number: n, Hash: madeHash(n), ParentHash: madeHash(n - 1)}}, ChainID: 1, Finality: chain.Finalized}
	*f.Material(chain.CapabilityTransactions) = chain.CompleteMaterial()
	return f
}

func emptyWriter(t *testing.T, parent string) *Writer {
	t.Helper()
	kinds := chain.NewCapabilities(chain.CapabilityTransactions)
	w, err := Create(WriterOptions{Folder: filepath.Join(parent, "out"), ID: "x", ChainID: 1, Finality: chain.Finalized, Capabilities: kinds, Complete: kinds, ObjectBlocks: 2})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func folderNames(t *testing.T, path string) string {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// TestWriter: objects end where they are full and at holes, and the folder appears as a whole.
func TestWriter(t *testing.T) {
	parent := t.TempDir()
	w := emptyWriter(t, parent)
	for _, n := range []uint64{1, 2, 3, 4, 5, 9, 10} {
		if err := w.Add(emptyFrame(n)); err != nil {
			t.Fatal(err)
		}
	}
	if names := folderNames(t, parent); !strings.HasPrefix(names, ".out.partial-") || strings.Contains(names, " ") {
		t.Errorf("before the end there is %s", names)
	}
	m, err := w.Commit()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil || folderNames(t, parent) != "out" {
		t.Error(err, folderNames(t, parent))
	}
	const want = "blocks-0000000001-0000000002.jsonl blocks-0000000003-0000000004.jsonl blocks-0000000005-0000000005.jsonl blocks-0000000009-0000000010.jsonl manifest.json"
	if names := folderNames(t, filepath.Join(parent, "out")); names != want || len(m.Objects) != 4 {
		t.Error(names)
	}
	a, err := Open(filepath.Join(parent, "out", ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := a.Verify(t.Context(), Budget{}, nil); err != nil || len(r.Problems) > 0 || r.Frames != 7 || r.Bytes != w.Bytes() {
		t.Errorf("%+v, %v", r, err)
	}
}

// A writer refuses what no reader would take.
func TestWriterRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*chain.Frame) // of block 2
		want   error
	}{
		"chain":     {func(f *chain.Frame) { f.ChainID = 2 }, ErrChain},
		"finality":  {func(f *chain.Frame) { f.Finality = chain.Attested }, ErrFinality},
		"missing":   {func(f *chain.Frame) { *f.Material(chain.CapabilityTransactions) = chain.Material{} }, ErrMaterial},
		"more":      {func(f *chain.Frame) { *f.Material(chain.CapabilityReceipts) = chain.CompleteMaterial() }, ErrMaterial},
		"parent":    {func(f *chain.Frame) { f.ParentHash = common.Hash{9} }, ErrParent},
		"backwards": {func(f *chain.Frame) { f.Number = 1 }, ErrOrder},
		"encoding": {func(f *chain.Frame) {
			f.Transactions, f.TransactionHashes = [][]byte{nil}, make([]common.Hash, 1)
		}, ErrNotEncoded},
	} {
		parent := t.TempDir()
		w := emptyWriter(t, parent)
		second := emptyFrame(2)
		c.change(second)
		if err := errors.Join(w.Add(emptyFrame(1)), w.Add(second)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := w.Abort(); err != nil || folderNames(t, parent) != "" {
			t.Errorf("%s: left %s, %v", name, folderNames(t, parent), err)
		}
	}
}

// Nothing is overwritten, not even a folder that appears meanwhile and is empty.
func TestWriterOverwritesNothing(t *testing.T) {
	parent := t.TempDir()
	w := emptyWriter(t, parent)
	if err := errors.Join(w.Add(emptyFrame(1)), os.Mkdir(filepath.Join(parent, "out"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	if err := w.Abort(); err != nil || folderNames(t, parent) != "out" {
		t.Error(err, folderNames(t, parent))
	}
	o := w.options
	if _, err := Create(o); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	for name, change := range map[string]func(*WriterOptions){
		"id":           func(o *WriterOptions) { o.ID = "a b" },
		"chain":        func(o *WriterOptions) { o.ChainID = 0 },
		"finality":     func(o *WriterOptions) { o.Finality = 0 },
		"capabilities": func(o *WriterOptions) { o.Capabilities = 0 },
		"folder":       func(o *WriterOptions) { o.Folder = filepath.Join(parent, "none", "out") },
	} {
		o := w.options
		o.Folder = filepath.Join(parent, "new")
		if change(&o); o.Folder != "" {
			if _, err := Create(o); err == nil {
				t.Errorf("%s is taken", name)
			}
		}
	}
	empty := emptyWriter(t, t.TempDir())
	if _, err := empty.Commit(); !errors.Is(err, errNoFrames) || empty.Abort() != nil {
		t.Error(err)
	}
}
