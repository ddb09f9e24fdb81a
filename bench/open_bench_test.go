package bench

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/shareddata"
)

// manyBlocks is the number of data files of the store with many files.
const manyBlocks = 10_000

// manyFilesStore makes the store with many files, or finds it made.
func manyFilesStore(b *testing.B) string {
	b.Helper()
	dir := os.Getenv(dirVariable)
	if dir == "" {
		dir = stores.temporary
	}
	dir = filepath.Join(dir, "many-files")
	mark := filepath.Join(dir, markFile)
	if _, err := os.Stat(mark); err == nil {
		return dir
	}
	if err := os.RemoveAll(dir); err != nil {
		b.Fatal(err)
	}
	b.Logf("making a store with %d data files", manyBlocks)
	s, err := OpenStore(StoreOptions{Dir: dir, ChainID: CorpusChainID, TargetBlocks: 1})
	if err != nil {
		b.Fatal(err)
	}
	err = NewCorpus(1, manyBlocks).WriteManyFiles(b.Context(), s)
	if err := errors.Join(err, s.Close()); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		b.Fatal(err)
	}
	return dir
}

// BenchmarkOpenManyFiles asks how long a store of 10,000 data files takes to open, recovery included,
// and its first query after that: the head, the newest 100 blocks, one contract in all blocks. The
// files are in the system's cache, or were dropped from it. An operation is opening, one query, closing.
func BenchmarkOpenManyFiles(b *testing.B) {
	dir := manyFilesStore(b)
	c := NewCorpus(1, manyBlocks)
	tip := chain.Range{From: manyBlocks - 100, To: manyBlocks}
	popular := chain.LogFilter{Addresses: c.fixed[:1]}
	rare := chain.LogFilter{Addresses: c.fixed[firstRare-1 : firstRare]}
	rare.Addresses[0] = c.contractAddress(firstRare + corpusRareKept + 2000)
	for _, first := range []struct {
		name  string
		query func(s *Store) error
	}{
		{"Head", func(s *Store) error { return askOnce(b, s, chain.Range{}, nil) }},
		{"Tip", func(s *Store) error { return askOnce(b, s, tip, &popular) }},
		{"RareEverywhere", func(s *Store) error { return askOnce(b, s, chain.Range{To: manyBlocks}, &rare) }},
	} {
		for _, cached := range []bool{true, false} {
			name := first.name + "/Cached"
			if !cached {
				name = first.name + "/FromDevice"
			}
			b.Run(name, func(b *testing.B) {
				var open, query Times
				for b.Loop() {
					if !cached {
						b.StopTimer()
						if err := DropFileCache(dir); err != nil {
							b.Skip(err)
						}
						b.StartTimer()
					}
					start := time.Now()
					s, err := OpenStore(StoreOptions{Dir: dir, TargetBlocks: 1})
					if err != nil {
						b.Fatal(err)
					}
					open = append(open, time.Since(start))
					start = time.Now()
					if err := first.query(s); err != nil {
						b.Fatal(err)
					}
					query = append(query, time.Since(start))
					if err := s.Close(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(microseconds(open.Median())/1000, "open-ms")
				b.ReportMetric(microseconds(query.Median())/1000, "query-ms")
			})
		}
	}
}

// askOnce opens a view and counts the logs of a filter; nil asks for the head alone.
func askOnce(b *testing.B, s *Store, r chain.Range, f *chain.LogFilter) error {
	v, err := s.History.View()
	if err != nil {
		return err
	}
	defer v.Close()
	if head, ok := v.Head(); !ok || head != manyBlocks-1 {
		b.Fatalf("got head %v %t", head, ok)
	}
	if f == nil {
		return nil
	}
	n := 0
	if err := v.Logs(b.Context(), r, f, func(*chain.FoundLog) error { n++; return nil }); err != nil {
		return err
	}
	if n == 0 {
		b.Fatal("got no logs")
	}
	return nil
}

// BenchmarkEngineCommit asks what it costs to make one more block durable and visible at the head of a
// store: build a data file and an index file, read the data file back, sync both, rename, commit the
// catalog. An operation is one block of 432 logs. What the commit alone costs, and how it grows with
// the number of files, is measured in package engine.
func BenchmarkEngineCommit(b *testing.B) {
	s, err := OpenStore(StoreOptions{Dir: b.TempDir(), ChainID: CorpusChainID, TargetBlocks: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	cpu := ProcessorTime()
	w := s.History.NewWriter(b.Context(), nil)
	err = NewCorpus(1, uint64(b.N)).Each(b.Context(), func(block *chain.Block) error {
		if err := w.Add(block); err != nil {
			return err
		}
		return w.Cut()
	})
	if err := errors.Join(err, w.Close(err != nil)); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64((ProcessorTime()-cpu).Microseconds())/float64(b.N), "cpu-us/op")
	b.StopTimer()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkCorpusWrite asks how fast the store takes blocks that are verified already: columns, index,
// comparison with what was added, commit. An operation is one block of the corpus, which is made
// meanwhile by another goroutine.
func BenchmarkCorpusWrite(b *testing.B) {
	s, err := OpenStore(StoreOptions{Dir: b.TempDir(), ChainID: CorpusChainID})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	cpu := ProcessorTime()
	if err := NewCorpus(1, uint64(b.N)).WriteTo(b.Context(), s, nil); err != nil {
		b.Fatal(err)
	}
	used := ProcessorTime() - cpu
	b.StopTimer()
	b.ReportMetric(float64(s.Space().Logs)/used.Seconds(), "logs/cpu-s")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "blocks/s")
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// maximumBinary is the size that the node's binary may have.
const maximumBinary = 80 << 20

// The binary stays small enough to be copied about.
func TestBinarySize(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, links the node: left out with -short")
	}
	path := filepath.Join(t.TempDir(), "leani")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/leani")
	cmd.Dir = shareddata.Root(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the node: %v\n%s", err, out)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the binary has %.1f MiB", float64(info.Size())/(1<<20))
	if info.Size() > maximumBinary {
		t.Errorf("the binary has %d bytes, it may have %d", info.Size(), maximumBinary)
	}
}
