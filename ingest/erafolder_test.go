package ingest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/verify"
	"github.com/leani-go/leani/internal/shareddata"
)

// rangesOf are the blocks of the files of a folder.
func rangesOf(s *EraFolder) (ranges []chain.Range) {
	for _, e := range s.Catalog().Entries() {
		ranges = append(ranges, e.Range)
	}
	return ranges
}

// TestBundledMainnet fills the six bundled blocks over the Shanghai, Cancun and Prague activations.
// SRC-030
func TestBundledMainnet(t *testing.T) {
	folder := filepath.Join(shareddata.Root(t), "testdata", "era", "mainnet-mini")
	s, err := OpenEraFolder("file://"+folder, "mainnet")
	if err != nil {
		t.Fatal(err)
	}
	var c counter
	result, err := Fill(context.Background(), Options{Source: s, Ranges: rangesOf(s), Sink: c.open})
	if err != nil {
		t.Fatal(err)
	}
	// The hash of block 22431084, the first one of Prague.
	last := common.HexToHash("0x50c8cab760b2948349c590461b166773c45d8f4858cccf5a43025ab2960152e8")
	if c.transactions != 675 || c.logs != 2278 || c.last != last {
		t.Errorf("%d transactions, %d logs, last block %x", c.transactions, c.logs, c.last)
	}
	if result.Blocks != 6 || result.Committed != 6 || result.Bytes < 500_000 {
		t.Errorf("%+v", result)
	}
}

// A block above the limit ends the run there; what came before is committed.
func TestMaximumBlockBytes(t *testing.T) {
	s, err := OpenEraFolder(filepath.Join(shareddata.Root(t), "testdata", "era", "mainnet-mini"), "mainnet")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		limit  int64
		blocks int // that fit, in the order of the files
	}{{1, 0}, {320_000, 2}, {1 << 62, 6}} {
		var c counter
		result, err := Fill(context.Background(), Options{Source: s, Ranges: rangesOf(s), Sink: c.open, MaximumBlockBytes: test.limit})
		if c.blocks != test.blocks || result.Committed != uint64(test.blocks) {
			t.Errorf("limit %d: got %d blocks, want %d", test.limit, c.blocks, test.blocks)
		}
		if whole := test.blocks == 6; whole && err != nil || !whole && !errors.Is(err, era.ErrTooLarge) {
			t.Errorf("limit %d: got %v", test.limit, err)
		}
	}
}

// linked is a folder with files of the shared data under names of a chain called test.
func linked(t *testing.T, files map[string]string) *EraFolder {
	t.Helper()
	folder := t.TempDir()
	var catalog bytes.Buffer
	for name, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&catalog, "%x *%s\n", sha256.Sum256(content), name)
	}
	return openEraFolder(t, folder, catalog.Bytes())
}

// TestSharedFiles fills whole chains out of real and conformance files of every layout, and compares
// the counts with what is known about them. SRC-030
func TestSharedFiles(t *testing.T) {
	const conformance = "rpc-compat-chain"
	for _, c := range []struct {
		name                       string
		files                      map[string][2]string
		blocks, transactions, logs int
		last                       string // how the hash of the last block begins
	}{
		{"conformance chain, one file", map[string][2]string{
			"test-a.ere": {conformance, "blocks0-54--unknown-00000-d226371d-noproofs.ere"},
		}, 55, 249, 383, "d226371d"},
		{"conformance chain, era1 and EraE", map[string][2]string{
			"test-b.era1": {conformance, "blocks0-35--unknown-00000-7c27d1f9.era1"},
			"test-a.ere":  {conformance, "blocks36-54--unknown-00000-d226371d-noproofs.ere"},
		}, 55, 249, 383, "d226371d"},
		{"Mainnet era 0, era1", map[string][2]string{"test-a.era1": {"mainnet", "mainnet-00000-5ec1ffb8.era1"}}, 8192, 0, 0, "a6860fef"},
		{"Mainnet era 0, EraE", map[string][2]string{"test-a.ere": {"mainnet", "mainnet-00000-a6860fef-noproofs.ere"}}, 8192, 0, 0, "a6860fef"},
		{"Sepolia era 21", map[string][2]string{"test-a.ere": {"sepolia", "sepolia-00021-af105ff1-noproofs.ere"}}, 8192, 93, 0, "af105ff1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			paths := make(map[string]string)
			for name, elem := range c.files {
				paths[name] = shareddata.Path(t, "era", elem[0], elem[1])
			}
			s := linked(t, paths)
			var sink counter
			result, err := Fill(context.Background(), Options{Source: s, Ranges: rangesOf(s), Sink: sink.open})
			if err != nil {
				t.Fatal(err)
			}
			if sink.blocks != c.blocks || sink.transactions != c.transactions || sink.logs != c.logs || !strings.HasPrefix(hex.EncodeToString(sink.last[:]), c.last) {
				t.Errorf("got %d blocks, %d transactions, %d logs to %x; want %d, %d, %d to %s",
					sink.blocks, sink.transactions, sink.logs, sink.last, c.blocks, c.transactions, c.logs, c.last)
			}
			if want := uint64(c.blocks); result.Blocks != want || result.Committed != want {
				t.Errorf("%+v", result)
			}
		})
	}
}

