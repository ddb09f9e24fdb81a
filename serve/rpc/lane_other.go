//go:build !linux

package rpc

// lowerThreadPriority does nothing where priorities do not belong to threads.
func lowerThreadPriority(int) {}
