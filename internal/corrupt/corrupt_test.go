package corrupt

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestErrorText(t *testing.T) {
	cause := errors.New("checksum: got 1 want 2")
	for _, c := range []struct {
		err  *Error
		want string
	}{
		{New("a.seg", cause), "corrupt a.seg: checksum: got 1 want 2"},
		{AtOffset("a.seg", 12, cause), "corrupt a.seg offset 12: checksum: got 1 want 2"},
		{AtPage("a.seg", 0, 0, cause), "corrupt a.seg page 0 offset 0: checksum: got 1 want 2"},
		{AtPage("a.seg", 7, 4096, nil), "corrupt a.seg page 7 offset 4096"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got %q want %q", got, c.want)
		}
	}
}

func TestIsLooksThroughWrapping(t *testing.T) {
	err := fmt.Errorf("read block 5: %w", AtPage("a.seg", 1, 2, io.ErrUnexpectedEOF))
	if !Is(err) {
		t.Error("wrapped corruption is not recognised")
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the cause is hidden")
	}
	if Is(io.ErrUnexpectedEOF) || Is(nil) {
		t.Error("an ordinary error is taken for corruption")
	}
}
