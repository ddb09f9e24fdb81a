package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A page is the unit that is read, checked and cached:
//
//	raw length  u24
//	compression u8
//	CRC-32C     u32, over the four bytes above and the payload
//	payload     the rest
//
// All integers are little endian.

const (
	// PageHeader is the size in bytes of what precedes the payload.
	PageHeader = 8
	// MaximumPage is the largest raw size of a page in bytes.
	MaximumPage = 1<<24 - 1
	// savesAtLeast is the fraction of a page, as a divisor, that compression must save to be kept:
	// below an eighth the reader's time costs more than the space.
	savesAtLeast = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Errors of DecodePage. All of them mean that the stored bytes are not what was written.
var (
	ErrPageShort    = errors.New("page is shorter than its header")
	ErrPageChecksum = errors.New("page checksum differs")
)

// Checksum is the CRC-32C (Castagnoli) of b, as used in pages and footers.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// AppendPage appends raw as one page, compressed with c when that saves at least an eighth. raw
// holds at most MaximumPage bytes.
func AppendPage(dst []byte, c Compression, raw []byte) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, PageHeader)...)
	if c != None {
		dst = appendCompressed(dst, c, raw)
		if stored := len(dst) - start - PageHeader; stored > len(raw)-len(raw)/savesAtLeast {
			dst, c = dst[:start+PageHeader], None
		}
	}
	if c == None {
		dst = append(dst, raw...)
	}
	page := dst[start:]
	binary.LittleEndian.PutUint32(page, uint32(len(raw))|uint32(c)<<24)
	binary.LittleEndian.PutUint32(page[4:], pageChecksum(page))
	return dst
}

// PageInfo reads what a stored page says of itself: how long it is raw, and how it is compressed. It
// checks nothing; DecodePage does.
func PageInfo(stored []byte) (raw int, c Compression, err error) {
	if len(stored) < PageHeader {
		return 0, 0, ErrPageShort
	}
	head := binary.LittleEndian.Uint32(stored)
	return int(head & MaximumPage), Compression(head >> 24), nil
}

// pageChecksum covers everything of a page but the checksum itself.
func pageChecksum(page []byte) uint32 {
	return crc32.Update(crc32.Checksum(page[:4], castagnoli), castagnoli, page[PageHeader:])
}

// DecodePage checks a stored page and returns its raw bytes followed by Slack zero bytes, which are
// not counted in the length but can be reached with a full slice expression. An uncompressed page is
// not copied when stored has room for the slack behind it (its bytes there are then zeroed); the
// result aliases stored in that case.
func DecodePage(stored []byte) ([]byte, error) {
	size, c, err := PageInfo(stored)
	if err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(stored[4:]) != pageChecksum(stored) {
		return nil, ErrPageChecksum
	}
	payload := stored[PageHeader:]
	if c == None && len(payload) == size && cap(payload) >= size+Slack {
		padded := payload[:size+Slack]
		clear(padded[size:])
		return padded[:size], nil
	}
	// Snappy and deflate cannot expand by more than about a thousand times; a larger claim is
	// refused before memory is taken for it.
	if size > 1100*len(payload)+64 && c != Zstd {
		return nil, fmt.Errorf("%w: %d bytes from %d", ErrDecompress, size, len(payload))
	}
	raw := make([]byte, size+Slack)
	if err := decompress(raw[:size:size], c, payload); err != nil {
		return nil, err
	}
	return raw[:size], nil
}
