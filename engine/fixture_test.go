package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
)

const (
	testDir   = "/data/store"
	testChain = 1337
)

// blockHash is the hash of block n of the test chain. Block 0 has a parent too.
func blockHash(n uint64) common.Hash {
	return sha256.Sum256(binary.BigEndian.AppendUint64([]byte("block"), n))
}

// newRow describes a file of the test chain with the given content.
func newRow(kind Kind, level uint8, r chain.Range, content []byte) FileRow {
	return FileRow{
		Kind: kind, Level: level, From: r.From, To: r.To,
		Transactions: r.Len() * 3, Logs: r.Len() * 5,
		Digest:     sha256.Sum256(content),
		FirstHash:  blockHash(r.From),
		LastHash:   blockHash(r.To - 1),
		ParentHash: blockHash(r.From - 1),
	}
}

// randomContent gives 1 to 9,000 bytes: up to three blocks of the crashable file system.
func randomContent(rng *rand.Rand) []byte {
	b := make([]byte, 1+rng.IntN(9000))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func testOptions(fs vfs.FS) Options {
	return Options{FS: fs, Dir: testDir, ChainID: testChain, CacheBytes: 1 << 20, noReaper: true}
}

func mustOpen(t testing.TB, opts Options) *Engine {
	t.Helper()
	e, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func mustClose(t testing.TB, e *Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// pendingOf writes a file of the test chain.
func pendingOf(e *Engine, kind Kind, level uint8, r chain.Range, content []byte) (NewRow, error) {
	p, err := e.NewFile(kind)
	if err != nil {
		return NewRow{}, err
	}
	// Two writes, so that an interruption can leave a part. Write may scribble on its input.
	half := len(content) / 2
	for _, part := range [][]byte{content[:half], content[half:]} {
		if len(part) == 0 {
			continue
		}
		if _, err := p.Write(bytes.Clone(part)); err != nil {
			_ = p.Abort()
			return NewRow{}, err
		}
	}
	row := newRow(kind, level, r, content)
	if kind == KindFrames {
		err = asFrames(e, &row)
	}
	return NewRow{File: p, Row: row}, err
}

func mustPending(t testing.TB, e *Engine, kind Kind, level uint8, from, to uint64) NewRow {
	t.Helper()
	row, err := pendingOf(e, kind, level, chain.Range{From: from, To: to}, fmt.Appendf(nil, "%s %d %d %d", kind, level, from, to))
	if err != nil {
		t.Fatal(err)
	}
	return row
}

func mustCommit(t testing.TB, e *Engine, remove []*FileRow, add ...NewRow) {
	t.Helper()
	if err := e.Commit(context.Background(), Edit{Add: add, Remove: remove}); err != nil {
		t.Fatal(err)
	}
}

// mustCheck fails the test unless Check is clean, contents included.
func mustCheck(t testing.TB, e *Engine) *CheckReport {
	t.Helper()
	report, err := e.Check(context.Background(), CheckOptions{File: checkContent})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Problems {
		t.Errorf("check: %s", p)
	}
	return report
}

// checkContent compares the digest of a test file.
func checkContent(_ context.Context, row *FileRow, f *File) error {
	content, err := readAll(f)
	if err != nil {
		return err
	}
	if got := sha256.Sum256(content); got != row.Digest {
		return fmt.Errorf("digest: got %x want %x", got[:4], row.Digest[:4])
	}
	return nil
}

func readAll(f *File) ([]byte, error) {
	return io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
}

// rowAt finds the live row of a kind and level that begins at a block.
func rowAt(t testing.TB, e *Engine, kind Kind, level uint8, from uint64) *FileRow {
	t.Helper()
	s := e.Acquire()
	defer s.Release()
	for _, r := range s.Rows(kind) {
		if r.Level == level && r.From == from {
			return r
		}
	}
	t.Fatalf("no %s file of level %d at block %d", kind, level, from)
	return nil
}

// reap deletes retired files now, as the reaper does.
func (e *Engine) reap() error {
	if err := e.lockCommit(context.Background()); err != nil {
		return err
	}
	defer e.unlockCommit()
	return e.reapLocked()
}
