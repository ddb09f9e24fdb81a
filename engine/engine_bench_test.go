package engine

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
)

// fill commits n data files of one block each, without waiting for the disk.
func fill(b *testing.B, opts Options, n int) {
	b.Helper()
	opts.FS = noSyncFS{vfs.Default}
	e := mustOpen(b, opts)
	defer mustClose(b, e)
	var add []NewRow
	for i := range uint64(n) {
		row, err := pendingOf(e, KindData, 0, chain.Range{From: i, To: i + 1}, []byte("content"))
		if err != nil {
			b.Fatal(err)
		}
		if err := row.File.seal(); err != nil { // gives the descriptor back
			b.Fatal(err)
		}
		add = append(add, row)
	}
	mustCommit(b, e, nil, add...)
}

// BenchmarkEngineOpen10k asks how long a store of 10,000 segment files takes to open, recovery
// and the check of every file's size included, on the file system of the machine.
func BenchmarkEngineOpen10k(b *testing.B) {
	opts := Options{Dir: b.TempDir(), ChainID: testChain}
	fill(b, opts, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		mustClose(b, mustOpen(b, opts))
	}
}

// BenchmarkEngineCommit asks what one commit of a data file costs, on a store that already has
// the given number of files: without the disk (what the catalog costs) and with its syncs.
func BenchmarkEngineCommit(b *testing.B) {
	for _, n := range []int{0, 10_000} {
		for _, synced := range []bool{false, true} {
			b.Run(fmt.Sprintf("files=%d/synced=%v", n, synced), func(b *testing.B) {
				opts := Options{Dir: b.TempDir(), ChainID: testChain}
				if n > 0 {
					fill(b, opts, n)
				}
				if !synced {
					opts.FS = noSyncFS{vfs.Default}
				}
				e := mustOpen(b, opts)
				defer mustClose(b, e)
				content := make([]byte, 64<<10)
				b.ReportAllocs()
				next := uint64(n)
				for b.Loop() {
					row, err := pendingOf(e, KindData, 0, chain.Range{From: next, To: next + 1}, content)
					if err != nil {
						b.Fatal(err)
					}
					mustCommit(b, e, nil, row)
					next++
				}
			})
		}
	}
}

// BenchmarkEngineAcquire asks what a query pays for its snapshot and one look-up, in parallel.
func BenchmarkEngineAcquire(b *testing.B) {
	opts := Options{Dir: b.TempDir(), ChainID: testChain}
	fill(b, opts, 10_000)
	e := mustOpen(b, opts)
	defer mustClose(b, e)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for n := uint64(0); pb.Next(); n++ {
			s := e.Acquire()
			if _, ok := s.DataFile(n % 10_000); !ok {
				b.Fail()
			}
			s.Release()
		}
	})
}

// noSyncFS is the file system of the machine without its syncs.
type noSyncFS struct{ vfs.FS }

func (f noSyncFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	return noSyncFile{file}, err
}

func (f noSyncFS) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	return noSyncFile{file}, err
}

type noSyncFile struct{ vfs.File }

func (noSyncFile) Sync() error                { return nil }
func (noSyncFile) SyncData() error            { return nil }
func (noSyncFile) SyncTo(int64) (bool, error) { return false, nil }
