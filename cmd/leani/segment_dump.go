package main

import (
	"github.com/spf13/cobra"
)

func newSegmentDump(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "dump FILE",
		Short: "Describe a segment file page by page",
		Args:  oneFile,
		RunE: action(func(cmd *cobra.Command, args []string) error {
			return a.backend.dumpSegment(cmd.Context(), args[0], a.stdout)
		}),
	}
}
