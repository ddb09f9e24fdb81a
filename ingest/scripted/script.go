package scripted

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// errWaits tells that reading on would wait for who writes.
var errWaits = errors.New("nothing is there to be read yet")

// newReader gives the content of a script: a file ends, a pipe never does.
func newReader(f *os.File) (io.Reader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return f, nil
	case mode&fs.ModeNamedPipe != 0:
		return newPipe(f)
	default:
		return nil, fmt.Errorf("it is neither a file nor a named pipe: %s", mode.Type())
	}
}
