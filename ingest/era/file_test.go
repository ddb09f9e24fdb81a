package era

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/rlp"
)

// TestOpenBundled pins what the index of a real file says.
func TestOpenBundled(t *testing.T) {
	f, err := OpenPath(filepath.Join(bundled(t), smallest), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Layout() != EraE || f.Range() != (chain.Range{From: 22431083, To: 22431085}) || !f.HasReceipts() || f.HasTotalDifficulty() {
		t.Fatal(f.Layout(), f.Range(), f.HasReceipts(), f.HasTotalDifficulty())
	}
	var b chain.Block
	if err := f.ReadBlock(22431084, chain.PartsAll, new(Buffer), &b); err != nil {
		t.Fatal(err)
	}
	if b.Number != 22431084 || b.Timestamp == 0 || b.ParentHash == (common.Hash{}) || !b.HasReceipts || b.Withdrawals == nil {
		t.Fatalf("%+v", b.BlockRef)
	}
}

// TestLayoutVariants reads the same blocks out of files that differ in everything the format
// leaves open: draft tags, the order of index slots, optional components, records that nobody
// knows, gaps.
func TestLayoutVariants(t *testing.T) {
	base, want := real(t)
	words := column{tag: tagTotalDifficulty, data: [][]byte{make([]byte, 32), append([]byte{1}, make([]byte, 31)...)}}
	proofs := column{tag: tagProof, data: [][]byte{framed([]byte{0xc0}), framed([]byte{0xc0})}}
	with := func(change func(*grouped)) []byte {
		g := base
		g.columns = slices.Clone(g.columns)
		change(&g)
		return g.build()
	}
	for name, file := range map[string][]byte{
		"as it is":    with(func(*grouped) {}),
		"draft tags":  with(func(g *grouped) { g.columns[2].tag = tagSlimReceiptsDraft }),
		"draft proof": with(func(g *grouped) { g.columns = append(g.columns, column{tagProofDraft, proofs.data}) }),
		"proof before difficulty in file and index": with(func(g *grouped) {
			g.columns = append(g.columns, proofs, words)
		}),
		"proof before difficulty in the file, after it in the index": with(func(g *grouped) {
			g.columns = append(g.columns, proofs, words)
			g.slots = []int{0, 1, 2, 4, 3}
		}),
		"slots in another order": with(func(g *grouped) { g.slots = []int{2, 0, 1} }),
		"unknown records":        with(func(g *grouped) { g.surplus = appendRecord(nil, 0x7777, make([]byte, 1000)) }),
		"gaps after records":     with(func(g *grouped) { g.padding = 40 }),
		"another version record": with(func(g *grouped) { g.versions = 1 }),
	} {
		t.Run(name, func(t *testing.T) {
			f, err := open(file, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := readAll(f, chain.PartsAll)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatal("the blocks differ")
			}
		})
	}
}

// TestParts pins what each selection of parts fills in, and that a file without receipts says
// so rather than giving none.
func TestParts(t *testing.T) {
	base, want := real(t)
	without := base
	without.columns = base.columns[:2]
	for _, c := range []struct {
		name              string
		file              []byte
		parts             chain.Parts
		body, hasReceipts bool
		fileHoldsReceipts bool
	}{
		{name: "header", file: base.build(), parts: chain.PartHeader, fileHoldsReceipts: true},
		{name: "body", file: base.build(), parts: chain.PartTransactions, body: true, fileHoldsReceipts: true},
		{name: "receipts", file: base.build(), parts: chain.PartReceipts, hasReceipts: true, fileHoldsReceipts: true},
		{name: "all", file: base.build(), parts: chain.PartsAll, body: true, hasReceipts: true, fileHoldsReceipts: true},
		{name: "noreceipts", file: without.build(), parts: chain.PartsAll, body: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := open(c.file, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if f.HasReceipts() != c.fileHoldsReceipts {
				t.Fatalf("HasReceipts: got %v", f.HasReceipts())
			}
			got, err := readAll(f, c.parts)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				b := &got[i]
				if !bytes.Equal(b.Header, want[i].Header) || b.Number != want[i].Number {
					t.Error("header differs")
				}
				if (len(b.Transactions) > 0) != c.body || (b.Ommers != nil) != c.body || (b.Withdrawals != nil) != c.body {
					t.Error("body: got", len(b.Transactions), b.Ommers, b.Withdrawals)
				}
				if b.HasReceipts != c.hasReceipts || (len(b.Receipts) > 0) != c.hasReceipts || (len(b.Logs) > 0) != c.hasReceipts {
					t.Error("receipts: got", b.HasReceipts, len(b.Receipts), len(b.Logs))
				}
			}
		})
	}
}

