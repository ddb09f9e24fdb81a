package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
)

// fault is what is wrong with a block or a file of a fake source.
type fault int

const (
	faultNone       fault = iota
	faultCorrupt          // cannot be decoded; the blocks before it in a batch can
	faultRead             // no batch with the block can be read
	faultReceipts         // a receipt differs: the receipts root does not match
	faultNoReceipts       // the file has no receipts for it
	faultParent           // another block, right by itself, with another parent
	faultNumber           // another block, right by itself, with another number
	blockFaults

	faultOpen   // the file cannot be opened
	faultDigest // the file's digest differs
)

var (
	errFakeRead = errors.New("bad sector")
	errFakeOpen = errors.New("no such file")
)

// fakeSource serves the test chain out of made-up files and records how it is used. Whenever
// something takes time it calls pause with its name.
type fakeSource struct {
	blocks []chain.Block
	files  []*fakeFile
	faults map[uint64]fault // by block
	pause  func(label string)
	limits Limits // of the last Open

	mu      sync.Mutex
	busy    int // calls that read at this moment
	busiest int
	memory  map[*era.Buffer][]byte // what the blocks of a buffer alias
	open    int
	opens   int
}

type fakeFile struct {
	source *fakeSource
	name   string
	blocks chain.Range
	fault  fault
	batch  int

	proofs int // calls of Prove
	proven bool
}

// newFakeSource makes a source whose files begin at block 0 and at the given blocks.
func newFakeSource(starts ...uint64) *fakeSource {
	s := &fakeSource{blocks: testChain(), faults: make(map[uint64]fault), pause: func(string) {}, memory: make(map[*era.Buffer][]byte)}
	begin := uint64(0)
	for _, end := range append(slices.Clone(starts), testBlocks) {
		s.files = append(s.files, &fakeFile{source: s, name: fmt.Sprintf("file-%d", begin), blocks: chain.Range{From: begin, To: end}})
		begin = end
	}
	return s
}

func (s *fakeSource) fileOf(n uint64) *fakeFile {
	for _, f := range s.files {
		if f.blocks.Contains(n) {
			return f
		}
	}
	return nil
}

func (s *fakeSource) Plan(_ context.Context, r chain.Range) ([]Extent, error) {
	var (
		extents []Extent
		hole    era.HoleError
	)
	next := r.From
	gap := func(to uint64) {
		if next < to {
			hole.Missing = append(hole.Missing, chain.Range{From: next, To: to})
		}
	}
	for _, f := range s.files {
		if part := f.blocks.Intersect(r); !part.Empty() {
			gap(part.From)
			extents, next = append(extents, Extent{File: f.name, Range: part}), part.To
		}
	}
	if gap(r.To); len(hole.Missing) > 0 {
		return extents, &hole
	}
	return extents, nil
}

