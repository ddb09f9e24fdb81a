// Package invariants has checks of our own assumptions that exist only in builds with the tag
// `invariants`; `make invariants` runs the tests with it. In other builds every function
// compiles to nothing.
//
// It is for bugs of ours: a violated assumption panics with a text that starts with "BUG: ".
// It is not for input, disk contents or I/O, whose errors are ordinary in every build, and no
// code may behave differently under the tag but for the checks themselves.
//
//	if invariants.Enabled && !rowsAreSorted(rows) {
//		invariants.Checkf(false, "rows of %s are out of order", name)
//	}
//
// Checked are: the targets of a segments.ListCursor and the rows that a log query visits never go back;
// a segments.Cursor is closed once; what a closed cursor yielded and a response that was sent are not
// read any more.
//
// The condition around a check keeps its arguments from being evaluated, and those of the text from
// being allocated where nothing is wrong. All functions are safe for concurrent use.
package invariants
