package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/zeebo/xxh3"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest"
	"github.com/leani-go/leani/ingest/era"
)

// Source serves the whole blocks of an archive to ingest.Fill. Other than Read, which goes through an object
// once, its files are read by many goroutines in any order: opening one proves the whole object and notes
// where each line lies, with a hash of it, and each line is held against its hash when it is read again.
//
// Blocks come without senders: a data set's word does not stand in for what a signature proves.
type Source struct {
	archive *Archive
	objects map[string]*Object // by path
	readers sync.Pool          // of *lineReader
}

// OpenSource reads the manifest of an archive. One of another chain is refused with a *ManifestError.
func OpenSource(manifestPath string, chainID uint64) (*Source, error) {
	a, err := Open(manifestPath)
	if err != nil {
		return nil, err
	}
	if got := a.manifest.ChainID; got != chainID {
		return nil, &ManifestError{manifestPath, fmt.Errorf("chain_id %d: the configured chain is %d", got, chainID)}
	}
	s := &Source{archive: a, objects: make(map[string]*Object)}
	s.readers.New = func() any { return new(lineReader) }
	for i := range a.manifest.Objects {
		s.objects[a.PathOf(&a.manifest.Objects[i])] = &a.manifest.Objects[i]
	}
	return s, nil
}

// Archive is the archive that the source reads.
func (s *Source) Archive() *Archive { return s.archive }

// history is what complete history needs of every block. Withdrawals are needed where the header commits to
// some, and only the block tells.
var history = chain.NewCapabilities(chain.CapabilityHeader, chain.CapabilityTransactions, chain.CapabilityReceipts)

// Plan names the objects, by their paths, that hold the blocks of r. The error is a *HoleError, or a
// *ManifestError when the archive holds no whole, final blocks.
func (s *Source) Plan(_ context.Context, r chain.Range) ([]ingest.Extent, error) {
	m := s.archive.manifest
	switch lacking := history &^ m.Complete; {
	case lacking != 0:
		return nil, &ManifestError{s.archive.path, fmt.Errorf("%w: complete_capabilities lack %s", chain.ErrNotExact, lacking)}
	case !m.Finality.Satisfies(chain.Finalized):
		return nil, &ManifestError{s.archive.path, fmt.Errorf("finality is %s: history keeps final blocks", m.Finality.Name())}
	}
	objects, err := s.archive.Select(r)
	extents := make([]ingest.Extent, len(objects))
	for i, o := range objects {
		extents[i] = ingest.Extent{File: s.archive.PathOf(o), Range: o.Range.Intersect(r), Digest: o.BLAKE3}
	}
	return extents, err
}

// Open proves an object and finds its lines, reading all of it.
func (s *Source) Open(ctx context.Context, name string, limits ingest.Limits) (ingest.File, error) {
	object, ok := s.objects[name]
	if !ok {
		return nil, fmt.Errorf("BUG: %s is not in the manifest", name)
	}
	content, err := openObject(s.archive.folder, object.Path)
	if err != nil {
		return nil, err
	}
	f := &objectFile{source: s, name: name, object: object, content: content, limits: limits, seed: rand.Uint64()}
	if err := f.open(ctx); err != nil {
		return nil, errors.Join(err, content.Close())
	}
	return f, nil
}

// lineBytesPerBlockByte bounds the length of a line by what a block may take decoded. JSON takes up to four
// characters for a byte, and a line has most bytes of a block two or three times.
const lineBytesPerBlockByte = 16

// objectFile is an open object. It does not change after open.
type objectFile struct {
	source  *Source
	name    string
	object  *Object
	content *os.File
	reads   io.ReaderAt // of content
	limits  ingest.Limits
	seed    uint64 // of the hashes of lines; nobody can know it who would change a line
	lines   []line // by block
}

// line is where the frame of a block lies.
type line struct {
	offset int64
	length int64 // without its newline
	hash   uint64
	number int // from 1
}

