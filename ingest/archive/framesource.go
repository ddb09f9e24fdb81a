package archive

import (
	"context"
	"errors"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest"
)

// Frames offers what the archive has of blocks, whole or not, to ingest.Keep: each object is read as by Read, and
// what no object holds is left out.
func (a *Archive) Frames(budget Budget) ingest.FrameSource { return frameSource{a, budget} }

type frameSource struct {
	archive *Archive
	budget  Budget
}

// Frames implements ingest.FrameSource.
func (s frameSource) Frames(ctx context.Context, r chain.Range, yield func(*chain.Frame) error) error {
	objects, err := s.archive.Select(r)
	var holes *HoleError
	if err != nil && !errors.As(err, &holes) {
		return err
	}
	for _, o := range objects {
		if err := s.archive.Read(ctx, o, r, s.budget, yield); err != nil {
			return err
		}
	}
	return nil
}
