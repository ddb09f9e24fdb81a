package engine

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/keys"
)

// Kind numbers the kinds of segment files.
type Kind = keys.Kind

// The kinds of segment files.
const (
	KindData    = keys.KindData
	KindIndex   = keys.KindIndex
	KindSenders = keys.KindSenders
	KindFrames  = keys.KindFrames
)

// ProfileComplete is the profile of complete material: headers, bodies and receipts of every
// block. Frames files have another one each, and no other file has.
const ProfileComplete = 0

// maximumBlock bounds block numbers, so that ranges and sums of them never overflow.
const maximumBlock = math.MaxInt64

// FileRow is the catalog row of one segment file. Rows of a snapshot are shared and
// immutable: copy a row before changing it.
//
// Kind, Profile, Level, From and Generation are its identity.
type FileRow struct {
	Kind Kind
	// Level is the merge tier of an index file, 0 for other kinds.
	Level uint8
	// Profile numbers the material that the file holds: ProfileComplete, or of frames files what
	// Engine.ProfileID gave.
	Profile uint16
	// From and To are the half-open range of blocks.
	From, To uint64
	// Generation numbers the commit that introduced the file, from 1. Commit sets it.
	Generation uint64
	// Size of the file in bytes. Commit sets it.
	Size int64
	// Transactions and Logs count what the blocks of the range hold.
	Transactions, Logs uint64
	// Digest is the footer digest of the file.
	Digest [32]byte
	// FirstHash and LastHash are the hashes of the first and the last block, ParentHash is
	// the parent of the first. Data files of one profile link by them where they touch.
	FirstHash, LastHash, ParentHash common.Hash
}

// Range is the half-open range of blocks.
func (r *FileRow) Range() chain.Range { return chain.Range{From: r.From, To: r.To} }

// Blocks counts the blocks of the range.
func (r *FileRow) Blocks() uint64 { return r.To - r.From }

// Name is the name of the file in the directory of its kind.
func (r *FileRow) Name() string { return fileName(r.key(), r.To) }

// String names the file for messages: kind and name.
func (r *FileRow) String() string { return r.Kind.String() + "/" + r.Name() }

// key is the identity of the row.
func (r *FileRow) key() keys.Segment {
	return keys.Segment{Kind: r.Kind, Profile: r.Profile, Level: r.Level, From: r.From, Generation: r.Generation}
}

// Suffixes of the files in a segment directory.
const (
	fileSuffix = ".seg"
	tempSuffix = ".tmp"
)

// fileName forms the name of a file from its identity and the end of its range.
func fileName(k keys.Segment, to uint64) string {
	b := make([]byte, 0, 64)
	b = appendPadded(b, k.From, 12)
	b = append(b, '-')
	b = appendPadded(b, to, 12)
	b = append(b, ".l"...)
	b = strconv.AppendUint(b, uint64(k.Level), 10)
	b = append(b, ".p"...)
	b = strconv.AppendUint(b, uint64(k.Profile), 10)
	b = append(b, ".g"...)
	b = appendPadded(b, k.Generation, 8)
	b = append(b, fileSuffix...)
	return string(b)
}

// appendPadded appends v in decimal with at least width digits.
func appendPadded(dst []byte, v uint64, width int) []byte {
	digits := 1
	for rest := v / 10; rest > 0; rest /= 10 {
		digits++
	}
	for ; digits < width; digits++ {
		dst = append(dst, '0')
	}
	return strconv.AppendUint(dst, v, 10)
}

// parseFileName is the inverse of fileName. It accepts a name only in exactly the form that
// fileName gives.
func parseFileName(kind Kind, name string) (k keys.Segment, to uint64, ok bool) {
	rest, found := strings.CutSuffix(name, fileSuffix)
	if !found {
		return k, 0, false
	}
	part := strings.Split(rest, ".")
	if len(part) != 4 {
		return k, 0, false
	}
	from, end, found := strings.Cut(part[0], "-")
	if !found || part[1] == "" || part[1][0] != 'l' || part[2] == "" || part[2][0] != 'p' || part[3] == "" || part[3][0] != 'g' {
		return k, 0, false
	}
	var fields [5]uint64
	for i, f := range []struct {
		text string
		bits int
	}{{from, 64}, {end, 64}, {part[1][1:], 8}, {part[2][1:], 16}, {part[3][1:], 64}} {
		v, err := strconv.ParseUint(f.text, 10, f.bits)
		if err != nil {
			return k, 0, false
		}
		fields[i] = v
	}
	k = keys.Segment{Kind: kind, From: fields[0], Level: uint8(fields[2]), Profile: uint16(fields[3]), Generation: fields[4]}
	to = fields[1]
	if fileName(k, to) != name {
		return keys.Segment{}, 0, false
	}
	return k, to, true
}

// validate checks what a row must satisfy by itself, whatever other rows there are.
func (r *FileRow) validate() error {
	switch {
	case !r.Kind.Valid():
		return fmt.Errorf("unknown kind %d", uint8(r.Kind))
	case (r.Profile != ProfileComplete) != (r.Kind == KindFrames):
		return fmt.Errorf("profile %d of a %s file", r.Profile, r.Kind)
	case r.Level != 0 && r.Kind != KindIndex:
		return fmt.Errorf("level %d of a %s file: want 0", r.Level, r.Kind)
	case r.From >= r.To:
		return fmt.Errorf("empty range %v", r.Range())
	case r.To > maximumBlock:
		return fmt.Errorf("range %v ends after block %d", r.Range(), uint64(maximumBlock))
	case r.Size <= 0:
		return fmt.Errorf("size %d bytes", r.Size)
	}
	return nil
}
