package invariants

import "sync/atomic"

// Once checks that something happens at most once, such as closing. The zero value is ready.
type Once struct{ done atomic.Bool }

// Do panics, in builds that check invariants, when it is called a second time. what names the
// action for the text.
func (o *Once) Do(what string) {
	if Enabled {
		Checkf(!o.done.Swap(true), "%s twice", what)
	}
}
