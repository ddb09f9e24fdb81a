package era

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/bloom"
)

// Buffer owns the memory of the blocks that one ReadBlocks call yields. They are valid until
// the Buffer is used again. It grows to what the largest call needed and allocates nothing
// after that. The zero value is ready; one goroutine may use it at a time.
type Buffer struct {
	stored []byte  // records as in the file
	plain  []byte  // decompressed
	places []place // of the extents in stored, by block and slot
	pieces []pieces
	bits   bloom.Memo     // era1 only
	blooms []*types.Bloom // era1 only
	check  []types.Bloom  // era1 only
}

// place is where the extent of a record, or of the records of an era1 block, lies.
type place struct {
	position int   // in Buffer.stored
	offset   int64 // in the file
	extent   int   // bytes
}

// piece is one framed component of a block.
type piece struct {
	framed []byte
	offset int64 // of its record in the file
	size   int   // bytes after decompression
}

// pieces are the components of a block that can be decompressed; those not read have no
// framed bytes.
type pieces [componentReceipts + 1]piece

// ReadBlock fills b with the given parts of block n, as ReadBlocks does.
func (f *File) ReadBlock(n uint64, parts chain.Parts, buf *Buffer, b *chain.Block) error {
	if !f.info.Range.Contains(n) {
		return fmt.Errorf("era file %s: block %d of %v: %w", f.name, n, f.info.Range, ErrNotInFile)
	}
	_, err := f.read(chain.Range{From: n, To: n + 1}, 1, parts, buf, func(int) *chain.Block { return b })
	return err
}

// ReadBlocks fills dst with the blocks of r from its start on, as many as dst has room for and
// the limit of a batch allows, with few large reads, and returns how many they are: at least
// one when r is not empty and there is no error. With an error the blocks before the bad one
// are returned too.
//
// The header is always filled in; parts selects transactions, ommers and withdrawals, which
// come together, and receipts. HasReceipts is set only where receipts were asked for and the
// file holds them. Of the BlockRef the Hash stays zero, and there are neither transaction
// hashes nor senders: verification supplies them.
//
// The error is a *CorruptError, ErrNotInFile (wrapped) or that of a read. Blocks alias buf.
func (f *File) ReadBlocks(r chain.Range, parts chain.Parts, buf *Buffer, dst []chain.Block) (int, error) {
	return f.read(r, len(dst), parts, buf, func(i int) *chain.Block { return &dst[i] })
}

func (f *File) read(r chain.Range, limit int, parts chain.Parts, buf *Buffer, dst func(int) *chain.Block) (int, error) {
	if r.Empty() || limit == 0 {
		return 0, nil
	}
	if !f.info.Range.Covers(r) {
		return 0, fmt.Errorf("era file %s: blocks %v of %v: %w", f.name, r, f.info.Range, ErrNotInFile)
	}
	r.To = min(r.To, r.From+uint64(limit))
	r, failure := f.load(r, parts, buf)
	count, total, err := f.locate(r, parts, buf)
	if err != nil {
		failure = err
	}
	buf.plain = slices.Grow(buf.plain[:0], total)[:total]
	free := buf.plain
	for i := range count {
		b := dst(i)
		b.Reset()
		if free, err = f.fill(b, r.From+uint64(i), &buf.pieces[i], buf, free); err != nil {
			return i, err
		}
	}
	return count, failure
}

// slotsFor lists the slots of the index that hold the given parts.
func (f *File) slotsFor(parts chain.Parts) (slots [componentReceipts + 1]int, n int) {
	if f.info.Layout == Era1 {
		return slots, 1
	}
	for c := componentHeader; c <= componentReceipts; c++ {
		if wants(parts, c) && f.slots[c] != noSlot {
			slots[n] = f.slots[c]
			n++
		}
	}
	return slots, n
}

// wants tells whether a component is needed for the given parts.
func wants(parts chain.Parts, c component) bool {
	switch c {
	case componentHeader:
		return true
	case componentBody:
		return parts&(chain.PartTransactions|chain.PartTransactionHashes|chain.PartSenders|chain.PartOmmers|chain.PartWithdrawals) != 0
	case componentReceipts:
		return parts&chain.PartReceipts != 0
	}
	return false
}

func (f *File) storedBytes(block uint64, parts chain.Parts) int64 {
	slots, n := f.slotsFor(parts)
	var total int64
	for _, slot := range slots[:n] {
		start, end := f.extent(block, slot)
		total += end - start
	}
	return total
}