// TestFilesMustFollow joins files of two chains: the second does not follow from the first.
// SRC-008, INV-14
func TestFilesMustFollow(t *testing.T) {
	blocks := testChain()
	other := []chain.Block{otherBlock(100, common.Hash{9})}
	for n := uint64(101); n < 110; n++ {
		other = append(other, otherBlock(n, other[len(other)-1].Hash))
	}
	s := eraFolderOf(t, map[string][]byte{
		"test-0": eraFileOf(blocks[:100], true), "test-1": eraFileOf(other, true),
	}, nil)
	var c counter
	_, err := Fill(context.Background(), Options{Source: s, Ranges: rangesOf(s), Sink: c.open})
	var block *BlockError
	var check *verify.Error
	if !errors.As(err, &block) || block.Block != 100 || filepath.Base(block.File) != "test-1" ||
		!errors.As(err, &check) || check.Check != verify.CheckParent || c.blocks != 100 {
		t.Errorf("%d blocks, error %v", c.blocks, err)
	}
}

// A file without receipts cannot give complete history.
func TestFileWithoutReceipts(t *testing.T) {
	blocks := testChain()
	s := eraFolderOf(t, map[string][]byte{
		"test-0": eraFileOf(blocks[:20], true), "test-1-noreceipts": eraFileOf(blocks[20:40], false),
	}, nil)
	var c counter
	_, err := Fill(context.Background(), Options{Source: s, Ranges: rangesOf(s), Sink: c.open})
	var block *BlockError
	if !errors.Is(err, ErrNoReceipts) || !errors.As(err, &block) || block.Block != 20 || c.blocks != 20 {
		t.Errorf("%d blocks, error %v", c.blocks, err)
	}
}

