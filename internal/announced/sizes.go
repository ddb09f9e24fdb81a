package announced

import (
	"encoding/binary"
	"runtime"
	"testing"
)

// positions bounds how many places of a seed are changed.
const positions = 200

// lies are what is written over a place that may hold a size: fixed numbers of both byte orders, varints, and headers of
// RLP strings and lists.
var lies = [][]byte{
	{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	{0xff, 0xff, 0xff, 0x7f},
	{0x7f, 0xff, 0xff, 0xff},
	binary.LittleEndian.AppendUint64(nil, 1<<40),
	binary.BigEndian.AppendUint64(nil, 1<<40),
	binary.AppendUvarint(nil, 1<<31-1),
	binary.AppendUvarint(nil, 1<<40),
	{0xba, 0x7f, 0xff, 0xff},
	{0xfa, 0x7f, 0xff, 0xff},
	{0xbf, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00},
	{0xff, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00},
	[]byte("99999999999"),
}

// Sizes decodes every seed, all its beginnings, and copies in which a lie stands somewhere, over what was there and in
// front of it. A call may allocate most bytes, and perByte more for each byte of its input. Nothing else of the process
// may run meanwhile. The decoder must not change its input.
func Sizes(tb testing.TB, most, perByte uint64, decode func([]byte), seeds ...[]byte) {
	tb.Helper()
	for i, seed := range seeds {
		decode(seed) // what is made once is made now
		worst, of := uint64(0), ""
		check := func(what string, input []byte) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			decode(input)
			runtime.ReadMemStats(&after)
			used := after.TotalAlloc - before.TotalAlloc
			if used > most+perByte*uint64(len(input)) {
				tb.Errorf("seed %d, %s: %d bytes allocated for %d: %.64x…", i, what, used, len(input), input)
			}
			if used > worst {
				worst, of = used, what
			}
		}
		check("whole", seed)
		step := max(1, len(seed)/positions)
		for at := 0; at < len(seed) && !tb.Failed(); at += step {
			check("beginning", seed[:at:at])
			for _, lie := range lies {
				over := append(append([]byte(nil), seed[:at]...), lie...)
				if rest := at + len(lie); rest < len(seed) {
					over = append(over, seed[rest:]...)
				}
				check("over", over)
				check("in front", append(append(append([]byte(nil), seed[:at]...), lie...), seed[at:]...))
			}
		}
		tb.Logf("seed %d of %d bytes: at most %d bytes allocated (%s)", i, len(seed), worst, of)
	}
}
