package segments

import (
	"bytes"
	"io"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/internal/chainmodel"
)

// benchFrames are bodies and receipts without withdrawals, some hundred KB a block.
func benchFrames(b *testing.B) (frames []*chain.Frame, size int64) {
	b.Helper()
	frames = modelFrames(chainmodel.New(11, 1), chainmodel.NoWithdrawals, 64)
	var encoded []byte
	for _, f := range frames {
		var err error
		if encoded, err = appendFrame(encoded[:0], f); err != nil {
			b.Fatal(err)
		}
		size += int64(len(encoded))
	}
	return frames, size
}

func BenchmarkWriteFrames(b *testing.B) {
	frames, size := benchFrames(b)
	b.ReportAllocs()
	b.SetBytes(size)
	for b.Loop() {
		w, err := NewFramesBuilder(io.Discard, FramesOptions{ID: 1, Profile: frames[0].Profile(), Compression: codec.Snappy})
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range frames {
			if _, err := w.Add(f); err != nil {
				b.Fatal(err)
			}
		}
		if _, _, err := w.Finish(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadFrames(b *testing.B) {
	frames, size := benchFrames(b)
	var out bytes.Buffer
	w, err := NewFramesBuilder(&out, FramesOptions{ID: 1, Profile: frames[0].Profile(), Compression: codec.Snappy})
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range frames {
		if _, err := w.Add(f); err != nil {
			b.Fatal(err)
		}
	}
	if _, _, err := w.Finish(); err != nil {
		b.Fatal(err)
	}
	f, err := Open("f", 1, memorySource(out.Bytes()), nil)
	if err != nil {
		b.Fatal(err)
	}
	v, err := NewFrames(f)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(size)
	var frame chain.Frame
	for b.Loop() {
		for _, f := range frames {
			if err := v.Load(f.Number, &frame, nil); err != nil {
				b.Fatal(err)
			}
		}
	}
}
