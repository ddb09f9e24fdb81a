package chain

import (
	"errors"
	"fmt"
	"testing"
)

// The missing range has to survive wrapping: callers branch on the sentinel and report the range.
func TestNotRetainedErrorThroughWrapping(t *testing.T) {
	err := fmt.Errorf("query logs: %w", &NotRetainedError{Range: Range{From: 7, To: 9}})
	if !errors.Is(err, ErrNotRetained) {
		t.Fatalf("%v is not ErrNotRetained", err)
	}
	var missing *NotRetainedError
	if !errors.As(err, &missing) || missing.Range != (Range{From: 7, To: 9}) {
		t.Fatalf("got %+v, want the range [7, 9)", missing)
	}
	if got, want := err.Error(), "query logs: blocks [7, 9) are not retained"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}
