package era

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/leani-go/leani/chain"
)

// Layout is the kind of an era file.
type Layout uint8

// The layouts. Files of the older EraE draft count as EraE.
const (
	Era1 Layout = iota + 1 // interleaved components, canonical receipts
	EraE                   // grouped components, slim receipts
)

// String names the layout.
func (l Layout) String() string {
	switch l {
	case Era1:
		return "era1"
	case EraE:
		return "EraE"
	}
	return fmt.Sprintf("layout %d", uint8(l))
}

// Info is what the end of a file says about it.
type Info struct {
	Layout Layout
	Range  chain.Range // the blocks in the file

	slots int   // indexed components of a block
	index int64 // offset of the index record
}

// A component index has 2 to 5 slots: header and body, and receipts, total difficulty and
// proof where present.
const (
	minimumSlots = 2
	maximumSlots = 5
)

// Sizes of the parts of an index record in bytes: the first block number and the block count
// of both layouts, and the component count of EraE.
const (
	startSize      = 8
	offsetSize     = 8
	countSize      = 8
	slotsSize      = 8
	minimumTrailer = countSize + slotsSize
)

// Probe reads layout and block range from the end of a file and checks that the file begins
// with a version record. It makes three small reads and is all that a catalog needs.
func Probe(name string, r io.ReaderAt, size int64) (Info, error) {
	corrupt := func(offset int64, err error) (Info, error) {
		return Info{}, &CorruptError{File: name, Block: NoBlock, Offset: offset, Err: err}
	}
	var head [recordHeaderSize]byte
	if size < recordHeaderSize+minimumTrailer {
		return corrupt(0, errTooShort(size))
	}
	if err := readFull(name, r, head[:], 0); err != nil {
		return Info{}, err
	}
	if v, err := expect(head[:], tagVersion, recordHeaderSize); err != nil {
		return corrupt(0, err)
	} else if v.length != 0 {
		return corrupt(0, fmt.Errorf("version record has %d bytes of data", v.length))
	}
	return ProbeIndex(name, r, size)
}

func errTooShort(size int64) error { return fmt.Errorf("%d bytes are too few for an era file", size) }

// ProbeIndex is Probe without the look at the start of the file. It makes two small reads, the first
// one of the last 16 bytes; where reads are slow, as over a network, that is enough to plan with.
func ProbeIndex(name string, r io.ReaderAt, size int64) (Info, error) {
	corrupt := func(offset int64, err error) (Info, error) {
		return Info{}, &CorruptError{File: name, Block: NoBlock, Offset: offset, Err: err}
	}
	if size < recordHeaderSize+minimumTrailer {
		return corrupt(0, errTooShort(size))
	}
	var trailer [minimumTrailer]byte
	if err := readFull(name, r, trailer[:], size-minimumTrailer); err != nil {
		return Info{}, err
	}
	blocks := binary.LittleEndian.Uint64(trailer[slotsSize:])
	if blocks == 0 || blocks > maximumBlocks {
		return corrupt(size-countSize, fmt.Errorf("index of %d blocks; 1 to %d are possible", blocks, maximumBlocks))
	}
	// In era1 the word before the count is an offset, which is negative: it cannot be mistaken
	// for a number of components.
	info := Info{Layout: Era1, slots: 1}
	length := startSize + offsetSize*int64(blocks) + countSize
	want := tagBlockIndex
	if slots := binary.LittleEndian.Uint64(trailer[:]); minimumSlots <= slots && slots <= maximumSlots {
		info = Info{Layout: EraE, slots: int(slots)}
		length = startSize + offsetSize*int64(blocks*slots) + slotsSize + countSize
		want = tagDynamicBlockIndex
	}
	info.index = size - length - recordHeaderSize
	if info.index < recordHeaderSize {
		return corrupt(size-minimumTrailer, fmt.Errorf("index of %d blocks does not fit in a file of %d bytes", blocks, size))
	}
	var start [recordHeaderSize + startSize]byte
	if err := readFull(name, r, start[:], info.index); err != nil {
		return Info{}, err
	}
	if got, err := expect(start[:], want, size-info.index); err != nil {
		return corrupt(info.index, fmt.Errorf("index: %w", err))
	} else if got.length != length {
		return corrupt(info.index, fmt.Errorf("index record of %d bytes, %d to the end of the file", got.length, length))
	}
	first := binary.LittleEndian.Uint64(start[recordHeaderSize:])
	if first > math.MaxUint64-blocks {
		return corrupt(info.index+recordHeaderSize, fmt.Errorf("first block %d of %d is out of range", first, blocks))
	}
	info.Range = chain.Range{From: first, To: first + blocks}
	return info, nil
}

// extents are the places of all indexed records.
type extents struct {
	slots int
	// starts holds the file offset of slot s of the i-th block at slots*i+s.
	starts []int64
	// sorted holds the same offsets in order, and the offset of the index after them.
	sorted []int64
}

// end is where the extent that starts at the given offset ends: at the next indexed record.
func (e *extents) end(start int64) int64 {
	i, _ := slices.BinarySearch(e.sorted, start)
	return e.sorted[i+1]
}

// loadExtents reads the offsets of the index and checks that they are distinct and point
// between the version record and the index.
func loadExtents(name string, r io.ReaderAt, info Info) (*extents, error) {
	count := int(info.Range.Len()) * info.slots
	place := info.index + recordHeaderSize + startSize
	raw := make([]byte, offsetSize*count)
	if err := readFull(name, r, raw, place); err != nil {
		return nil, err
	}
	e := &extents{slots: info.slots, starts: make([]int64, count), sorted: make([]int64, count+1)}
	for i := range e.starts {
		// Offsets are signed and relative to the first byte of the index record.
		relative := int64(binary.LittleEndian.Uint64(raw[offsetSize*i:]))
		if relative < recordHeaderSize-info.index || relative > -recordHeaderSize {
			return nil, &CorruptError{
				File: name, Block: info.Range.From + uint64(i/info.slots), Offset: place + int64(offsetSize*i),
				Err: fmt.Errorf("index offset %d points outside of the records", relative),
			}
		}
		e.starts[i] = info.index + relative
	}
	copy(e.sorted, e.starts)
	e.sorted[count] = info.index
	slices.Sort(e.sorted)
	for i := range e.sorted[1:] {
		if e.sorted[i+1]-e.sorted[i] < recordHeaderSize {
			return nil, &CorruptError{
				File: name, Block: NoBlock, Offset: e.sorted[i],
				Err: fmt.Errorf("indexed records at %d and %d overlap", e.sorted[i], e.sorted[i+1]),
			}
		}
	}
	return e, nil
}

// readFull reads exactly len(b) bytes. Failing to is an I/O error, not corruption: the size
// was known beforehand.
func readFull(name string, r io.ReaderAt, b []byte, offset int64) error {
	n, err := r.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read era file %s: offset %d: %w", name, offset+int64(n), err)
}
