//go:build !amd64 || purego

package keccak

func has8() bool { return false }

func has4() bool { return false }

// states has nothing to hold where there is no wide kernel.
type states struct{}

func (*states) prepare(kernel) (int, []uint64) { panic("keccak: no wide kernel in this build") }

func (*states) permute(kernel) { panic("keccak: no wide kernel in this build") }
