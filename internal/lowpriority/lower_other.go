//go:build !linux

package lowpriority

// lower does nothing where priorities do not belong to threads.
func lower(int) {}
