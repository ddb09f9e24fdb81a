//go:build unix

package scripted

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openScript opens a file without waiting for the other end of a pipe. A pipe is opened for writing as well, so that it
// does not end with each of those who write to it.
func openScript(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	flags := os.O_RDONLY
	if info.Mode()&os.ModeNamedPipe != 0 {
		flags = os.O_RDWR
	}
	return os.OpenFile(path, flags|unix.O_NONBLOCK, 0)
}

// pipe is the end of a pipe that is read.
type pipe struct {
	file   *os.File
	raw    syscall.RawConn
	warned bool // the last error was errWaits: the next read waits
}

func newPipe(f *os.File) (io.Reader, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &pipe{file: f, raw: raw}, nil
}

// Read implements io.Reader. Where there is nothing to be read it first returns errWaits and waits the next time, until
// the deadline of the file.
func (p *pipe) Read(b []byte) (n int, err error) {
	if p.warned {
		p.warned = false
		return p.file.Read(b)
	}
	outer := p.raw.Read(func(fd uintptr) bool {
		for {
			if n, err = unix.Read(int(fd), b); !errors.Is(err, unix.EINTR) {
				return true
			}
		}
	})
	switch {
	case outer != nil:
		return 0, outer
	case errors.Is(err, unix.EAGAIN):
		p.warned = true
		return 0, errWaits
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return n, nil
}
