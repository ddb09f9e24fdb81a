//go:build race

package main

// raceEnabled tells that the race detector is on, which makes everything some ten times slower and
// larger.
const raceEnabled = true
