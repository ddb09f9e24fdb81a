package era

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/golang/snappy"
	"github.com/holiman/uint256"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/header"
	"github.com/leani-go/leani/internal/receipt"
	"github.com/leani-go/leani/internal/rlp"
)

// MaximumBlocks is how many blocks an era file holds at most.
const MaximumBlocks = maximumBlocks

// BlockReader gives blocks to write. It fills dst with the parts of block n; what dst aliases stays valid until
// the next call.
type BlockReader func(ctx context.Context, n uint64, parts chain.Parts, dst *chain.Block) error

// WriteOptions configure Write.
type WriteOptions struct {
	// ParentDifficulty is the total difficulty of the block before the first one, which files with blocks
	// before the merge need; it is added to. Zero for a file from block 0.
	ParentDifficulty uint256.Int
	// OnBlock is told after each block that was written in full; it may be nil.
	OnBlock func()
}

// Written says what Write wrote.
type Written struct {
	LastHash common.Hash
	// TotalDifficulty is that of the last block before the merge in the file: the ParentDifficulty of the
	// file that follows.
	TotalDifficulty uint256.Int
	Bytes           int64
}

// Write writes an EraE file with receipts and without proofs over a range of up to MaximumBlocks blocks:
// byte for byte what go-ethereum v1.17 exports. Components are grouped, so that the blocks are read three
// times; memory holds one block and the offsets. The blocks are not verified.
//
// The layout: Version, Headers, Bodies, SlimReceipts; where the first block is before the merge (its
// difficulty is not 0) TotalDifficulties, of which blocks after the merge repeat the last, and the
// accumulator over the blocks before the merge; DynamicBlockIndex.
func Write(ctx context.Context, out io.Writer, r chain.Range, read BlockReader, o WriteOptions) (Written, error) {
	if r.Empty() || r.Len() > maximumBlocks {
		return Written{}, fmt.Errorf("write era file: %d blocks in %v; 1 to %d are possible", r.Len(), r, maximumBlocks)
	}
	w := &fileWriter{out: out, compressor: snappy.NewBufferedWriter(nil), total: o.ParentDifficulty}
	if err := w.write(ctx, r, read, o); err != nil {
		return Written{}, fmt.Errorf("write era file of blocks %v: %w", r, err)
	}
	return Written{LastHash: w.last, TotalDifficulty: w.total, Bytes: w.offset}, nil
}

// fileWriter writes the records of one file.
type fileWriter struct {
	out    io.Writer
	offset int64

	compressor *snappy.Writer
	framed     bytes.Buffer
	plain      []byte

	last    common.Hash
	total   uint256.Int // of the blocks before the merge so far
	words   []uint256.Int
	before  int // blocks before the merge
	root    Accumulator
	offsets [componentDifficulty + 1][]int64
}

func (w *fileWriter) write(ctx context.Context, r chain.Range, read BlockReader, o WriteOptions) error {
	if err := w.record(tagVersion, nil); err != nil {
		return err
	}
	var b chain.Block
	for _, section := range []struct {
		component component
		tag       tag
		parts     chain.Parts
		encode    func(dst []byte, b *chain.Block) ([]byte, error)
	}{
		{componentHeader, tagHeader, chain.PartHeader, w.header},
		{componentBody, tagBody, chain.PartTransactions | chain.PartOmmers | chain.PartWithdrawals, appendBody},
		{componentReceipts, tagSlimReceipts, chain.PartReceipts, appendReceipts},
	} {
		for n := r.From; n < r.To; n++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := read(ctx, n, section.parts, &b); err != nil {
				return err
			}
			var err error
			if w.plain, err = section.encode(w.plain[:0], &b); err != nil {
				return fmt.Errorf("block %d: %w", n, err)
			}
			if err := w.compressed(section.component, section.tag, w.plain); err != nil {
				return err
			}
			if section.component == componentReceipts && o.OnBlock != nil {
				o.OnBlock()
			}
		}
	}
	if len(w.words) > 0 {
		if err := w.difficulties(); err != nil {
			return err
		}
	}
	return w.index(r)
}

