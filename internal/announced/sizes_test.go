package announced

import (
	"encoding/binary"
	"testing"
)

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Failed() bool          { return r.failed }
func (r *recorder) Logf(string, ...any)   {}
func (r *recorder) Helper()               {}

// A decoder that believes a size is found out, whatever form the size has, and one that does not passes.
func TestSizes(t *testing.T) {
	var sink []byte
	content := []byte("content of a few bytes")
	for name, size := range map[string]struct {
		encode func([]byte, uint64) []byte
		decode func([]byte) uint64
	}{
		"little endian": {binary.LittleEndian.AppendUint64, func(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }},
		"big endian":    {binary.BigEndian.AppendUint64, func(b []byte) uint64 { return binary.BigEndian.Uint64(b) }},
		"varint": {binary.AppendUvarint, func(b []byte) uint64 {
			n, _ := binary.Uvarint(b)
			return n
		}},
	} {
		seed := append(size.encode([]byte("head"), uint64(len(content))), content...)
		for _, believes := range []bool{true, false} {
			r := &recorder{TB: t}
			Sizes(r, 1<<20, 16, func(b []byte) {
				if len(b) < 12 {
					return
				}
				n := size.decode(b[4:])
				if !believes {
					n = min(n, uint64(len(b)))
				}
				sink = make([]byte, min(n, 64<<20))
			}, seed)
			if r.failed != believes {
				t.Errorf("%s, believes %t: failed %t", name, believes, r.failed)
			}
		}
	}
	_ = sink
}
