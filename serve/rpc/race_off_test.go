//go:build !race

package rpc

// raceEnabled tells whether the race detector is on.
const raceEnabled = false
