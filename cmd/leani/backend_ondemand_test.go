package main

import "testing"

// Room is made for all threads of low priority that history on demand may keep busy: those of the requests, that of a copy and that
// which looks for damage.
func TestOnDemandThreads(t *testing.T) {
	var none *fetchedHistory
	if got := none.threads(); got != 0 {
		t.Errorf("without history on demand: got %d", got)
	}
	if got := (&fetchedHistory{requests: 2}).threads(); got != 4 {
		t.Errorf("two requests: got %d, want 4", got)
	}
}
