package archive

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest"
	"github.com/leani-go/leani/ingest/era"
)

// collector is a sink that compares blocks with frames.
type collector struct {
	t      *testing.T
	frames map[uint64]*chain.Frame
	blocks []uint64
}

func (c *collector) Add(b *chain.Block) error {
	c.blocks = append(c.blocks, b.Number)
	if diff := cmp.Diff(&c.frames[b.Number].Block, b, compareBlocks, cmpopts.IgnoreFields(chain.Block{}, "Senders")); diff != "" {
		c.t.Error(diff)
	}
	return nil
}
func (c *collector) Cut() error       { return nil }
func (c *collector) Pending() int     { return len(c.blocks) }
func (c *collector) Close(bool) error { return nil }

// fillFrom fills ranges from an archive and gives the blocks that arrived, which are compared with the frames.
func fillFrom(t *testing.T, manifest string, frames []*chain.Frame, ranges ...chain.Range) ([]uint64, error) {
	t.Helper()
	s, err := OpenSource(manifest, frames[0].ChainID)
	if err != nil {
		return nil, err
	}
	c := &collector{t: t, frames: map[uint64]*chain.Frame{}}
	for _, f := range frames {
		c.frames[f.Number] = f
	}
	_, err = ingest.Fill(context.Background(), ingest.Options{
		Source: s, Ranges: ranges, Workers: 2,
		Sink: func(context.Context, func(chain.Range)) ingest.Sink { return c },
	})
	return c.blocks, err
}

// pairs are the ranges of the real frames.
func pairs(frames []*chain.Frame) []chain.Range {
	var ranges []chain.Range
	for i := 0; i < len(frames); i += 2 {
		ranges = append(ranges, chain.Range{From: frames[i].Number, To: frames[i].Number + 2})
	}
	return ranges
}

// TestFill fills from an archive: every byte of real blocks arrives, proved by the roots of their headers.
func TestFill(t *testing.T) {
	frames := realFrames(t)
	for _, objectBlocks := range []uint64{1, 2} {
		blocks, err := fillFrom(t, writeArchive(t, frames, objectBlocks), frames, pairs(frames)...)
		if err != nil || len(blocks) != len(frames) {
			t.Fatal(blocks, err)
		}
	}
}

// openForFill opens the object of an archive as Fill does.
func openForFill(t *testing.T, a *Archive, limits ingest.Limits) (ingest.File, error) {
	t.Helper()
	s, err := OpenSource(a.path, a.manifest.ChainID)
	if err != nil {
		t.Fatal(err)
	}
	if limits.Reads == nil {
		limits.Reads = ingest.NewGate(1)
	}
	if limits.BlockBytes == 0 {
		limits.BlockBytes, limits.BatchBytes = 64<<20, 64<<20
	}
	return s.Open(context.Background(), a.PathOf(&a.manifest.Objects[0]), limits)
}

