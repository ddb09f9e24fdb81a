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

// digestOf hashes what r has left, until ctx ends.
func digestOf(ctx context.Context, r io.Reader) (Digest, error) {
	hash := sha256.New()
	buf := make([]byte, digestChunk)
	for {
		if err := ctx.Err(); err != nil {
			return Digest{}, err
		}
		n, err := r.Read(buf)
		hash.Write(buf[:n])
		if err == io.EOF {
			return Digest(hash.Sum(nil)), nil
		}
		if err != nil {
			return Digest{}, err
		}
	}
}
