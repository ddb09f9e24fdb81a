package era

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// tag is the type of an e2store record: its two bytes in file order, as in tag(0x6532) for
// the version record 65 32.
type tag uint16

const (
	tagVersion           tag = 0x6532 // "e2"
	tagHeader            tag = 0x0300
	tagBody              tag = 0x0400
	tagReceipts          tag = 0x0500 // canonical receipts, era1
	tagTotalDifficulty   tag = 0x0600
	tagAccumulator       tag = 0x0700
	tagSlimReceiptsDraft tag = 0x0800 // EraE before 2026-02-11
	tagProofDraft        tag = 0x0900 // EraE before 2026-02-11
	tagSlimReceipts      tag = 0x0a00
	tagProof             tag = 0x0b00
	tagBlockIndex        tag = 0x6632 // "f2", era1
	tagDynamicBlockIndex tag = 0x6732 // "g2", EraE
)

// String writes the bytes as they stand in the file.
func (t tag) String() string { return fmt.Sprintf("%02x %02x", byte(t>>8), byte(t)) }

// recordHeaderSize in bytes: tag u16, length u32, reserved u16, little endian.
const recordHeaderSize = 8

// total difficulty and accumulator records hold 32 bytes.
const wordSize = 32

// record is a decoded record header.
type record struct {
	tag    tag
	length int64 // of the data after the header
}

var errReserved = errors.New("reserved bytes of the record header are not zero")

// parseRecord decodes a record header, of which b must hold all 8 bytes.
func parseRecord(b []byte) (record, error) {
	if binary.LittleEndian.Uint16(b[6:]) != 0 {
		return record{}, errReserved
	}
	return record{
		tag:    tag(binary.BigEndian.Uint16(b)),
		length: int64(binary.LittleEndian.Uint32(b[2:])),
	}, nil
}

// expect parses the header of a record that must have the given tag and lie within extent
// bytes, header included.
func expect(b []byte, want tag, extent int64) (record, error) {
	if len(b) < recordHeaderSize || extent < recordHeaderSize {
		return record{}, fmt.Errorf("no room for a record %v", want)
	}
	r, err := parseRecord(b)
	if err != nil {
		return record{}, err
	}
	if r.tag != want {
		return record{}, fmt.Errorf("record tag: got %v want %v", r.tag, want)
	}
	if r.length > extent-recordHeaderSize {
		return record{}, fmt.Errorf("record %v of %d bytes extends past the %d before the next one", r.tag, r.length, extent-recordHeaderSize)
	}
	return r, nil
}
