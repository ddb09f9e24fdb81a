package main

import (
	"context"
	"errors"
	"io"
)

var errSegment = errors.New("not available in this build")

func (stored) dumpSegment(context.Context, string, io.Writer) error { return errSegment }
func (stored) checkSegment(context.Context, string) (segmentReport, error) {
	return segmentReport{}, errSegment
}
