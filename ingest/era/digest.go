package era

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
)

// DigestError says that a file's content does not have the digest that its catalog gives.
type DigestError struct {
	File      string
	Got, Want Digest
}

// Error names the file and both digests.
func (e *DigestError) Error() string {
	return fmt.Sprintf("era file %s: sha256: got %v, the catalog says %v", e.File, e.Got, e.Want)
}

// digestChunk is how much is read and hashed between two looks at the context.
const digestChunk = 1 << 20

// Prove compares the content of a file, which r has from its start, with the digest that a catalog
// gives. The name is for errors only: a *DigestError when the two differ, that of a read, or the
// context's when ctx ends first.
func Prove(ctx context.Context, name string, r io.Reader, want Digest) error {
	hash := sha256.New()
	buf := make([]byte, digestChunk)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(buf)
		hash.Write(buf[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("read era file %s: %w", name, err)
		}
	}
	if got := Digest(hash.Sum(nil)); got != want {
		return &DigestError{File: name, Got: got, Want: want}
	}
	return nil
}
