package main

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
)

func newSegmentCheck(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check every page of a segment file",
		Args:  oneFile,
		RunE: action(func(cmd *cobra.Command, args []string) error {
			return segmentCheck(cmd.Context(), a, args[0], asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func segmentCheck(ctx context.Context, a *app, path string, asJSON bool) error {
	r, err := a.backend.checkSegment(ctx, path)
	if err != nil {
		return err
	}
	if r.Problems == nil {
		r.Problems = []string{}
	}
	return a.findings(asJSON, r, r.Problems, fmt.Sprintf("%s: %s, %s, %s, %s: %s", path, r.Kind, r.Blocks, counted(r.Pages, "page"),
		humanize.IBytes(r.Bytes), counted(uint64(len(r.Problems)), "problem")))
}
