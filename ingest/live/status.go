package live

import "sync/atomic"

// Status is where a lane stands.
type Status struct {
	// Running is set while the lane follows its source.
	Running bool
	// Ready is set while all that the source has told is committed and the source has nothing more. A single new
	// block does not clear it while it is being committed; a second one behind it does, and so do blocks that
	// wait for room, and those of the source that contradict finality.
	Ready bool
	// Newest is the highest block that the source has named and that is not committed; 0 when there is none.
	Newest uint64
}

// tracker follows where a lane stands. Its methods but Status belong to the goroutine of the lane.
type tracker struct {
	status atomic.Pointer[Status]

	heard   bool // the source has named a block
	current bool // the source has nothing more, and has named a block before it said so
	news    bool // a change of the chain came since
}

// Status tells where the lane stands. It is safe for concurrent use, also before and after Run.
func (t *tracker) Status() Status {
	if s := t.status.Load(); s != nil {
		return *s
	}
	return Status{}
}

func (t *tracker) publish(s Status) {
	if s != t.Status() {
		t.status.Store(&s)
	}
}

// told notes the kind of an event whose turn it is.
func (t *tracker) told(kind Kind) {
	t.heard = t.heard || kind != Current
	switch kind {
	case Current:
		t.current, t.news = t.heard, false
	case Apply, Undo:
		if t.news && t.current {
			t.current = false
			t.publish(Status{Running: true, Newest: t.Status().Newest})
		}
		t.news = true
	}
}

// reached notes what is left when an event has been dealt with: the highest block that is known by its mark only, and
// whether the source is on a branch that contradicts finality.
func (t *tracker) reached(pending uint64, astray bool) {
	t.publish(Status{Running: true, Ready: t.current && !astray, Newest: pending})
}

// waits notes that blocks wait for room.
func (t *tracker) waits(newest uint64) {
	t.publish(Status{Running: true, Newest: newest})
}

func (t *tracker) end() { t.publish(Status{}) }
