package ingest

import (
	"context"
	"io"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
)

// Source is a collection of files with blocks of one chain. Its methods are called from one
// goroutine at a time.
type Source interface {
	// Plan cuts the blocks of a range into the runs that single files hold, in order. When no file
	// holds some of the blocks, the error says which and satisfies Holes, and the extents are those
	// of the other blocks; without an error there are no gaps. Any other error means that nothing
	// can be read of the range, for example because the source has not the complete material that
	// a store of raw history keeps.
	Plan(ctx context.Context, r chain.Range) ([]Extent, error)
	// Open opens a file that Plan named. It may take as long as a transfer of the file does. The
	// caller closes it.
	Open(ctx context.Context, name string, limits Limits) (File, error)
}

// Holes is satisfied by errors of Source.Plan that mean no more than that the source does not hold
// some of the blocks; *era.HoleError is one.
type Holes interface {
	error
	// Holes are the runs of blocks that no file of the source holds, in order.
	Holes() []chain.Range
}

// Extent is a run of blocks in one file.
type Extent struct {
	File  string // unique in its source; errors name it
	Range chain.Range
	// Digest is what the source lists of the file's content, zero when it lists none.
	Digest [32]byte
}

// Limits are what a run asks of the files that it opens.
type Limits struct {
	// BatchBytes bounds what a ReadBlocks call decodes, and apart from that what it reads. A call
	// always reads at least one block.
	BatchBytes int
	// BlockBytes bounds what one block can take decoded.
	BlockBytes int64
	// MemoryBytes is what all blocks between source and sink may take together; 0 is no bound. The stored form of
	// one block, where that has to be held, may not be longer.
	MemoryBytes int64
	// Reads is passed by every read of stored bytes.
	Reads *Gate
}

// File is an open file of a source. It is safe for concurrent use.
type File interface {
	// Range is the run of blocks in the file.
	Range() chain.Range
	// Prove reads the whole content and compares it with what was published about it. A
	// difference is an *era.DigestError.
	Prove(ctx context.Context) error
	// Size is how many bytes block n takes in the file, and the most that it can take decoded.
	Size(n uint64) (stored, decoded int64)
	// ReadBlocks decodes the blocks of r from its start on, as many as dst has room for and
	// the limit of a batch allows, and returns how many: at least one when r is not empty and there
	// is no error. With an error the blocks before the bad one are returned too, as far as they
	// could be read. The blocks hold all parts that the file has and alias buf.
	ReadBlocks(r chain.Range, buf *era.Buffer, dst []chain.Block) (int, error)
	// Offset is the place in the file, in bytes, of the record with a part of block n.
	Offset(n uint64, part chain.Parts) int64
	// Close releases the file. Nothing uses it any more.
	Close() error
}

// Gate bounds how many reads of stored bytes run at the same time.
type Gate struct {
	slots chan struct{}
}

// NewGate makes a gate for n reads at a time.
func NewGate(n int) *Gate { return &Gate{slots: make(chan struct{}, n)} }

// ReaderAt is r with every read passing the gate.
func (g *Gate) ReaderAt(r io.ReaderAt) io.ReaderAt { return gatedReader{g, r} }

type gatedReader struct {
	gate *Gate
	r    io.ReaderAt
}

func (g gatedReader) ReadAt(b []byte, offset int64) (int, error) {
	g.gate.slots <- struct{}{}
	defer func() { <-g.gate.slots }()
	return g.r.ReadAt(b, offset)
}
