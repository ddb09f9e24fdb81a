package era

import (
	"errors"
	"fmt"
	"strings"
)

// NoBlock is the Block of a CorruptError that concerns a whole file.
const NoBlock = ^uint64(0)

// CorruptError says that a file is not what it should be, and where.
type CorruptError struct {
	// File is the name that the file was opened with.
	File string
	// Block is the number of the block whose data is bad, NoBlock when the damage lies in the
	// file's index or outside of any block.
	Block uint64
	// Offset is the position in the file of the record, chunk or index entry that is bad.
	// Where the damage shows only after decompression it is that of the record, and Err gives
	// the place in the decompressed data.
	Offset int64
	// Err says what is wrong.
	Err error
}

// Error writes file, block, offset and cause.
func (e *CorruptError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "era file %s: ", e.File)
	if e.Block != NoBlock {
		fmt.Fprintf(&b, "block %d: ", e.Block)
	}
	fmt.Fprintf(&b, "offset %d: %v", e.Offset, e.Err)
	return b.String()
}

// Unwrap gives the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// ErrTooLarge is the cause in a CorruptError for a block above the limit of Options.
var ErrTooLarge = errors.New("block is larger than the limit")

// ErrNotInFile means that a block was asked of a file that does not hold it.
var ErrNotInFile = errors.New("block is not in the era file")
