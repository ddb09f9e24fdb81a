package main

import (
	"context"
	"io"
	"os"

	"github.com/leani-go/leani/internal/regular"
	"github.com/leani-go/leani/segments"
)

// segmentCache is the page cache of commands that look at one segment file.
const segmentCache = 16 * mib

// localFile is a segment file outside of a store.
type localFile struct {
	*os.File
	size int64
}

func (f localFile) Size() int64 { return f.size }

// openSegment opens a segment file by its path. The caller closes the file.
func openSegment(path string) (*segments.File, io.Closer, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	s, err := segments.Open(path, 1, localFile{f, info.Size()}, segments.NewCache(segmentCache))
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return s, f, nil
}

func (stored) dumpSegment(ctx context.Context, path string, out io.Writer) error {
	s, f, err := openSegment(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return segments.Dump(ctx, out, s)
}

func (stored) checkSegment(ctx context.Context, path string) (segmentReport, error) {
	s, f, err := openSegment(path)
	if err != nil {
		return segmentReport{}, err
	}
	defer func() { _ = f.Close() }()
	info := s.Info()
	r := segmentReport{Kind: info.Kind.String(), Blocks: blockSpan{info.From, info.To - 1}}
	checked, err := segments.CheckFile(ctx, s)
	if err != nil {
		return r, err
	}
	r.Bytes, r.Pages = uint64(checked.Bytes), uint64(checked.Pages)
	for _, p := range checked.Problems {
		r.Problems = append(r.Problems, p.Error())
	}
	return r, nil
}