func (f *objectFile) open(ctx context.Context) error {
	info, err := f.content.Stat()
	if err != nil {
		return fmt.Errorf("stat archive object %s: %w", f.name, err)
	}
	f.reads = f.limits.Reads.ReaderAt(f.content)
	x := lineIndexer{limit: f.object.Range.Len(), hash: xxh3.NewSeed(f.seed), seed: f.seed, line: line{number: 1}}
	if err := proveObject(ctx, f.name, f.reads, info.Size(), f.object, x.write); err != nil {
		return err
	}
	x.end()
	f.lines = x.lines
	if x.dense != nil {
		return &CorruptError{Object: f.name, Line: x.dense.number, Offset: x.dense.offset,
			Err: fmt.Errorf("%w: more lines than frames fit in so many bytes", ErrOrder)}
	}
	if x.surplus != nil {
		return &CorruptError{Object: f.name, Line: x.surplus.number, Offset: x.surplus.offset,
			Err: fmt.Errorf("%w: a line follows that of block %d, the last", ErrOrder, f.object.Range.To-1)}
	}
	return nil
}

// shortestLine is less than the members that every frame has take, by their names alone. It bounds the lines that are
// noted, and with them the memory, by the length of the object: a few lines may be shorter and are refused when they are
// read.
const (
	shortestLine = 128
	shortLines   = 1 << 10
)

// lineIndexer finds the lines of an object that are not empty.
type lineIndexer struct {
	limit   uint64 // lines that there may be
	lines   []line
	surplus *line // the first one beyond
	dense   *line // the first one before which there were too many

	line line // the one that is being read
	text bool // it is not empty
	hash *xxh3.Hasher
	seed uint64
}

// write takes the next bytes of the object.
func (x *lineIndexer) write(b []byte) {
	for len(b) > 0 {
		part, rest, ended := bytes.Cut(b, []byte{'\n'})
		x.text = x.text || len(bytes.TrimLeft(part, " \t\r")) > 0
		_, _ = x.hash.Write(part) // never fails
		x.line.length += int64(len(part))
		if ended {
			x.end()
		}
		b = rest
	}
}

// end ends a line.
func (x *lineIndexer) end() {
	l := x.line
	l.hash = x.hash.Sum64()
	switch {
	case !x.text, x.dense != nil:
	case int64(len(x.lines)-shortLines)*shortestLine > l.offset:
		x.dense = &l
	case uint64(len(x.lines)) < x.limit:
		x.lines = append(x.lines, l)
	case x.surplus == nil:
		x.surplus = &l
	}
	x.line = line{offset: l.offset + l.length + 1, number: l.number + 1}
	x.text = false
	x.hash.ResetSeed(x.seed)
}

// Range is the run of blocks that the manifest says is in the object.
func (f *objectFile) Range() chain.Range { return f.object.Range }

// Prove does nothing: opening has compared length and digest.
func (f *objectFile) Prove(context.Context) error { return nil }

// lineOf is the line of a block, nil when the object ends before it.
func (f *objectFile) lineOf(n uint64) *line {
	if i := n - f.object.Range.From; i < uint64(len(f.lines)) {
		return &f.lines[i]
	}
	return nil
}

// Size is the length of the line of block n, and the most that it can decode to.
func (f *objectFile) Size(n uint64) (stored, decoded int64) {
	l := f.lineOf(n)
	if l == nil {
		return 0, 0
	}
	return l.length + 1, l.length/2 + arenaSlack
}

// Offset is where the line of block n begins.
func (f *objectFile) Offset(n uint64, _ chain.Parts) int64 {
	if l := f.lineOf(n); l != nil {
		return l.offset
	}
	return f.object.Bytes
}

// Close closes the object.
func (f *objectFile) Close() error { return f.content.Close() }

