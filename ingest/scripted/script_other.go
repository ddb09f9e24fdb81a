//go:build !unix

package scripted

import (
	"errors"
	"io"
	"os"
)

func openScript(path string) (*os.File, error) { return os.Open(path) }

func newPipe(*os.File) (io.Reader, error) {
	return nil, errors.New("named pipes are not read on this system")
}
