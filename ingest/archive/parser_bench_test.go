package archive

import (
	"context"
	"fmt"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest"
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

// BenchmarkOpen proves an object and finds its lines, before anything of it is read.
func BenchmarkOpen(b *testing.B) {
	s, err := OpenSource(writeArchive(b, realFrames(b), 0), chain.MainnetChainID)
	if err != nil {
		b.Fatal(err)
	}
	o := &s.archive.manifest.Objects[1]
	b.SetBytes(o.Bytes)
	b.ReportAllocs()
	for b.Loop() {
		f, err := s.Open(context.Background(), s.archive.PathOf(o), ingest.Limits{BlockBytes: 64 << 20, BatchBytes: 1 << 20, Reads: ingest.NewGate(1)})
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFill asks what the pipeline gives from JSON lines to proved blocks, when the sink costs nothing; MB/s are of
// JSON.
func BenchmarkFill(b *testing.B) {
	frames := realFrames(b)
	s, err := OpenSource(writeArchive(b, frames, 0), chain.MainnetChainID)
	if err != nil {
		b.Fatal(err)
	}
	var total int64
	for _, o := range s.archive.manifest.Objects {
		total += o.Bytes
	}
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			b.SetBytes(total)
			for b.Loop() {
				_, err := ingest.Fill(context.Background(), ingest.Options{
					Source: s, Ranges: pairs(frames), Workers: workers,
					Sink: func(context.Context, func(chain.Range)) ingest.Sink { return discard{} },
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

type discard struct{}

func (discard) Add(*chain.Block) error { return nil }
func (discard) Cut() error             { return nil }
func (discard) Pending() int           { return 0 }
func (discard) Close(bool) error       { return nil }
