package invariants

import (
	"bytes"
	"fmt"
	"testing"
)

// panics gives the text with which f panics, or "".
func panics(f func()) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

// Violations panic as bugs exactly in builds with the tag; what holds never does.
func TestChecks(t *testing.T) {
	buffer := make([]byte, 2, 4)
	if got := panics(func() { Checkf(false, "row %d", 7) }); Enabled != (got == "BUG: row 7") {
		t.Errorf("enabled %v, got %q", Enabled, got)
	}
	if got := panics(func() { Checkf(true, ""); Mangle(buffer) }); got != "" {
		t.Errorf("got %q", got)
	}
	if mangled := bytes.Equal(buffer[:4], []byte{0xcc, 0xcc, 0xcc, 0xcc}); mangled != Enabled {
		t.Errorf("enabled %v, buffer % x", Enabled, buffer[:4])
	}
}