// ReadBlocks reads the lines of blocks, one after the other.
func (f *objectFile) ReadBlocks(r chain.Range, buf *era.Buffer, dst []chain.Block) (int, error) {
	if !f.object.Range.Covers(r) {
		return 0, fmt.Errorf("archive object %s: blocks %v of %v: %w", f.name, r, f.object.Range, era.ErrNotInFile)
	}
	count, total := f.batch(r, len(dst))
	room := buf.Room(int(total))
	reader := f.source.readers.Get().(*lineReader)
	defer f.source.readers.Put(reader)
	for i := range count {
		l := f.lineOf(r.From + uint64(i))
		if l == nil {
			return i, fmt.Errorf("%w: the object ends before it", ErrOrder)
		}
		need := f.decoded(r.From + uint64(i))
		arena := room[:0:need]
		room = room[need:]
		if err := reader.read(f, l, r.From+uint64(i), arena, &dst[i]); err != nil {
			return i, fmt.Errorf("line %d: %w", l.number, err)
		}
	}
	return count, nil
}

// batch is how many of the blocks of r are read at once, and what they can decode to.
func (f *objectFile) batch(r chain.Range, limit int) (count int, total int64) {
	for n := r.From; n < r.To && count < limit; n++ {
		l := f.lineOf(n)
		if count > 0 && l == nil {
			break
		}
		decoded := f.decoded(n)
		if count > 0 && total+decoded > int64(f.limits.BatchBytes) {
			break
		}
		count, total = count+1, total+decoded
	}
	return count, total
}

// decoded is the room that reading block n takes; none for a line that is refused.
func (f *objectFile) decoded(n uint64) int64 {
	stored, decoded := f.Size(n)
	if stored-1 > f.longest() {
		return 0
	}
	return decoded
}

// longest is the length of the longest line that is read.
func (f *objectFile) longest() int64 {
	longest := f.limits.BlockBytes * lineBytesPerBlockByte
	if m := f.limits.MemoryBytes; m > 0 {
		longest = min(longest, m)
	}
	return longest
}

// lineReader reads lines into blocks.
type lineReader struct {
	line   []byte
	parser Parser
	frame  chain.Frame
}

// read reads the line of block n into b, which aliases arena.
func (x *lineReader) read(f *objectFile, l *line, n uint64, arena []byte, b *chain.Block) error {
	if limit := f.longest(); l.length > limit {
		return &BudgetError{Limit: "resident_bytes", Need: l.length, Have: limit}
	}
	size := int(l.length) + padding
	if cap(x.line) < size {
		x.line = make([]byte, size)
	}
	x.line = x.line[:size]
	clear(x.line[l.length:])
	if n, err := f.reads.ReadAt(x.line[:l.length], l.offset); n < int(l.length) {
		return readError(f.name, err)
	}
	if xxh3.HashSeed(x.line[:l.length], f.seed) != l.hash {
		return fmt.Errorf("%w: the line changed since it was proved", ErrChecksum)
	}
	x.frame.Block = *b
	err := x.parser.Parse(x.line, arena, &x.frame)
	*b = x.frame.Block
	if err == nil {
		err = x.check(f, n)
	}
	b.Senders = b.Senders[:0]
	return err
}

// check decides whether the frame is the whole block n of its archive.
func (x *lineReader) check(f *objectFile, n uint64) error {
	p, frame := &x.parser, &x.frame
	if err := p.checkAgainst(f.source.archive.manifest); err != nil {
		return err
	}
	if frame.Number != n {
		return fmt.Errorf("%w: got block %d, want %d", ErrOrder, frame.Number, n)
	}
	if err := frame.CheckExact(p.hasWithdrawals); err != nil {
		return err
	}
	if p.hasWithdrawals && !f.source.archive.manifest.Complete.Has(chain.CapabilityWithdrawals) {
		return fmt.Errorf("%w: the manifest does not declare Withdrawals complete", chain.ErrNotExact)
	}
	if !p.hasOmmers {
		return fmt.Errorf("%w: no ommers, which the header commits to", chain.ErrNotExact)
	}
	if got := crypto.Keccak256Hash(frame.Header); got != frame.Hash {
		return fmt.Errorf("%w: hash %x, the frame says %x", ErrHash, got, frame.Hash)
	}
	if size := p.size(); size > f.limits.BlockBytes {
		return &BudgetError{Limit: "frame_bytes", Need: size, Have: f.limits.BlockBytes}
	}
	return p.checkBlooms()
}
