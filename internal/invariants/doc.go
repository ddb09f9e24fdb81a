// Package invariants has checks of our own assumptions that exist only in builds with the tag
// `invariants`; `make invariants` runs the tests with it. In other builds every function
// compiles to nothing.
//
// It is for bugs of ours: a violated assumption panics with a text that starts with "BUG: ".
// It is not for input, disk contents or I/O, whose errors are ordinary in every build, and no
// code may behave differently under the tag but for the checks themselves.
//
//	if invariants.Enabled {
//		invariants.Checkf(rowsAreSorted(rows), "rows of %s are out of order", name)
//	}
//
// The condition around a costly check keeps its arguments from being evaluated in ordinary
// builds. All functions are safe for concurrent use.
package invariants