// TestFlippedBit flips one bit of a file anywhere. Where the catalog tells the true digest, nothing
// of the file is added and the error says where the damage is; where it tells that of the damaged
// file, everything before the damage is, and the file is complete only if the bit means nothing.
// SRC-005
func TestFlippedBit(t *testing.T) {
	blocks := testChain()[:60]
	first, second := eraFileOf(blocks[:30], true), eraFileOf(blocks[30:], true)
	rapid.Check(t, func(rt *rapid.T) {
		damaged := bytes.Clone(second)
		position := rapid.IntRange(0, len(damaged)-1).Draw(rt, "position")
		damaged[position] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
		files := map[string][]byte{"test-0": first, "test-1": damaged}
		var published map[string][]byte
		if rapid.Bool().Draw(rt, "published undamaged") {
			published = map[string][]byte{"test-1": second}
		}
		folder, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		var catalog bytes.Buffer
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
				rt.Fatal(err)
			}
			if other, ok := published[name]; ok {
				content = other
			}
			fmt.Fprintf(&catalog, "%x  %s\n", sha256.Sum256(content), name)
		}
		s := openEraFolder(t, folder, catalog.Bytes())
		if len(s.Catalog().Unread()) > 0 || rangesOf(s)[1] != (chain.Range{From: 30, To: 60}) {
			return // the damage is in the index and the catalog knows
		}
		var c counter
		added := uint64(0)
		c.onAdd = func(b *chain.Block) {
			if b.Hash != blocks[b.Number].Hash {
				rt.Fatalf("block %d is another one", b.Number)
			}
			added++
		}
		_, err = Fill(context.Background(), Options{Source: s, Ranges: rangesOf(s), Sink: c.open})
		var (
			digest  *era.DigestError
			corrupt *era.CorruptError
			block   *BlockError
		)
		isDigest, isCorrupt, isBlock := errors.As(err, &digest), errors.As(err, &corrupt), errors.As(err, &block)
		bad := uint64(30)
		switch {
		case isCorrupt && !opens(s, 30): // nothing of the file can be read
		case isCorrupt && corrupt.Block != era.NoBlock:
			bad = corrupt.Block
		case isBlock:
			bad = block.Block
		}
		switch {
		case published != nil && (!isDigest || added != 30):
			rt.Fatalf("%d blocks, error %v", added, err)
		case published == nil && isDigest, published == nil && err == nil && added != 60:
			rt.Fatalf("%d blocks, error %v", added, err)
		case published == nil && err != nil && added != bad:
			rt.Fatalf("%d blocks, error %v", added, err)
		case (isCorrupt || isBlock) && bad < 30 || err != nil && !isDigest && !isCorrupt && !isBlock:
			rt.Fatalf("error %v", err)
		}
	})
}

// opens tells whether the file with a block can be opened.
func opens(s *EraFolder, n uint64) bool {
	extents, err := s.Plan(context.Background(), chain.Range{From: n, To: n + 1})
	if err != nil {
		return false
	}
	f, err := s.Open(context.Background(), extents[0].File, Limits{BatchBytes: 1 << 20, Reads: NewGate(1)})
	return err == nil && f.Close() == nil
}

// A digest that belongs to another file is told apart from damage.
func TestDigestOfAnotherVersion(t *testing.T) {
	content := eraFileOf(testChain()[:9], true)
	s := eraFolderOf(t, map[string][]byte{"test-0": content}, map[string][]byte{"test-0": []byte("another")})
	var c counter
	_, err := Fill(context.Background(), Options{Source: s, Ranges: rangesOf(s), Sink: c.open})
	var digest *era.DigestError
	if !errors.As(err, &digest) || !strings.Contains(err.Error(), "another version of the file") || c.blocks != 0 {
		t.Errorf("%d blocks, error %v", c.blocks, err)
	}
}