// A file that is read in any order proves the whole object before anything, as Read does: ARC-040.
func TestOpenProves(t *testing.T) {
	manifest := writeArchive(t, realFrames(t)[:2], 2)
	a, err := Open(manifest)
	if err != nil {
		t.Fatal(err)
	}
	f, err := openForFill(t, a, ingest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	change(t, a, func(b []byte) { b[len(b)-100] ^= 1 })
	if _, err := openForFill(t, a, ingest.Limits{}); !errors.Is(err, ErrChecksum) {
		t.Error(err)
	}
	blocks, err := fillFrom(t, manifest, realFrames(t), pairs(realFrames(t))[0])
	if !errors.Is(err, ErrChecksum) || len(blocks) != 0 {
		t.Error(blocks, err)
	}
}

// TestLineChanges edits a line in place after the object was proved: that line is refused, and the others are read,
// through the handle that was proved.
func TestLineChanges(t *testing.T) {
	frames := realFrames(t)[:2]
	a, err := Open(writeArchive(t, frames, 2))
	if err != nil {
		t.Fatal(err)
	}
	f, err := openForFill(t, a, ingest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	path := a.PathOf(&a.manifest.Objects[0])
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	start := bytes.IndexByte(content, '\n')
	content[bytes.LastIndex(content, []byte(`"detail":null`))] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+"-moved"); err != nil {
		t.Fatal(err)
	}
	var buf era.Buffer
	blocks := make([]chain.Block, 2)
	r := chain.Range{From: frames[0].Number, To: frames[0].Number + 2}
	n, err := f.ReadBlocks(r, &buf, blocks)
	if n != 1 || !errors.Is(err, ErrChecksum) || !strings.Contains(err.Error(), "line 2: ") {
		t.Errorf("%d blocks, %v", n, err)
	}
	if diff := cmp.Diff(&frames[0].Block, &blocks[0], compareBlocks, cmpopts.IgnoreFields(chain.Block{}, "Senders", "TransactionHashes")); diff != "" {
		t.Error(diff)
	}
	if got := f.Offset(r.From+1, chain.PartReceipts); got != int64(start)+1 {
		t.Errorf("offset %d, want %d", got, start+1)
	}
	if _, err := f.ReadBlocks(chain.Range{From: 1, To: 2}, &buf, blocks); !errors.Is(err, era.ErrNotInFile) {
		t.Error(err)
	}
}

// Limits hold for blocks that are filled as well: ARC-044. A batch ends where its bytes do, and holds one block at least.
func TestFillLimits(t *testing.T) {
	frames := realFrames(t)[:2]
	a, err := Open(writeArchive(t, frames, 2))
	if err != nil {
		t.Fatal(err)
	}
	r := chain.Range{From: frames[0].Number, To: frames[0].Number + 2}
	for name, c := range map[string]struct {
		limits ingest.Limits
		want   string // limit of the budget
		blocks int
	}{
		"line":  {ingest.Limits{BlockBytes: 10_000, BatchBytes: 1 << 20}, "resident_bytes", 0},
		"frame": {ingest.Limits{BlockBytes: 50_000, BatchBytes: 1 << 20}, "frame_bytes", 0},
		"batch": {ingest.Limits{BlockBytes: 1 << 30, BatchBytes: 1}, "", 1},
		"both":  {ingest.Limits{BlockBytes: 1 << 30, BatchBytes: 1 << 30}, "", 2},
	} {
		f, err := openForFill(t, a, c.limits)
		if err != nil {
			t.Fatal(err)
		}
		var buf era.Buffer
		n, err := f.ReadBlocks(r, &buf, make([]chain.Block, 2))
		var over *BudgetError
		if n != c.blocks || (c.want != "") != errors.As(err, &over) || over != nil && over.Limit != c.want {
			t.Errorf("%s: %d blocks, %v", name, n, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFillRefusals: only whole, final blocks of the archive's chain are history, and each must agree with its header.
func TestFillRefusals(t *testing.T) {
	frames := realFrames(t)[4:6] // Prague
	r := chain.Range{From: frames[0].Number, To: frames[0].Number + 2}
	for name, c := range map[string]struct {
		change func(f *chain.Frame)
		want   string
	}{
		"ARC-063 senders":      {func(f *chain.Frame) { f.Senders = nil }, "no senders"},
		"ARC-064 not declared": {func(*chain.Frame) {}, "does not declare Withdrawals complete"},
		"hash":                 {func(f *chain.Frame) { f.Hash[0] ^= 1 }, "header differs from the frame's block: hash"},
		"time":                 {func(f *chain.Frame) { f.Timestamp++ }, "header differs from the frame's block: number"},
		"a transaction": {func(f *chain.Frame) {
			f.Transactions = slices.Clone(f.Transactions)
			f.Transactions[0] = f.Transactions[1]
		}, "transactions root"},
		"a receipt": {func(f *chain.Frame) { f.Receipts = slices.Clone(f.Receipts); f.Receipts[0].Status ^= 1 }, "receipts root"},
		"a log": {func(f *chain.Frame) {
			f.Logs = slices.Clone(f.Logs)
			f.Logs[0].Data = append([]byte{1}, f.Logs[0].Data...)
		}, "receipts root"},
		"a withdrawal": {func(f *chain.Frame) { f.Withdrawals = frames[0].Withdrawals }, "withdrawals root"},
		"other ommers": {func(f *chain.Frame) { f.Ommers = []byte{0xc1, 0xc0} }, "ommers hash"},
	} {
		changed := *frames[1]
		c.change(&changed)
		folder := filepath.Join(t.TempDir(), "archive")
		kinds := WholeKinds
		if strings.Contains(name, "ARC-064") {
			kinds &^= chain.NewCapabilities(chain.CapabilityWithdrawals)
		}
		w, err := Create(WriterOptions{Folder: folder, ID: "test", ChainID: 1, Finality: chain.Finalized, Capabilities: WholeKinds, Complete: kinds, ObjectBlocks: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Add(frames[0]), w.Add(&changed)); err != nil {
			t.Fatal(name, err)
		}
		if _, err := w.Commit(); err != nil {
			t.Fatal(err)
		}
		blocks, err := fillFrom(t, filepath.Join(folder, ManifestName), frames, r)
		var at *ingest.BlockError
		if !errors.As(err, &at) || at.Block != r.From+uint64(len(blocks)) || (len(blocks) == 0) != strings.Contains(name, "ARC-064") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", name, blocks, err)
		}
	}
}

// The plan refuses what the manifest shows already.
func TestPlanRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		change func(map[string]any)
		want   string
	}{
		"no header": {nil, "complete_capabilities lack Header"},
		"not final": {func(m map[string]any) {
			m["finality"] = "Attested"
			m["capabilities"] = []string{"Header", "Transactions", "Receipts"}
			m["complete_capabilities"] = m["capabilities"]
		}, "finality is Attested"},
	} {
		a := madeArchive(t, c.change, madeObject{1, 1, madeLine(1, nil)})
		s, err := OpenSource(a.path, 1)
		if err != nil {
			t.Fatal(err)
		}
		var refused *ManifestError
		if _, err := s.Plan(context.Background(), chain.Range{From: 1, To: 2}); !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUndeclared reads whole frames through manifests that declare less: what is not declared is not there, and what
// is left can be written and read again. ARC-036
func TestUndeclared(t *testing.T) {
	f := realFrames(t)[3]
	line, err := new(encoder).line(nil, f)
	if err != nil {
		t.Fatal(err)
	}
	all := WholeKinds.List()
	for subset := range 1 << len(all) {
		var kinds chain.Capabilities
		names := []string{}
		for i, c := range all {
			if subset>>i&1 != 0 {
				kinds |= chain.NewCapabilities(c)
				names = append(names, c.String())
			}
		}
		a := madeArchive(t, func(m map[string]any) { m["capabilities"], m["complete_capabilities"] = names, names }, madeObject{f.Number, f.Number, string(line)})
		err := a.Read(context.Background(), &a.manifest.Objects[0], everything, Budget{}, func(got *chain.Frame) error {
			declared := kinds.Derived()
			switch {
			case got.Present() != declared&WholeKinds, got.Complete() != got.Present():
				t.Errorf("%s: %s", kinds, got.Present())
			case (got.Header != nil) != declared.Has(chain.CapabilityHeader), (got.Withdrawals != nil) != declared.Has(chain.CapabilityWithdrawals),
				(len(got.TransactionHashes) > 0) != declared.Has(chain.CapabilityTransactions), (len(got.Receipts) > 0) != declared.Has(chain.CapabilityReceipts),
				(len(got.Logs) > 0) != declared.Has(chain.CapabilityLogs), got.HasReceipts != declared.Has(chain.CapabilityReceipts):
				t.Errorf("%s: there is something else", kinds)
			case declared.Has(chain.CapabilityLogs) && !got.HasReceipts && len(got.LogPlaces) != len(got.Logs):
				t.Errorf("%s: %d places of %d logs", kinds, len(got.LogPlaces), len(got.Logs))
			}
			second, err := new(encoder).line(nil, got)
			if err != nil {
				return err
			}
			var again chain.Frame
			return new(Parser).Parse(padded(second), nil, &again)
		})
		if err != nil {
			t.Errorf("%s: %v", kinds, err)
		}
	}
}

// An object of lines that are too short to be frames is refused before the places of all of them fill the memory,
// whatever number of blocks its manifest gives it.
func TestDenseLines(t *testing.T) {
	const lines = 1 << 16
	a := madeArchive(t, nil, madeObject{1, lines, strings.Repeat("0\n", lines)})
	s, err := OpenSource(a.path, 1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Open(t.Context(), a.PathOf(&a.manifest.Objects[0]), ingest.Limits{BlockBytes: 1 << 20, BatchBytes: 1 << 20, Reads: ingest.NewGate(1)})
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || !errors.Is(err, ErrOrder) || corrupt.Line > 2*shortLines {
		t.Errorf("got %v", err)
	}
}
