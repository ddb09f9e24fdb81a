//go:build !invariants

package invariants

// Enabled tells whether this build checks invariants.
const Enabled = false

// Checkf panics with the formatted text when the condition does not hold.
func Checkf(bool, string, ...any) {}

// Mangle overwrites a buffer that was given back, so that whoever still reads it finds out.
func Mangle([]byte) {}