// header takes the header of the next block.
func (w *fileWriter) header(dst []byte, b *chain.Block) ([]byte, error) {
	var h header.Header
	if err := header.Parse(b.Header, &h); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	w.last = crypto.Keccak256Hash(b.Header)
	first := len(w.offsets[componentHeader]) == 0
	switch merged := len(h.Difficulty) == 0; {
	case !merged && !first && w.before < len(w.offsets[componentHeader]):
		return nil, errors.New("it has a difficulty and follows a block without")
	case !merged:
		var d uint256.Int
		d.SetBytes(h.Difficulty)
		if _, overflow := w.total.AddOverflow(&w.total, &d); overflow {
			return nil, errors.New("total difficulty passes 256 bits")
		}
		w.before++
		w.words = append(w.words, w.total)
		if err := w.root.Add(w.last, &w.total); err != nil {
			return nil, err
		}
	case len(w.words) > 0:
		w.words = append(w.words, w.total)
	}
	return append(dst, b.Header...), nil
}

// appendBody appends the list of transactions, ommers and, where the block has them, withdrawals.
func appendBody(dst []byte, b *chain.Block) ([]byte, error) {
	transactions := 0
	for _, tx := range b.Transactions {
		if len(tx) == 0 {
			return nil, errors.New("empty transaction")
		}
		transactions += transactionSize(tx)
	}
	dst = rlp.AppendListHeader(dst, rlp.SizeList(transactions)+len(b.Ommers)+len(b.Withdrawals))
	dst = rlp.AppendListHeader(dst, transactions)
	for _, tx := range b.Transactions {
		if isLegacy(tx) {
			dst = append(dst, tx...)
		} else {
			dst = rlp.AppendString(dst, tx)
		}
	}
	dst = append(dst, b.Ommers...)
	return append(dst, b.Withdrawals...), nil
}

// isLegacy tells a bare list from an envelope with a type (EIP-2718).
func isLegacy(tx []byte) bool { return tx[0] >= 0xc0 }

func transactionSize(tx []byte) int {
	if isLegacy(tx) {
		return len(tx)
	}
	return rlp.SizeString(tx)
}

func appendReceipts(dst []byte, b *chain.Block) ([]byte, error) {
	if !b.HasReceipts {
		return nil, errors.New("no receipts")
	}
	return receipt.AppendSlim(dst, b), nil
}

// difficulties writes the total difficulty of each block and the accumulator.
func (w *fileWriter) difficulties() error {
	for i := range w.words {
		w.offsets[componentDifficulty] = append(w.offsets[componentDifficulty], w.offset)
		word := w.words[i].Bytes32()
		slices.Reverse(word[:])
		if err := w.record(tagTotalDifficulty, word[:]); err != nil {
			return err
		}
	}
	root := w.root.Root()
	return w.record(tagAccumulator, root[:])
}

// index writes the record with the offsets, which are relative to its own first byte.
func (w *fileWriter) index(r chain.Range) error {
	le := binary.LittleEndian
	slots := uint64(0)
	for _, list := range w.offsets {
		if len(list) > 0 {
			slots++
		}
	}
	b := le.AppendUint64(nil, r.From)
	for i := range r.Len() {
		for _, list := range w.offsets {
			if len(list) > 0 {
				b = le.AppendUint64(b, uint64(list[i]-w.offset))
			}
		}
	}
	b = le.AppendUint64(b, slots)
	b = le.AppendUint64(b, r.Len())
	return w.record(tagDynamicBlockIndex, b)
}

// compressed writes a record of a block in the framed Snappy format.
func (w *fileWriter) compressed(c component, t tag, plain []byte) error {
	w.framed.Reset()
	w.compressor.Reset(&w.framed)
	if _, err := w.compressor.Write(plain); err != nil {
		return err
	}
	if err := w.compressor.Flush(); err != nil {
		return err
	}
	w.offsets[c] = append(w.offsets[c], w.offset)
	return w.record(t, w.framed.Bytes())
}

func (w *fileWriter) record(t tag, data []byte) error {
	if int64(len(data)) > maximumRecord {
		return fmt.Errorf("record %v of %d bytes; readers take up to %d", t, len(data), int64(maximumRecord))
	}
	var head [recordHeaderSize]byte
	binary.BigEndian.PutUint16(head[:], uint16(t))
	binary.LittleEndian.PutUint32(head[2:], uint32(len(data)))
	for _, part := range [][]byte{head[:], data} {
		n, err := w.out.Write(part)
		w.offset += int64(n)
		if err != nil {
			return err
		}
	}
	return nil
}

// maximumRecord is the largest record that go-ethereum reads (e2store, valueSizeLimit).
const maximumRecord = 50 << 20

// FileName is the name of an EraE file without proofs: chain, number of the era that its first block lies
// in, and the first four bytes of the hash of its last block.
func FileName(chainName string, first uint64, last common.Hash) string {
	return fmt.Sprintf("%s-%05d-%x-noproofs.ere", chainName, first/maximumBlocks, last[:4])
}