// counter counts the reads of a file.
type counter struct {
	io.ReaderAt
	reads, bytes int
}

func (c *counter) ReadAt(b []byte, offset int64) (int, error) {
	c.reads++
	c.bytes += len(b)
	return c.ReaderAt.ReadAt(b, offset)
}

// many is a file of n copies of the first real block with numbers of their own.
func many(tb testing.TB, n int) []byte {
	base, blocks := real(tb)
	g := grouped{start: base.start, columns: []column{{tag: tagHeader}, {tag: tagBody}, {tag: tagSlimReceipts}}}
	for i := range n {
		number := base.start + uint64(i)
		header := bytes.Replace(blocks[0].Header, rlp.AppendUint64(nil, base.start), rlp.AppendUint64(nil, number), 1)
		g.columns[0].data = append(g.columns[0].data, framed(header))
		g.columns[1].data = append(g.columns[1].data, base.columns[1].data[0])
		g.columns[2].data = append(g.columns[2].data, base.columns[2].data[0])
	}
	return g.build()
}

// TestReadBlocksReadsInLargePieces pins that a run of blocks costs one read for each component,
// and that batches give the blocks that single reads give.
func TestReadBlocksReadsInLargePieces(t *testing.T) {
	content := many(t, 40)
	c := &counter{ReaderAt: bytes.NewReader(content)}
	f, err := Open("counted.ere", c, int64(len(content)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := readAll(f, chain.PartsAll)
	if err != nil {
		t.Fatal(err)
	}
	c.reads, c.bytes = 0, 0
	r := f.Range()
	dst := make([]chain.Block, 40)
	n, err := f.ReadBlocks(r, chain.PartsAll, new(Buffer), dst)
	if err != nil || n != 40 {
		t.Fatal(n, err)
	}
	if c.reads != 3 || int64(c.bytes) != f.StoredBytes(r, chain.PartsAll) {
		t.Errorf("%d reads of %d bytes, want 3 of %d", c.reads, c.bytes, f.StoredBytes(r, chain.PartsAll))
	}
	if !reflect.DeepEqual(dst, want) {
		t.Fatal("the blocks differ")
	}
}

// TestBatchLimits pins that a batch ends early rather than exceed its limit, holds at least one
// block, and ends where the blocks or dst end.
func TestBatchLimits(t *testing.T) {
	content := many(t, 10)
	for _, c := range []struct {
		limit, dst int
		want       func(n int) bool
	}{
		{1, 10, func(n int) bool { return n == 1 }},
		{1_000_000, 10, func(n int) bool { return 1 < n && n < 10 }},
		{0, 10, func(n int) bool { return n == 10 }},
		{0, 4, func(n int) bool { return n == 4 }},
		{0, 0, func(n int) bool { return n == 0 }},
	} {
		f, err := open(content, Options{MaximumBatchBytes: c.limit})
		if err != nil {
			t.Fatal(err)
		}
		var buf Buffer
		dst := make([]chain.Block, c.dst)
		n, err := f.ReadBlocks(f.Range(), chain.PartsAll, &buf, dst)
		if err != nil || !c.want(n) {
			t.Errorf("limit %d, room for %d: got %d blocks, %v", c.limit, c.dst, n, err)
		}
		if c.limit > 1 && (len(buf.plain) > c.limit || len(buf.stored) > c.limit) {
			t.Errorf("limit %d: %d bytes decompressed of %d", c.limit, len(buf.plain), len(buf.stored))
		}
		for i := range n {
			if dst[i].Number != f.Range().From+uint64(i) {
				t.Errorf("block %d has number %d", i, dst[i].Number)
			}
		}
	}
}

func TestBlockLimit(t *testing.T) {
	base, _ := real(t)
	f, err := open(base.build(), Options{MaximumBlockBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var b chain.Block
	err = f.ReadBlock(base.start, chain.PartsAll, new(Buffer), &b)
	var corrupt *CorruptError
	if !errors.Is(err, ErrTooLarge) || !errors.As(err, &corrupt) || corrupt.Block != base.start {
		t.Fatalf("got %v", err)
	}
	if err := f.ReadBlock(base.start, chain.PartHeader, new(Buffer), &b); err != nil {
		t.Fatalf("the header alone: %v", err)
	}
}

func TestNotInFile(t *testing.T) {
	base, _ := real(t)
	f, err := open(base.build(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b chain.Block
	for _, n := range []uint64{0, base.start - 1, base.start + 2, ^uint64(0) - 1, ^uint64(0)} {
		if err := f.ReadBlock(n, chain.PartsAll, new(Buffer), &b); !errors.Is(err, ErrNotInFile) {
			t.Errorf("block %d: got %v", n, err)
		}
	}
	if n, err := f.ReadBlocks(chain.Range{}, chain.PartsAll, new(Buffer), nil); n != 0 || err != nil {
		t.Error(n, err)
	}
}

// TestConcurrentReads lets goroutines share a file; -race checks the claim.
func TestConcurrentReads(t *testing.T) {
	content := many(t, 16)
	f, err := open(content, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			var buf Buffer
			dst := make([]chain.Block, 4)
			r := chain.Range{From: f.Range().From + uint64(4*worker), To: f.Range().From + uint64(4*worker+4)}
			if n, err := f.ReadBlocks(r, chain.PartsAll, &buf, dst); n != 4 || err != nil {
				t.Error(n, err)
			}
		})
	}
	wg.Wait()
}

func TestReadingAllocatesNothing(t *testing.T) {
	f, err := open(many(t, 8), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var buf Buffer
	dst := make([]chain.Block, 8)
	run := func() {
		if n, err := f.ReadBlocks(f.Range(), chain.PartsAll, &buf, dst); n != 8 || err != nil {
			t.Fatal(n, err)
		}
	}
	run()
	if n := testing.AllocsPerRun(10, run); n != 0 {
		t.Fatalf("%v allocations for 8 blocks", n)
	}
}

func TestReadErrorIsNotCorruption(t *testing.T) {
	base, _ := real(t)
	content := base.build()
	failing := errors.New("disk on fire")
	fail := false
	f, err := Open("x.ere", readerFunc(func(b []byte, offset int64) (int, error) {
		if fail {
			return 0, failing
		}
		return bytes.NewReader(content).ReadAt(b, offset)
	}), int64(len(content)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	fail = true
	var corrupt *CorruptError
	err = f.ReadBlock(base.start, chain.PartsAll, new(Buffer), new(chain.Block))
	if !errors.Is(err, failing) || errors.As(err, &corrupt) {
		t.Fatalf("got %v", err)
	}
	if _, err := Open("x.ere", bytes.NewReader(content[:len(content)-1]), int64(len(content)), Options{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("file shorter than said: got %v", err)
	}
}

type readerFunc func(b []byte, offset int64) (int, error)

func (f readerFunc) ReadAt(b []byte, offset int64) (int, error) { return f(b, offset) }

func TestErrorText(t *testing.T) {
	cause := errors.New("cause")
	for _, c := range []struct{ err, want string }{
		{(&CorruptError{File: "a.ere", Block: 7, Offset: 9, Err: cause}).Error(), "era file a.ere: block 7: offset 9: cause"},
		{(&CorruptError{File: "a.ere", Block: NoBlock, Offset: 9, Err: cause}).Error(), "era file a.ere: offset 9: cause"},
		{fmt.Sprint(Era1, EraE, Layout(9)), "era1 EraE layout 9"},
	} {
		if c.err != c.want {
			t.Errorf("got %q want %q", c.err, c.want)
		}
	}
}
