//go:build !race

package main

// raceEnabled tells that the race detector is on.
const raceEnabled = false
