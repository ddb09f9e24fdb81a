package lowpriority

import (
	"errors"
	"testing"
)

func TestGoDeliversTheResult(t *testing.T) {
	want := errors.New("result")
	if got := <-Go(func() error { return want }); got != want {
		t.Fatalf("got %v, want %v", got, want)
	}
}
