//go:build !linux

package bench

import "errors"

// DropFileCache makes the operating system forget the content of all files below a folder, so that the
// next reads come from the device. Only Linux can do that without privileges.
func DropFileCache(string) error { return errors.ErrUnsupported }
