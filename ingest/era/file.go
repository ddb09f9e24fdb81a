package era

import (
	"errors"
	"fmt"
	"io"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/regular"
)

// component is a kind of data that a file can hold for each block.
type component uint8

const (
	componentHeader component = iota
	componentBody
	componentReceipts
	componentDifficulty
	componentProof
	components
)

// String names the component for error texts.
func (c component) String() string {
	return [components]string{"header", "body", "receipts", "total difficulty", "proof"}[c]
}

// componentOf returns the component of an EraE record.
func componentOf(t tag) (component, bool) {
	switch t {
	case tagHeader:
		return componentHeader, true
	case tagBody:
		return componentBody, true
	case tagSlimReceipts, tagSlimReceiptsDraft:
		return componentReceipts, true
	case tagTotalDifficulty:
		return componentDifficulty, true
	case tagProof, tagProofDraft:
		return componentProof, true
	}
	return 0, false
}

// noSlot marks a component that the file does not have.
const noSlot = -1

// File is an open era file. It is immutable and safe for concurrent use.
type File struct {
	name    string
	r       io.ReaderAt
	closer  io.Closer // nil when the reader is the caller's
	options Options
	info    Info
	extents *extents
	slots   [components]int // slot of each component, EraE only
	tags    [components]tag // record tag of each component
	// tails are the ends of the last indexed record of each slot, which the gap to the next
	// indexed record would overstate where unindexed records follow.
	tails [maximumSlots]int64
}

// Open reads and checks the index of an era file. The name is for errors only. The reader
// stays the caller's; it must serve concurrent reads if the File is to. The error is a
// *CorruptError or that of a read.
func Open(name string, r io.ReaderAt, size int64, o Options) (*File, error) {
	info, err := Probe(name, r, size)
	if err != nil {
		return nil, err
	}
	f := &File{name: name, r: r, options: o.withDefaults(), info: info}
	if f.extents, err = loadExtents(name, r, info); err != nil {
		return nil, err
	}
	for c := range f.slots {
		f.slots[c] = noSlot
	}
	if info.Layout == Era1 {
		err = f.detectEra1()
	} else {
		err = f.detectEraE()
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// OpenPath opens the era file at a path of the file system. Close closes it.
func OpenPath(path string, o Options) (*File, error) {
	file, err := regular.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open era file: %w", err)
	}
	stat, err := file.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open era file: %w", err), file.Close())
	}
	f, err := Open(path, file, stat.Size(), o)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	f.closer = file
	return f, nil
}

// detectEra1 sets the tags, which are fixed in this layout, and finds where the last block
// ends.
func (f *File) detectEra1() error {
	f.tags = [components]tag{tagHeader, tagBody, tagReceipts, tagTotalDifficulty}
	last := f.info.Range.To - 1
	offset, end := f.extent(last, 0)
	for _, c := range []component{componentHeader, componentBody, componentReceipts, componentDifficulty} {
		r, err := f.recordAt(last, offset, f.tags[c], end-offset)
		if err != nil {
			return err
		}
		offset += recordHeaderSize + r.length
	}
	f.tails[0] = offset
	return nil
}

// detectEraE finds out which component each slot of the index holds, by the tags of the
// records of the first block, and where the last record of each ends.
func (f *File) detectEraE() error {
	first, last := f.info.Range.From, f.info.Range.To-1
	for slot := range f.info.slots {
		offset, _ := f.extent(first, slot)
		var b [recordHeaderSize]byte
		if err := readFull(f.name, f.r, b[:], offset); err != nil {
			return err
		}
		r, err := parseRecord(b[:])
		if err != nil {
			return f.corrupt(first, offset, err)
		}
		c, ok := componentOf(r.tag)
		if !ok {
			return f.corrupt(first, offset, fmt.Errorf("index slot %d holds records of unknown tag %v", slot, r.tag))
		}
		if f.slots[c] != noSlot {
			return f.corrupt(first, offset, fmt.Errorf("index slots %d and %d both hold the %v", f.slots[c], slot, c))
		}
		f.slots[c], f.tags[c] = slot, r.tag

		offset, end := f.extent(last, slot)
		if r, err = f.recordAt(last, offset, r.tag, end-offset); err != nil {
			return err
		}
		f.tails[slot] = offset + recordHeaderSize + r.length
	}
	for _, c := range []component{componentHeader, componentBody} {
		if f.slots[c] == noSlot {
			return f.corrupt(NoBlock, f.info.index, fmt.Errorf("no index slot holds the %v", c))
		}
	}
	return nil
}

// recordAt reads the header of a record that must have the given tag and lie within extent
// bytes.
func (f *File) recordAt(block uint64, offset int64, want tag, extent int64) (record, error) {
	if extent < recordHeaderSize {
		return record{}, f.corrupt(block, offset, fmt.Errorf("no room for a record %v", want))
	}
	var b [recordHeaderSize]byte
	if err := readFull(f.name, f.r, b[:], offset); err != nil {
		return record{}, err
	}
	r, err := expect(b[:], want, extent)
	if err != nil {
		return record{}, f.corrupt(block, offset, err)
	}
	return r, nil
}

// extent is the part of the file that belongs to a slot of a block.
func (f *File) extent(block uint64, slot int) (start, end int64) {
	i := int(block - f.info.Range.From)
	start = f.extents.starts[f.info.slots*i+slot]
	if block == f.info.Range.To-1 && f.tails[slot] != 0 {
		return start, f.tails[slot]
	}
	return start, f.extents.end(start)
}

// Name is the name that the file was opened with.
func (f *File) Name() string { return f.name }

// Layout is the kind of file.
func (f *File) Layout() Layout { return f.info.Layout }

// Range is the run of blocks in the file, at least one and at most 8192.
func (f *File) Range() chain.Range { return f.info.Range }

// HasReceipts tells whether the file holds receipts.
func (f *File) HasReceipts() bool { return f.tags[componentReceipts] != 0 }

// HasTotalDifficulty tells whether the file holds the total difficulty of its blocks, as files
// with blocks before the merge do.
func (f *File) HasTotalDifficulty() bool { return f.tags[componentDifficulty] != 0 }

// StoredBytes is how much of the file ReadBlocks reads for the given parts of the blocks of r
// that are in the file. It serves to cut work into pieces of similar size.
func (f *File) StoredBytes(r chain.Range, parts chain.Parts) int64 {
	r = r.Intersect(f.info.Range)
	var total int64
	for n := r.From; n < r.To; n++ {
		total += f.storedBytes(n, parts)
	}
	return total
}

// Close closes the file if OpenPath opened it.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

func (f *File) corrupt(block uint64, offset int64, err error) error {
	return &CorruptError{File: f.name, Block: block, Offset: offset, Err: err}
}
