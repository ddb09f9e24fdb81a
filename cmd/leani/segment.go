package main

import (
	"github.com/spf13/cobra"
)

func newSegment(a *app) *cobra.Command {
	return group("segment", "Look into segment files",
		newSegmentDump(a),
		newSegmentCheck(a),
	)
}
