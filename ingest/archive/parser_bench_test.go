package archive

import (
	"testing"

	"github.com/leani-go/leani/chain"
)

// BenchmarkParse reads lines of full Mainnet blocks; MB/s are of JSON.
func BenchmarkParse(b *testing.B) {
	lines, total, arena := realLines(b)
	var (
		p Parser
		f chain.Frame
	)
	buf := make([]byte, 0, arena)
	b.SetBytes(total)
	b.ReportAllocs()
	for b.Loop() {
		for _, line := range lines {
			if err := p.Parse(line, buf, &f); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkEncode writes the same lines.
func BenchmarkEncode(b *testing.B) {
	frames := realFrames(b)
	_, total, _ := realLines(b)
	e := encoder{network: chain.Mainnet()}
	var dst []byte
	b.SetBytes(total)
	b.ReportAllocs()
	for b.Loop() {
		for _, f := range frames {
			var err error
			if dst, err = e.line(dst[:0], f); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// realLines are the real frames as lines for the parser, their bytes together, and the arena they need.
func realLines(tb testing.TB) (lines [][]byte, total int64, arena int) {
	e := encoder{network: chain.Mainnet()}
	for _, f := range realFrames(tb) {
		line, err := e.line(nil, f)
		if err != nil {
			tb.Fatal(err)
		}
		total += int64(len(line))
		lines = append(lines, padded(line))
		arena = max(arena, len(line)/2+arenaSlack)
	}
	return lines, total, arena
}
