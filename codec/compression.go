package codec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
)

// Compression names the way in which a page is compressed. The numbers are part of the file format
// and never change meaning.
type Compression uint8

// The compressions.
const (
	None Compression = iota
	Snappy
	Deflate // RFC 1951, written at level 1
	Zstd    // RFC 8878, one frame, written at the fastest level

	compressions
)

var compressionNames = [compressions]string{"none", "snappy", "deflate", "zstd"}

// String gives the name used in configuration.
func (c Compression) String() string {
	if c < compressions {
		return compressionNames[c]
	}
	return fmt.Sprintf("compression %d", uint8(c))
}

// ParseCompression is the inverse of String for known names.
func ParseCompression(name string) (Compression, error) {
	for c, n := range compressionNames {
		if n == name {
			return Compression(c), nil
		}
	}
	return 0, fmt.Errorf("unknown compression %q: use none, snappy, deflate or zstd", name)
}

// ErrDecompress reports compressed bytes that do not decode to the announced length.
var ErrDecompress = errors.New("compressed bytes do not decode to the announced length")

// maximumZstd bounds the pages that Zstd works on at a time; others wait. Each takes up to a few
// megabytes for good once it was needed.
const maximumZstd = 16

// zstdConcurrency is one page for each processor, up to maximumZstd.
func zstdConcurrency() int { return min(runtime.GOMAXPROCS(0), maximumZstd) }

// compressors and decompressors are costly to make and hold no state between uses.
var (
	flateWriters = sync.Pool{New: func() any {
		w, err := flate.NewWriter(nil, flate.BestSpeed)
		if err != nil {
			panic(err) // the level is a constant of the library
		}
		return w
	}}
	flateReaders = sync.Pool{New: func() any { return flate.NewReader(nil) }}
	zstdEncoder  = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(zstdConcurrency()),
			zstd.WithEncoderCRC(false), zstd.WithWindowSize(1<<20), zstd.WithZeroFrames(true))
		if err != nil {
			panic(err) // the options are valid on any machine
		}
		return e
	})
	zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(zstdConcurrency()), zstd.WithDecoderMaxMemory(MaximumPage))
		if err != nil {
			panic(err) // the options are valid on any machine
		}
		return d
	})
)

// appendCompressed appends src compressed with c.
func appendCompressed(dst []byte, c Compression, src []byte) []byte {
	switch c {
	case Snappy:
		start := len(dst)
		dst = append(dst, make([]byte, snappy.MaxEncodedLen(len(src)))...)
		return dst[:start+len(snappy.Encode(dst[start:], src))]
	case Deflate:
		out := bytes.NewBuffer(dst)
		w := flateWriters.Get().(*flate.Writer)
		w.Reset(out)
		_, err := w.Write(src)
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			panic(err) // a bytes.Buffer takes every write
		}
		flateWriters.Put(w)
		return out.Bytes()
	case Zstd:
		return zstdEncoder().EncodeAll(src, dst)
	default:
		return append(dst, src...)
	}
}

// decompress fills dst, whose length is the announced one, from src.
func decompress(dst []byte, c Compression, src []byte) error {
	switch c {
	case None:
		if len(src) != len(dst) {
			return ErrDecompress
		}
		copy(dst, src)
		return nil
	case Snappy:
		if n, err := snappy.DecodedLen(src); err != nil || n != len(dst) {
			return ErrDecompress
		}
		if _, err := snappy.Decode(dst, src); err != nil {
			return fmt.Errorf("%w: %w", ErrDecompress, err)
		}
		return nil
	case Deflate:
		r := flateReaders.Get().(io.ReadCloser)
		defer flateReaders.Put(r)
		if err := r.(flate.Resetter).Reset(bytes.NewReader(src), nil); err != nil {
			return fmt.Errorf("%w: %w", ErrDecompress, err)
		}
		if _, err := io.ReadFull(r, dst); err != nil {
			return fmt.Errorf("%w: %w", ErrDecompress, err)
		}
		var one [1]byte
		if n, err := r.Read(one[:]); n != 0 || err != io.EOF {
			return ErrDecompress
		}
		return nil
	case Zstd:
		out, err := zstdDecoder().DecodeAll(src, dst[:0:len(dst)])
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDecompress, err)
		}
		if len(out) != len(dst) || (len(out) > 0 && &out[0] != &dst[0]) {
			return ErrDecompress
		}
		return nil
	default:
		return fmt.Errorf("%s is not known to this version", c)
	}
}
