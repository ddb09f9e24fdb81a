package era

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/holiman/uint256"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/header"
	"github.com/leani-go/leani/internal/shareddata"
)

// readerOf reads blocks of a file.
func readerOf(f *File) BlockReader {
	buf := new(Buffer)
	return func(_ context.Context, n uint64, _ chain.Parts, dst *chain.Block) error {
		return f.ReadBlock(n, chain.PartsAll, buf, dst)
	}
}

// parentDifficulty is the total difficulty before the first block of a file.
func parentDifficulty(t *testing.T, f *File) (total uint256.Int) {
	t.Helper()
	if !f.HasTotalDifficulty() {
		return total
	}
	total, err := f.TotalDifficulty(f.Range().From)
	if err != nil {
		t.Fatal(err)
	}
	var b chain.Block
	if err := f.ReadBlock(f.Range().From, chain.PartHeader, new(Buffer), &b); err != nil {
		t.Fatal(err)
	}
	var d uint256.Int
	d.SetBytes(parsedDifficulty(t, b.Header))
	total.Sub(&total, &d)
	return total
}

// Files that go-ethereum wrote come out byte for byte: before the merge, across it, after it, of Mainnet and
// of other chains.
func TestWriteEqualsGeth(t *testing.T) {
	for _, pattern := range []string{"era/mainnet/*.ere", "era/rpc-compat-chain/*.ere", "era/mainnet-mini/*.ere", "era/sepolia/*-noproofs.ere", "chainlab-800/*.ere"} {
		paths, err := filepath.Glob(filepath.Join(shareddata.Path(t), pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no files, %v", pattern, err)
		}
		for _, path := range paths {
			t.Run(filepath.Base(path), func(t *testing.T) {
				f, err := OpenPath(path, Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				raw, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				var out bytes.Buffer
				blocks := 0
				w, err := Write(t.Context(), &out, f.Range(), readerOf(f), WriteOptions{ParentDifficulty: parentDifficulty(t, f), OnBlock: func() { blocks++ }})
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(out.Bytes(), raw) {
					t.Errorf("%d bytes with sha256 %x, want %d with %x; they differ at %d", out.Len(), sha256.Sum256(out.Bytes()), len(raw), sha256.Sum256(raw), firstDifference(out.Bytes(), raw))
				}
				if w.Bytes != int64(len(raw)) || blocks != int(f.Range().Len()) {
					t.Errorf("%d bytes and %d blocks are reported", w.Bytes, blocks)
				}
			})
		}
	}
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// What cannot be a file is refused, and what the source or the sink says is passed on.
func TestWriteRefuses(t *testing.T) {
	var reads int
	blocks := func(context.Context, uint64, chain.Parts, *chain.Block) error { reads++; return io.ErrUnexpectedEOF }
	for _, r := range []chain.Range{{}, {From: 5, To: 5}, {From: 0, To: 8193}} {
		if _, err := Write(t.Context(), io.Discard, r, blocks, WriteOptions{}); err == nil || reads > 0 {
			t.Errorf("%v: %v after %d reads", r, err, reads)
		}
	}
	if _, err := Write(t.Context(), io.Discard, chain.Range{From: 0, To: 8192}, blocks, WriteOptions{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Write(cancelled, io.Discard, chain.Range{From: 0, To: 5}, blocks, WriteOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func parsedDifficulty(t *testing.T, encoded []byte) []byte {
	t.Helper()
	var h header.Header
	if err := header.Parse(encoded, &h); err != nil {
		t.Fatal(err)
	}
	return h.Difficulty
}
