package archive

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/ethereum/go-ethereum/common"
	"github.com/zeebo/blake3"
)

// hashChunk is how much is read and hashed between two looks at the context.
const hashChunk = 1 << 20

// regularFile refuses a file that is not a regular one, and closes it.
func regularFile(f *os.File) (*os.File, error) {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &PathError{f.Name(), ErrNotRegular}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// proveObject compares length and digest of an open object with its manifest, reading all of it. seen is
// shown the content in order. It leaves the file's own position alone.
func proveObject(ctx context.Context, name string, r io.ReaderAt, length int64, object *Object, seen func([]byte)) error {
	if length != object.Bytes {
		return &CorruptError{Object: name, Err: fmt.Errorf("%w: got %d bytes, want %d", ErrLength, length, object.Bytes)}
	}
	hash := blake3.New()
	buf := make([]byte, min(hashChunk, length))
	for offset := int64(0); offset < length; {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := buf[:min(int64(len(buf)), length-offset)]
		if n, err := r.ReadAt(part, offset); n < len(part) {
			return readError(name, err)
		}
		_, _ = hash.Write(part) // never fails
		seen(part)
		offset += int64(len(part))
	}
	return compareDigest(name, hash, object)
}

// readError is an error of reading an object. That it ends is one as well: it was longer before.
func readError(name string, err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return &CorruptError{Object: name, Err: fmt.Errorf("%w: it ended while it was read", ErrLength)}
	}
	return fmt.Errorf("read archive object %s: %w", name, err)
}

func compareDigest(name string, hash *blake3.Hasher, object *Object) error {
	if got := common.Hash(hash.Sum(nil)); got != object.BLAKE3 {
		return &CorruptError{Object: name, Err: fmt.Errorf("%w: got %x, want %x", ErrChecksum, got, object.BLAKE3)}
	}
	return nil
}