func (s *fakeSource) Open(_ context.Context, name string, limits Limits) (File, error) {
	s.limits = limits
	for _, f := range s.files {
		if f.name != name {
			continue
		}
		s.pause("open " + name)
		if f.fault == faultOpen {
			return nil, errFakeOpen
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open++
		s.opens++
		f.batch = limits.BatchBytes
		return f, nil
	}
	return nil, errors.New("not planned")
}

// enter counts a call that works, until the returned function is called.
func (s *fakeSource) enter(label string) func() {
	s.mu.Lock()
	s.busy++
	s.busiest = max(s.busiest, s.busy)
	s.mu.Unlock()
	s.pause(label)
	return func() {
		s.mu.Lock()
		s.busy--
		s.mu.Unlock()
	}
}

func (f *fakeFile) Range() chain.Range { return f.blocks }

func (f *fakeFile) Prove(context.Context) error {
	defer f.source.enter("prove " + f.name)()
	f.source.mu.Lock()
	defer f.source.mu.Unlock()
	f.proofs++
	if f.fault == faultDigest {
		return &era.DigestError{File: f.name}
	}
	f.proven = true
	return nil
}

func (f *fakeFile) Size(n uint64) (stored, decoded int64) {
	decoded = decodedSize(&f.source.blocks[n])
	return decoded / 2, 2 * decoded
}

func decodedSize(b *chain.Block) int64 {
	total := len(b.Header) + 100*len(b.Logs)
	for _, t := range b.Transactions {
		total += len(t)
	}
	return int64(total)
}

func (f *fakeFile) Offset(n uint64, part chain.Parts) int64 { return int64(n)*1000 + int64(part) }

func (f *fakeFile) Close() error {
	f.source.mu.Lock()
	defer f.source.mu.Unlock()
	f.source.open--
	return nil
}

func (f *fakeFile) ReadBlocks(r chain.Range, buf *era.Buffer, dst []chain.Block) (int, error) {
	defer f.source.enter(fmt.Sprint("read ", r))()
	if !f.blocks.Covers(r) {
		return 0, era.ErrNotInFile
	}
	r.To = min(r.To, r.From+uint64(len(dst)))
	for n := r.From; n < r.To; n++ {
		if f.source.faults[n] == faultRead {
			return 0, errFakeRead
		}
	}
	f.source.mu.Lock()
	defer f.source.mu.Unlock()
	// Whoever still reads the blocks that this buffer held before sees this.
	memory := f.source.memory[buf]
	for i := range memory {
		memory[i] = 0xee
	}
	memory = make([]byte, 0, 64<<10)
	defer func() { f.source.memory[buf] = memory }()
	total := int64(0)
	for i := range int(r.Len()) {
		n := r.From + uint64(i)
		b := f.source.blocks[n]
		if total += decodedSize(&b); i > 0 && total > int64(f.batch) {
			return i, nil
		}
		switch f.source.faults[n] {
		case faultCorrupt:
			return i, &era.CorruptError{File: f.name, Block: n, Offset: f.Offset(n, 0), Err: errFakeRead}
		case faultParent:
			b = otherBlock(n, common.Hash{1})
		case faultNumber:
			b = otherBlock(n+1, b.ParentHash)
		}
		dst[i].Reset()
		fillFrom(&dst[i], &b, &memory)
		switch f.source.faults[n] {
		case faultReceipts:
			dst[i].Receipts = append(dst[i].Receipts, chain.Receipt{LogsEnd: uint32(len(dst[i].Logs))})
			dst[i].Transactions = append(dst[i].Transactions, []byte{0xc0})
		case faultNoReceipts:
			dst[i].HasReceipts, dst[i].Receipts, dst[i].Logs = false, nil, nil
		}
	}
	return int(r.Len()), nil
}

// fillFrom makes dst a copy of b as a source gives it: without what verification adds, and with its
// bytes in memory.
func fillFrom(dst, b *chain.Block, memory *[]byte) {
	copied := func(v []byte) []byte {
		if v == nil {
			return nil
		}
		start := len(*memory)
		*memory = append(*memory, v...)
		return (*memory)[start:len(*memory):len(*memory)]
	}
	dst.Header, dst.Ommers, dst.Withdrawals, dst.HasReceipts = copied(b.Header), copied(b.Ommers), copied(b.Withdrawals), true
	for _, t := range b.Transactions {
		dst.Transactions = append(dst.Transactions, copied(t))
	}
	dst.Receipts = append(dst.Receipts, b.Receipts...)
	for _, l := range b.Logs {
		l.Address = (*common.Address)(copied(l.Address[:]))
		for i := range l.NumTopics {
			l.Topics[i] = (*common.Hash)(copied(l.Topics[i][:]))
		}
		l.Data = copied(l.Data)
		dst.Logs = append(dst.Logs, l)
	}
}

// contentOf is everything in a block, one after the other.
func contentOf(b *chain.Block) []byte {
	out := fmt.Appendf(nil, "%d %d %x %x %t %d %d", b.Number, b.Timestamp, b.Hash, b.ParentHash, b.HasReceipts, len(b.Transactions), len(b.Logs))
	out = append(append(append(out, b.Header...), b.Ommers...), b.Withdrawals...)
	for i, t := range b.Transactions {
		out = append(append(out, t...), b.TransactionHashes[i][:]...)
	}
	for i := range b.Receipts {
		out = fmt.Append(out, b.Receipts[i])
	}
	for i := range b.Logs {
		l := &b.Logs[i]
		out = append(append(out, l.Address[:]...), l.NumTopics)
		for _, t := range l.Topics[:l.NumTopics] {
			out = append(out, t[:]...)
		}
		out = append(out, l.Data...)
	}
	return out
}

// testContents are the contents of the test chain.
var testContents = sync.OnceValue(func() (contents [][]byte) {
	for _, b := range testChain() {
		contents = append(contents, contentOf(&b))
	}
	return contents
})

// fakeSink records what it is given. It has the runs of a real one: aligned, and sealed one behind
// the other.
type fakeSink struct {
	source *fakeSource
	align  uint64
	pause  func(label string)

	failAdd, failCut int // the call that fails, counted from 1; 0 for none

	ctx       context.Context
	committed func(chain.Range)
	adds      int
	cuts      int
	run       []uint64 // the open run
	sealing   []uint64
	added     []uint64
	durable   []uint64
	closed    int
	problem   error // the first breach of the contract
}

var errFakeSink = errors.New("disk full")

func (s *fakeSink) open(ctx context.Context, committed func(chain.Range)) Sink {
	s.ctx, s.committed = ctx, committed
	return s
}

func (s *fakeSink) breach(format string, args ...any) {
	if s.problem == nil {
		s.problem = fmt.Errorf(format, args...)
	}
}

func (s *fakeSink) Add(b *chain.Block) error {
	s.pause("add")
	if s.adds++; s.adds == s.failAdd {
		return errFakeSink
	}
	want := s.source.blocks[b.Number]
	if !s.source.fileOf(b.Number).proven {
		s.breach("block %d is added before its file is proven", b.Number)
	}
	got := *b
	got.Senders = nil
	if !bytes.Equal(contentOf(b), testContents()[b.Number]) {
		s.breach("block %d differs from the source: %s", b.Number, cmp.Diff(want, got, cmpopts.EquateEmpty()))
	}
	if n := len(s.run); n > 0 && (b.Number%s.align == 0 || s.run[n-1]+1 != b.Number) {
		if err := s.Cut(); err != nil {
			return err
		}
	}
	s.run = append(s.run, b.Number)
	s.added = append(s.added, b.Number)
	return nil
}

func (s *fakeSink) Cut() error {
	s.pause("cut")
	if s.cuts++; s.cuts == s.failCut {
		s.wait()
		return errFakeSink
	}
	s.wait()
	s.sealing, s.run = s.run, nil
	return nil
}

// wait finishes the run before, if its context still allows.
func (s *fakeSink) wait() {
	if n := len(s.sealing); n > 0 && s.ctx.Err() == nil {
		s.durable = append(s.durable, s.sealing...)
		s.committed(chain.Range{From: s.sealing[0], To: s.sealing[n-1] + 1})
	}
	s.sealing = nil
}

func (s *fakeSink) Pending() int { return len(s.run) }

func (s *fakeSink) Close(discard bool) error {
	s.pause("close")
	s.closed++
	if discard {
		s.wait()
		s.run = nil
		return nil
	}
	if err := s.Cut(); err != nil {
		return err
	}
	s.wait()
	return s.ctx.Err()
}
