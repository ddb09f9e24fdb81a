//go:build unix

package ondemand

import (
	"time"

	"golang.org/x/sys/unix"
)

// system is what tells a file from another that took its place, and from itself before it was changed: its time of change
// is one that nobody sets back, unlike that of the last write.
func system(name string) (device, inode uint64, changed time.Time) {
	var s unix.Stat_t
	if err := unix.Stat(name, &s); err != nil {
		return 0, 0, time.Time{}
	}
	return uint64(s.Dev), s.Ino, time.Unix(s.Ctim.Unix()) // the types differ by system
}
