package era

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/golang/snappy"
)

// The framed Snappy format (google/snappy, framing_format.txt): a stream identifier, then
// chunks of a type byte, three bytes of length, and data. Data chunks start with a masked
// CRC-32C of their decompressed bytes and hold at most 64 KiB of them.
const (
	chunkCompressed   = 0x00
	chunkUncompressed = 0x01
	chunkSkippable    = 0x80 // to 0xfe, which is padding
	chunkStream       = 0xff

	chunkHeaderSize   = 4
	chunkChecksumSize = 4
	chunkMaximum      = 1 << 16
)

const streamIdentifier = "sNaPpY"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frameError is a reason with the offset of the chunk in the framed data.
type frameError struct {
	offset int
	err    error
}

func (e *frameError) Error() string { return "snappy frame: " + e.err.Error() }
func (e *frameError) Unwrap() error { return e.err }

// framedSize returns the number of bytes that framed data decompresses to, without
// decompressing it. Everything but checksums and compressed content is checked.
func framedSize(framed []byte) (int, error) {
	total := 0
	for offset := 0; offset < len(framed); {
		kind, data, err := chunk(framed, offset)
		if err != nil {
			return 0, &frameError{offset, err}
		}
		if offset == 0 && kind != chunkStream {
			return 0, &frameError{offset, errors.New("no stream identifier")}
		}
		size, err := chunkSize(kind, data)
		if err != nil {
			return 0, &frameError{offset, err}
		}
		total += size
		offset += chunkHeaderSize + len(data)
	}
	if len(framed) == 0 {
		return 0, &frameError{0, errors.New("no stream identifier")}
	}
	return total, nil
}

// chunk splits the chunk at offset into its type and data.
func chunk(framed []byte, offset int) (kind byte, data []byte, err error) {
	rest := framed[offset:]
	if len(rest) < chunkHeaderSize {
		return 0, nil, errors.New("truncated chunk header")
	}
	length := int(rest[1]) | int(rest[2])<<8 | int(rest[3])<<16
	if length > len(rest)-chunkHeaderSize {
		return 0, nil, fmt.Errorf("chunk of %d bytes, %d left", length, len(rest)-chunkHeaderSize)
	}
	return rest[0], rest[chunkHeaderSize : chunkHeaderSize+length], nil
}

// chunkSize returns the number of bytes that a chunk decompresses to.
func chunkSize(kind byte, data []byte) (int, error) {
	size := 0
	switch {
	case kind == chunkCompressed || kind == chunkUncompressed:
		if len(data) < chunkChecksumSize {
			return 0, errors.New("data chunk without checksum")
		}
		size = len(data) - chunkChecksumSize
		if kind == chunkCompressed {
			var err error
			if size, err = snappy.DecodedLen(data[chunkChecksumSize:]); err != nil {
				return 0, err
			}
		}
		if size > chunkMaximum {
			return 0, fmt.Errorf("chunk decompresses to %d bytes, more than %d", size, chunkMaximum)
		}
	case kind == chunkStream:
		if string(data) != streamIdentifier {
			return 0, errors.New("wrong stream identifier")
		}
	case kind < chunkSkippable:
		return 0, fmt.Errorf("unknown chunk type %#02x", kind)
	}
	return size, nil
}

// decodeFramed decompresses framed data, which framedSize must have accepted, into dst, whose
// length must be the size it returned.
func decodeFramed(dst, framed []byte) error {
	for offset := 0; offset < len(framed); {
		kind, data, err := chunk(framed, offset)
		if err != nil {
			return &frameError{offset, err}
		}
		size, err := chunkSize(kind, data)
		if err != nil || size > len(dst) {
			return &frameError{offset, errors.Join(err, snappy.ErrCorrupt)}
		}
		if kind == chunkCompressed || kind == chunkUncompressed {
			plain, content := dst[:size], data[chunkChecksumSize:]
			if kind == chunkUncompressed {
				copy(plain, content)
			} else if decoded, err := snappy.Decode(plain, content); err != nil {
				return &frameError{offset, err}
			} else if len(decoded) != size {
				return &frameError{offset, snappy.ErrCorrupt}
			}
			want := uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16 | uint32(data[3])<<24
			if got := maskedChecksum(plain); got != want {
				return &frameError{offset, fmt.Errorf("chunk checksum: got %08x want %08x", got, want)}
			}
			dst = dst[size:]
		}
		offset += chunkHeaderSize + len(data)
	}
	return nil
}

// maskedChecksum is the rotated and offset CRC-32C of the framing format.
func maskedChecksum(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}
