package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/leani-go/leani/keys"
)

// This file holds the value encodings of docs/formats/store.md. Decoders check lengths,
// versions and flags and never panic; what a value means together with other rows is checked
// by catalog.verify.

// formatVersion is the version of the store's format that this build writes:
//
//	1  data, senders and index files
//	2  recent blocks in the database; frames files and profiles; the file GENERATION
const formatVersion = 2

// Version bytes of the values that carry one.
const (
	segmentValueVersion = 1
	retiredValueVersion = 1
)

// Lengths of the values in bytes.
const (
	epochLength         = 16
	secretLength        = 32
	segmentValueLength  = 1 + 1 + 4*8 + 4*32
	retiredValueLength  = 1 + 8 + 8
	coverageValueLength = 8 + 1
)

var errValueLength = errors.New("wrong length of value")

func checkValueLength(value []byte, want int) error {
	if len(value) != want {
		return fmt.Errorf("%w: got %d bytes want %d", errValueLength, len(value), want)
	}
	return nil
}

// appendSegmentValue appends the catalog row without what its key says.
func appendSegmentValue(dst []byte, r *FileRow) []byte {
	dst = append(dst, segmentValueVersion, 0)
	dst = binary.BigEndian.AppendUint64(dst, r.To)
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.Size))
	dst = binary.BigEndian.AppendUint64(dst, r.Transactions)
	dst = binary.BigEndian.AppendUint64(dst, r.Logs)
	dst = append(dst, r.Digest[:]...)
	dst = append(dst, r.FirstHash[:]...)
	dst = append(dst, r.LastHash[:]...)
	return append(dst, r.ParentHash[:]...)
}

// decodeSegmentRow decodes a catalog row from its key and value. The row does not alias value.
func decodeSegmentRow(k keys.Segment, value []byte) (*FileRow, error) {
	if err := checkValueLength(value, segmentValueLength); err != nil {
		return nil, err
	}
	if value[0] != segmentValueVersion {
		return nil, fmt.Errorf("unknown version %d of a catalog row", value[0])
	}
	if value[1] != 0 {
		return nil, fmt.Errorf("unknown flags 0x%02x of a catalog row", value[1])
	}
	size := binary.BigEndian.Uint64(value[10:])
	if size > math.MaxInt64 {
		return nil, fmt.Errorf("size %d bytes", size)
	}
	r := &FileRow{
		Kind: k.Kind, Level: k.Level, Profile: k.Profile, From: k.From, Generation: k.Generation,
		To:           binary.BigEndian.Uint64(value[2:]),
		Size:         int64(size),
		Transactions: binary.BigEndian.Uint64(value[18:]),
		Logs:         binary.BigEndian.Uint64(value[26:]),
	}
	copy(r.Digest[:], value[34:])
	copy(r.FirstHash[:], value[66:])
	copy(r.LastHash[:], value[98:])
	copy(r.ParentHash[:], value[130:])
	return r, nil
}

// tombstone is a replaced file that waits for deletion.
type tombstone struct {
	key  keys.Segment
	to   uint64
	size int64
}

func (t tombstone) name() string { return fileName(t.key, t.to) }

func tombstoneOf(r *FileRow) tombstone { return tombstone{key: r.key(), to: r.To, size: r.Size} }

func appendTombstoneValue(dst []byte, t tombstone) []byte {
	dst = append(dst, retiredValueVersion)
	dst = binary.BigEndian.AppendUint64(dst, t.to)
	return binary.BigEndian.AppendUint64(dst, uint64(t.size))
}

func decodeTombstone(k keys.Retired, value []byte) (tombstone, error) {
	if err := checkValueLength(value, retiredValueLength); err != nil {
		return tombstone{}, err
	}
	if value[0] != retiredValueVersion {
		return tombstone{}, fmt.Errorf("unknown version %d of a tombstone", value[0])
	}
	size := binary.BigEndian.Uint64(value[9:])
	if size > math.MaxInt64 {
		return tombstone{}, fmt.Errorf("size %d bytes", size)
	}
	return tombstone{key: keys.Segment(k), to: binary.BigEndian.Uint64(value[1:]), size: int64(size)}, nil
}

func appendCoverageValue(dst []byte, run CoverageRun) []byte {
	dst = binary.BigEndian.AppendUint64(dst, run.To)
	return append(dst, byte(run.Completeness))
}

func decodeCoverage(k keys.RawCoverage, value []byte) (CoverageRun, error) {
	if err := checkValueLength(value, coverageValueLength); err != nil {
		return CoverageRun{}, err
	}
	run := CoverageRun{Field: k.Field, Profile: k.Profile, Completeness: Completeness(value[8])}
	run.From, run.To = k.From, binary.BigEndian.Uint64(value)
	if !run.Completeness.valid() || (run.Profile == ProfileComplete && run.Completeness != Complete) {
		return CoverageRun{}, fmt.Errorf("unknown completeness %d", value[8])
	}
	if run.Empty() {
		return CoverageRun{}, fmt.Errorf("empty run %v", run.Range)
	}
	return run, nil
}
