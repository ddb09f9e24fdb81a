//go:build race

package history

// raceEnabled tells that the race detector slows everything down, some ten times: tests of one goroutine
// do less then.
const raceEnabled = true
