//go:build unix

package scripted

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestPipe follows a named pipe through several writers: it is opened without any, tells each time before it waits that
// there is no more, and ends with the context, not with a writer.
func TestPipe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	next := func(want string) {
		t.Helper()
		e, err := s.Next(ctx)
		if err != nil || fmt.Sprint(e.Kind, " ", e.Block.Number) != want {
			t.Fatalf("got %+v, %v want %s", e, err, want)
		}
	}
	write := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString(text)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	next("current 0")
	write("{\"attested\": {\"number\": 1}}\n{\"attested\": {\"number\": 2}}\n")
	next("attested 1")
	next("attested 2")
	next("current 0")
	write(`{"undo": {"num`) // half a line is none
	next("current 0")
	write("ber\": 3}}\n# nothing\n{\"pause\": {\"milliseconds\": 1}}\n{\"attested\": {\"number\": 4}}\n")
	next("undo 3")
	next("current 0") // the pause
	next("attested 4")
	next("current 0")
	written := make(chan struct{})
	go func() { // while the source waits
		defer close(written)
		write("{\"attested\": {\"number\": 5}}\n")
	}()
	next("attested 5")
	<-written
	next("current 0")
	ended := make(chan error)
	go func() {
		_, err := s.Next(ctx)
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestOpenRefuses: what is neither file nor pipe is refused when it is opened, and by name.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, path := range []string{folder, filepath.Join(folder, "none"), "/dev/null"} {
		s, err := Open(path)
		if err == nil {
			t.Errorf("%s is opened", path)
			_ = s.Close()
			continue
		}
		if !strings.Contains(err.Error(), path) || errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
