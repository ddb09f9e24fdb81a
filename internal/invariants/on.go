//go:build invariants

package invariants

import "fmt"

// Enabled tells whether this build checks invariants.
const Enabled = true

// Checkf panics with the formatted text when the condition does not hold.
func Checkf(holds bool, format string, args ...any) {
	if !holds {
		panic("BUG: " + fmt.Sprintf(format, args...))
	}
}

// Mangle overwrites a buffer that was given back, so that whoever still reads it finds out.
func Mangle(b []byte) {
	b = b[:cap(b)]
	for i := range b {
		b[i] = 0xcc
	}
}
