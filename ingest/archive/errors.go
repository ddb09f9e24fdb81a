package archive

import (
	"errors"
	"fmt"
	"strings"

	"github.com/leani-go/leani/chain"
)

// ManifestError says that a manifest cannot be used: it is no manifest, contradicts itself, or is of
// another chain. Nothing was read of its objects.
type ManifestError struct {
	Path string
	Err  error
}

// Error names the manifest and what is wrong.
func (e *ManifestError) Error() string { return fmt.Sprintf("archive manifest %s: %v", e.Path, e.Err) }

// Unwrap gives the cause.
func (e *ManifestError) Unwrap() error { return e.Err }

// CorruptError says that an object is not what its manifest says, and where. Frames before that place are
// good.
type CorruptError struct {
	Object string // path
	Line   int    // from 1; 0 for the whole object
	Offset int64  // of the line, in bytes
	Err    error
}

// Error names object, line and cause.
func (e *CorruptError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("archive object %s: %v", e.Object, e.Err)
	}
	return fmt.Sprintf("archive object %s: line %d: offset %d: %v", e.Object, e.Line, e.Offset, e.Err)
}

// Unwrap gives the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// Causes in a CorruptError.
var (
	// ErrLength: the object has another length than the manifest says.
	ErrLength = errors.New("length differs from the manifest")
	// ErrChecksum: the content has another BLAKE3 digest than the manifest says, or changed while it was
	// read.
	ErrChecksum = errors.New("BLAKE3 digest differs from the manifest")
	// ErrOrder: a frame is missing, there twice, not in order, or not one of the object's blocks.
	ErrOrder = errors.New("blocks are not one after the other")
	// ErrParent: a frame does not follow the one before it.
	ErrParent = errors.New("parent hash differs from the hash of the frame before")
	// ErrChain: a frame is of another chain.
	ErrChain = errors.New("chain differs from the manifest")
	// ErrFinality: a frame has another finality.
	ErrFinality = errors.New("finality differs from the manifest")
	// ErrSchema: a frame says that it has another schema.
	ErrSchema = errors.New("schema differs from the manifest")
	// ErrMaterial: a frame lacks material that the manifest declares complete.
	ErrMaterial = errors.New("material differs from the manifest")
	// ErrHash: the header of a frame does not have the hash, or the fields, that the frame says.
	ErrHash = errors.New("header differs from the frame's block")
)

// BudgetError says that a read needs more than it was allowed.
type BudgetError struct {
	Object string // path, empty where the caller says it
	Limit  string // which: input_bytes, resident_bytes, frame_bytes, normalized_frame_bytes or frames
	Need   int64  // at least
	Have   int64
}

// Error names the object, the limit and both values.
func (e *BudgetError) Error() string {
	text := fmt.Sprintf("%s: needs %d, %d are allowed", e.Limit, e.Need, e.Have)
	if e.Object == "" {
		return text
	}
	return fmt.Sprintf("archive object %s: %s", e.Object, text)
}

// PathError says that the path of an object leads where no object may lie.
type PathError struct {
	Object string // path
	Err    error
}

// Error names the path and the reason.
func (e *PathError) Error() string { return fmt.Sprintf("archive object %s: %v", e.Object, e.Err) }

// Unwrap gives the cause.
func (e *PathError) Unwrap() error { return e.Err }

// Causes in a PathError.
var (
	// ErrSymlink: a component below the manifest's directory is a symbolic link.
	ErrSymlink = errors.New("is a symbolic link, which objects must not be behind")
	// ErrNotRegular: it is a directory, device, pipe or socket.
	ErrNotRegular = errors.New("is not a regular file")
)

// HoleError says that no object of an archive holds some blocks.
type HoleError struct {
	Manifest string
	Missing  []chain.Range // in order
}

// Error lists the missing blocks.
func (e *HoleError) Error() string {
	var b strings.Builder
	for i, r := range e.Missing {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d to %d", r.From, r.To-1)
	}
	return fmt.Sprintf("archive %s: no object holds blocks %s", e.Manifest, &b)
}

// Holes are the missing runs of blocks.
func (e *HoleError) Holes() []chain.Range { return e.Missing }