// TestFileChangesAfterTheCatalog replaces a file by one with other blocks, and removes it.
func TestFileChangesAfterTheCatalog(t *testing.T) {
	blocks := testChain()
	s := eraFolderOf(t, map[string][]byte{"test-0": eraFileOf(blocks[:9], true)}, nil)
	o := Options{Source: s, Ranges: rangesOf(s), Sink: func(context.Context, func(chain.Range)) Sink { return discard{} }}
	path := filepath.Join(s.path, "test-0")
	if err := os.WriteFile(path, eraFileOf(blocks[1:9], true), 0o600); err != nil {
		t.Fatal(err)
	}
	var digest *era.DigestError
	if _, err := Fill(context.Background(), o); !errors.As(err, &digest) || !strings.Contains(err.Error(), "holds blocks [1, 9) now") {
		t.Errorf("got %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := Fill(context.Background(), o); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// measured is a folder that measures the memory of the blocks between reading and adding.
type measured struct {
	*EraFolder
	mu      sync.Mutex
	held    map[uint64]int64 // memory of a batch, by its last block
	peak    int64
	batches int // at the peak
}

type measuredFile struct {
	File
	*measured
}

func (m *measured) Open(ctx context.Context, name string, limits Limits) (File, error) {
	f, err := m.EraFolder.Open(ctx, name, limits)
	return measuredFile{f, m}, err
}

func (f measuredFile) ReadBlocks(r chain.Range, buf *era.Buffer, dst []chain.Block) (int, error) {
	n, err := f.File.ReadBlocks(r, buf, dst)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held[r.From+uint64(n)-1] = buf.Memory()
	total := int64(0)
	for _, memory := range f.held {
		total += memory
	}
	if total > f.peak {
		f.peak, f.batches = total, len(f.held)
	}
	return n, err
}

// TestMemoryBound fills a chain of incompressible blocks of 10 to 60 KB with a sink that is slower
// than the workers. STO-016
func TestMemoryBound(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	blocks := make([]chain.Block, 100)
	parent := common.Hash{}
	for n := range blocks {
		blocks[n] = makeLargeBlock(uint64(n), parent, random)
		parent = blocks[n].Hash
	}
	folder := eraFolderOf(t, map[string][]byte{"test-0": eraFileOf(blocks[:70], true), "test-1": eraFileOf(blocks[70:], true)}, nil)
	for _, limit := range []int64{1, 1 << 20, 3 << 20, 1 << 30} {
		m := &measured{EraFolder: folder, held: make(map[uint64]int64)}
		var c counter
		c.onAdd = func(b *chain.Block) {
			for range 100 {
				runtime.Gosched()
			}
			m.mu.Lock()
			delete(m.held, b.Number)
			m.mu.Unlock()
		}
		_, err := Fill(context.Background(), Options{
			Source: m, Ranges: rangesOf(folder), Sink: c.open, Workers: 3, ActiveChunks: 1000, MemoryBytes: limit,
		})
		if err != nil || c.blocks != len(blocks) {
			t.Fatal(c.blocks, err)
		}
		if m.peak > limit && m.batches > 1 {
			t.Errorf("%d bytes in %d batches, at most %d are allowed", m.peak, m.batches, limit)
		}
	}
}

// TestMemoryDoesNotGrowWithTheRange compares what is allocated for a range and for one twice as
// long. STO-016
func TestMemoryDoesNotGrowWithTheRange(t *testing.T) {
	s := linked(t, map[string]string{"test-a.ere": shareddata.Path(t, "era", "mainnet", "mainnet-00000-a6860fef-noproofs.ere")})
	allocated := func(blocks uint64) (bytes, objects uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Fill(context.Background(), Options{
			Source: s, Ranges: []chain.Range{{From: 0, To: blocks}},
			Workers: 2, ActiveChunks: 3, // how many of more chunks are ever used depends on the scheduler
			Sink: func(context.Context, func(chain.Range)) Sink { return discard{} },
		})
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, after.Mallocs - before.Mallocs
	}
	allocated(4096)
	bytes1, objects1 := allocated(4096)
	bytes2, objects2 := allocated(8192)
	t.Logf("4096 blocks: %d bytes, %d objects; 8192 blocks: %d bytes, %d objects", bytes1, objects1, bytes2, objects2)
	if bytes2 > bytes1+1<<20 || objects2 > objects1+1024 {
		t.Error("allocations grow with the range")
	}
}

// TestGate reads from more goroutines than the gate lets through. SRC-009
func TestGate(t *testing.T) {
	const limit = 3
	var (
		mu            sync.Mutex
		busy, busiest int
	)
	r := NewGate(limit).ReaderAt(readerFunc(func(b []byte, _ int64) (int, error) {
		mu.Lock()
		busy++
		busiest = max(busiest, busy)
		mu.Unlock()
		for range 50 {
			runtime.Gosched()
		}
		mu.Lock()
		busy--
		mu.Unlock()
		return len(b), nil
	}))
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for range 20 {
				if n, err := r.ReadAt(make([]byte, 5), 0); n != 5 || err != nil {
					t.Error(n, err)
				}
			}
		})
	}
	readers.Wait()
	if busiest > limit {
		t.Errorf("%d reads at a time, want at most %d", busiest, limit)
	}
}

type readerFunc func([]byte, int64) (int, error)

func (f readerFunc) ReadAt(b []byte, offset int64) (int, error) { return f(b, offset) }
