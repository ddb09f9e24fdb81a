package archive

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/verify"
	"github.com/leani-go/leani/internal/sender"
	"github.com/leani-go/leani/internal/shareddata"
)

// realFrames are read once.
var realFramesOnce struct {
	sync.Once
	frames []*chain.Frame
}

// realFrames are the blocks of the era files that the repository carries, two in a row each over the Shanghai,
// Cancun and Prague activations, as frames of whole blocks. They must not be changed.
func realFrames(tb testing.TB) []*chain.Frame {
	tb.Helper()
	realFramesOnce.Do(func() { realFramesOnce.frames = readRealFrames(tb) })
	return realFramesOnce.frames
}

func readRealFrames(tb testing.TB) []*chain.Frame {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join(shareddata.Root(tb), "testdata", "era", "mainnet-mini", "*.ere"))
	if err != nil || len(paths) == 0 {
		tb.Fatal(paths, err)
	}
	var frames []*chain.Frame
	for _, path := range paths {
		frames = append(frames, framesOf(tb, path)...)
	}
	return frames
}

// padded is a line without its newline as the parser takes it.
func padded(line []byte) []byte { return pad(bytes.Clone(bytes.TrimSuffix(line, []byte("\n")))) }

func framesOf(tb testing.TB, path string) []*chain.Frame {
	tb.Helper()
	content, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer content.Close()
	info, err := content.Stat()
	if err != nil {
		tb.Fatal(err)
	}
	f, err := era.Open(path, content, info.Size(), era.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	var frames []*chain.Frame
	for n := f.Range().From; n < f.Range().To; n++ {
		var (
			b   chain.Block
			buf era.Buffer
			v   verify.Verifier
		)
		if err := f.ReadBlock(n, chain.PartsAll, &buf, &b); err != nil {
			tb.Fatal(err)
		}
		if err := v.Block(&b, verify.Expected{Number: n}); err != nil {
			tb.Fatal(err)
		}
		frames = append(frames, wholeFrame(tb, &b))
	}
	return frames
}

// wholeFrame is a verified block as a frame, with its senders.
func wholeFrame(tb testing.TB, b *chain.Block) *chain.Frame {
	r := sender.New(chain.MainnetChainID)
	for _, envelope := range b.Transactions {
		from, err := r.Recover(envelope)
		if err != nil {
			tb.Fatal(err)
		}
		b.Senders = append(b.Senders, from)
	}
	return WholeFrame(b, chain.MainnetChainID)
}

// writeArchive writes frames in objects of so many blocks and returns the path of the manifest.
func writeArchive(tb testing.TB, frames []*chain.Frame, objectBlocks uint64) string {
	tb.Helper()
	folder := filepath.Join(tb.TempDir(), "archive")
	w, err := Create(WriterOptions{
		Folder: folder, ID: "test", ChainID: frames[0].ChainID, Finality: frames[0].Finality,
		Capabilities: WholeKinds, Complete: WholeKinds, ObjectBlocks: objectBlocks, Network: chain.Mainnet(),
	})
	if err != nil {
		tb.Fatal(err)
	}
	for _, f := range frames {
		if err := w.Add(f); err != nil {
			tb.Fatal(err)
		}
	}
	if _, err := w.Commit(); err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(folder, ManifestName)
}