// load reads the records of the blocks of r into buf.stored: of as many as the batch limit
// allows, which it returns. Records that follow each other in the file are read at once. When a
// block is too large for any batch, the range ends before it and the error says so.
func (f *File) load(r chain.Range, parts chain.Parts, buf *Buffer) (chain.Range, error) {
	var failure error
	total := int64(0)
	for n := r.From; n < r.To; n++ {
		size := f.storedBytes(n, parts)
		// Snappy output exceeds its input by at most a sixth, frames by far less.
		if size > int64(f.options.MaximumBlockBytes)+int64(f.options.MaximumBlockBytes)/4+chunkMaximum {
			start, _ := f.extent(n, 0)
			failure = f.corrupt(n, start, fmt.Errorf("%w: %d bytes in the file", ErrTooLarge, size))
			r.To = n
			break
		}
		if n > r.From && total+size > int64(f.options.MaximumBatchBytes) {
			r.To = n
			break
		}
		total += size
	}
	buf.stored = slices.Grow(buf.stored[:0], int(total))[:total]
	slots, count := f.slotsFor(parts)
	buf.places = slices.Grow(buf.places[:0], int(r.Len())*count)[:int(r.Len())*count]

	position := 0
	for i, slot := range slots[:count] {
		runStart, runEnd := int64(0), int64(0) // in the file; the run's bytes end at position
		flush := func() error {
			length := int(runEnd - runStart)
			if length == 0 {
				return nil
			}
			return readFull(f.name, f.r, buf.stored[position-length:position], runStart)
		}
		for n := r.From; n < r.To; n++ {
			start, end := f.extent(n, slot)
			if start != runEnd {
				if err := flush(); err != nil {
					return chain.Range{}, err
				}
				runStart = start
			}
			runEnd = end
			buf.places[int(n-r.From)*count+i] = place{position: position, offset: start, extent: int(end - start)}
			position += int(end - start)
		}
		if err := flush(); err != nil {
			return chain.Range{}, err
		}
	}
	return r, failure
}

// locate finds the framed components of the blocks of r in buf.stored and how much they
// decompress to: of as many blocks as the batch limit allows. It returns their number and
// total size; with an error the blocks before the bad one are counted.
func (f *File) locate(r chain.Range, parts chain.Parts, buf *Buffer) (count, total int, err error) {
	buf.pieces = slices.Grow(buf.pieces[:0], int(r.Len()))[:r.Len()]
	clear(buf.pieces)
	_, slots := f.slotsFor(parts)
	for count < len(buf.pieces) {
		block := r.From + uint64(count)
		list := &buf.pieces[count]
		places := buf.places[count*slots : (count+1)*slots]
		if f.info.Layout == Era1 {
			err = f.locateInterleaved(block, parts, buf, places[0], list)
		} else {
			err = f.locateGrouped(block, parts, buf, places, list)
		}
		if err != nil {
			return count, total, err
		}
		size := 0
		for c := range list {
			p := &list[c]
			if p.framed == nil {
				continue
			}
			if p.size, err = framedSize(p.framed); err != nil {
				return count, total, f.badFrame(block, p, err)
			}
			if size += p.size; size > f.options.MaximumBlockBytes {
				err = fmt.Errorf("%w: more than %d bytes after decompression", ErrTooLarge, f.options.MaximumBlockBytes)
				return count, total, f.corrupt(block, p.offset, err)
			}
		}
		if count > 0 && total+size > f.options.MaximumBatchBytes {
			return count, total, nil
		}
		total += size
		count++
	}
	return count, total, nil
}

// locateGrouped finds the components of a block of an EraE file, one in each place.
func (f *File) locateGrouped(block uint64, parts chain.Parts, buf *Buffer, places []place, list *pieces) error {
	for c := componentHeader; c <= componentReceipts; c++ {
		if !wants(parts, c) || f.slots[c] == noSlot {
			continue
		}
		p := places[0]
		places = places[1:]
		data := buf.stored[p.position : p.position+p.extent]
		r, err := expect(data, f.tags[c], int64(p.extent))
		if err != nil {
			return f.corrupt(block, p.offset, err)
		}
		list[c] = piece{framed: data[recordHeaderSize : recordHeaderSize+r.length], offset: p.offset}
	}
	return nil
}

// locateInterleaved finds the components of a block of an era1 file, which follow each other
// in one place.
func (f *File) locateInterleaved(block uint64, parts chain.Parts, buf *Buffer, p place, list *pieces) error {
	data := buf.stored[p.position : p.position+p.extent]
	offset := p.offset
	for c := componentHeader; c <= componentDifficulty; c++ {
		r, err := expect(data, f.tags[c], int64(len(data)))
		if err == nil && c == componentDifficulty && r.length != wordSize {
			err = fmt.Errorf("total difficulty of %d bytes", r.length)
		}
		if err != nil {
			return f.corrupt(block, offset, err)
		}
		if c <= componentReceipts && wants(parts, c) {
			list[c] = piece{framed: data[recordHeaderSize : recordHeaderSize+r.length], offset: offset}
		}
		data = data[recordHeaderSize+r.length:]
		offset += recordHeaderSize + r.length
	}
	return nil
}

// badFrame places an error of the framed data of a piece in the file.
func (f *File) badFrame(block uint64, p *piece, err error) error {
	offset := p.offset
	var frame *frameError
	if errors.As(err, &frame) {
		offset += recordHeaderSize + int64(frame.offset)
	}
	return f.corrupt(block, offset, err)
}
