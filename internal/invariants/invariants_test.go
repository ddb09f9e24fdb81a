package invariants

import (
	"bytes"
	"fmt"
	"strings"
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
	var once, twice Once
	buffer := make([]byte, 2, 4)
	for name, f := range map[string]func(){
		"check": func() { Checkf(false, "row %d", 7) },
		"index": func() { Index(3, 3) },
		"once":  func() { twice.Do("closed"); twice.Do("closed") },
	} {
		got := panics(f)
		if Enabled != strings.HasPrefix(got, "BUG: ") {
			t.Errorf("%s: enabled %v, got %q", name, Enabled, got)
		}
	}
	if got := panics(func() { Checkf(true, ""); Index(0, 1); once.Do("closed"); Mangle(buffer) }); got != "" {
		t.Errorf("got %q", got)
	}
	if mangled := bytes.Equal(buffer[:4], []byte{0xcc, 0xcc, 0xcc, 0xcc}); mangled != Enabled {
		t.Errorf("enabled %v, buffer % x", Enabled, buffer[:4])
	}
}
