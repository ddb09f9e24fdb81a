package era

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// ErrAbsent means that a file does not hold the optional record that was asked for.
var ErrAbsent = errors.New("not in the era file")

// TotalDifficulty reads the total difficulty of block n: the sum of the difficulties up to
// and with it. It makes up to four small reads. The error is ErrAbsent (wrapped) where the file
// has none.
func (f *File) TotalDifficulty(n uint64) (uint256.Int, error) {
	if !f.info.Range.Contains(n) {
		return uint256.Int{}, fmt.Errorf("era file %s: block %d of %v: %w", f.name, n, f.info.Range, ErrNotInFile)
	}
	if !f.HasTotalDifficulty() {
		return uint256.Int{}, fmt.Errorf("era file %s: total difficulty: %w", f.name, ErrAbsent)
	}
	var offset, end int64
	if f.info.Layout == EraE {
		offset, end = f.extent(n, f.slots[componentDifficulty])
	} else {
		offset, end = f.extent(n, 0)
		for c := componentHeader; c < componentDifficulty; c++ {
			r, err := f.recordAt(n, offset, f.tags[c], end-offset)
			if err != nil {
				return uint256.Int{}, err
			}
			offset += recordHeaderSize + r.length
		}
	}
	word, err := f.word(n, offset, tagTotalDifficulty, end-offset)
	if err != nil {
		return uint256.Int{}, err
	}
	slices.Reverse(word[:]) // little endian in the file
	var v uint256.Int
	v.SetBytes32(word[:])
	return v, nil
}

// Accumulator reads the root of the header accumulator over the blocks of the file before the
// merge (EIP-7643), which is the last record before the index. The error is ErrAbsent (wrapped)
// where there is none.
func (f *File) Accumulator() (common.Hash, error) {
	offset := f.info.index - recordHeaderSize - wordSize
	if offset >= f.extents.sorted[len(f.extents.sorted)-2] {
		var b [recordHeaderSize]byte
		if err := readFull(f.name, f.r, b[:], offset); err != nil {
			return common.Hash{}, err
		}
		if r, err := parseRecord(b[:]); err == nil && r.tag == tagAccumulator {
			return f.word(NoBlock, offset, tagAccumulator, f.info.index-offset)
		}
	}
	return common.Hash{}, fmt.Errorf("era file %s: accumulator: %w", f.name, ErrAbsent)
}

// word reads a record of 32 bytes.
func (f *File) word(block uint64, offset int64, want tag, extent int64) (common.Hash, error) {
	r, err := f.recordAt(block, offset, want, extent)
	if err != nil {
		return common.Hash{}, err
	}
	if r.length != wordSize {
		return common.Hash{}, f.corrupt(block, offset, fmt.Errorf("record %v has %d bytes of data, not %d", want, r.length, wordSize))
	}
	var word common.Hash
	return word, readFull(f.name, f.r, word[:], offset+recordHeaderSize)
}

// Accumulator computes the root of a header accumulator, block by block: the SSZ hash tree
// root of a list of up to 8192 pairs of block hash and total difficulty. It proves that a run
// of headers before the merge belongs to the chain that published the root. The zero value is
// empty; one goroutine may use it at a time.
type Accumulator struct {
	leaves []common.Hash
}

// Add appends a block with its hash and the total difficulty after it.
func (a *Accumulator) Add(hash common.Hash, totalDifficulty *uint256.Int) error {
	if len(a.leaves) == maximumBlocks {
		return fmt.Errorf("header accumulator is full with %d blocks", maximumBlocks)
	}
	difficulty := common.Hash(totalDifficulty.Bytes32())
	slices.Reverse(difficulty[:])
	a.leaves = append(a.leaves, pair(hash, difficulty))
	return nil
}

// Root returns the root over the blocks added so far.
func (a *Accumulator) Root() common.Hash {
	level := slices.Clone(a.leaves)
	var zero common.Hash // root of an empty subtree of the level
	for width := maximumBlocks; width > 1; width /= 2 {
		if len(level)%2 == 1 {
			level = append(level, zero)
		}
		for i := range len(level) / 2 {
			level[i] = pair(level[2*i], level[2*i+1])
		}
		level = level[:len(level)/2]
		zero = pair(zero, zero)
	}
	root := zero
	if len(level) == 1 {
		root = level[0]
	}
	var length common.Hash
	binary.LittleEndian.PutUint64(length[:], uint64(len(a.leaves)))
	return pair(root, length)
}

// Reset empties the accumulator and keeps its memory.
func (a *Accumulator) Reset() { a.leaves = a.leaves[:0] }

// pair is the SSZ parent of two chunks.
func pair(left, right common.Hash) common.Hash {
	var both [2 * common.HashLength]byte
	copy(both[:], left[:])
	copy(both[common.HashLength:], right[:])
	return sha256.Sum256(both[:])
}
