package rpc

import (
	"context"
	"testing"

	"golang.org/x/sys/unix"
)

// The threads of the lane have a lowered priority, and only those.
func TestLaneThreadPriority(t *testing.T) {
	l := newLane(1, 1)
	defer l.close()
	priority := func() int {
		// The raw system call gives 20 minus the nice value.
		raw, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
		if err != nil {
			t.Error(err)
		}
		return 20 - raw
	}
	before := priority()
	var inLane int
	if err := l.do(context.Background(), func() error { inLane = priority(); return nil }); err != nil {
		t.Fatal(err)
	}
	if inLane <= before && before < 10 {
		t.Errorf("nice value in the lane: got %d, want more than %d", inLane, before)
	}
	if after := priority(); after != before {
		t.Errorf("nice value outside: got %d, want %d", after, before)
	}
}
