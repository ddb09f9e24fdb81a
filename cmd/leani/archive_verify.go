package main

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/leani-go/leani/internal/progress"
)

// archiveVerifyReport is what archive verify prints.
type archiveVerifyReport struct {
	ID       string      `json:"id"`
	ChainID  uint64      `json:"chainId"`
	Coverage []blockSpan `json:"coverage"`
	Objects  uint64      `json:"objects"` // without problems
	Frames   uint64      `json:"frames"`
	Proved   uint64      `json:"provedFrames"`
	Bytes    uint64      `json:"bytes"`
	Problems []string    `json:"problems"`
}

func newArchiveVerify(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify MANIFEST",
		Short: "Verify every file of an archive",
		Long: `Read a manifest and every file that it lists: lengths and BLAKE3 digests, that each file holds exactly its
blocks, in order, each following the one before, of the manifest's chain, finality and material, and that
files that touch join. Frames that hold a whole block are proved by the roots of its header, too.

Neither a settings file nor a data directory is needed.`,
		Example: "  leani archive verify archive/manifest.json",
		Args:    oneFile,
		RunE: action(func(cmd *cobra.Command, args []string) error {
			return archiveVerify(cmd.Context(), a, args[0], asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func archiveVerify(ctx context.Context, a *app, path string, asJSON bool) error {
	var reporter *progress.Reporter
	r, err := a.backend.verifyArchive(ctx, path, func(total uint64) func(progress.Count) {
		reporter = a.reporter("archive verify", total, false)
		return reporter.Report
	})
	if reporter != nil {
		reporter.Finish()
	}
	if err != nil {
		return err
	}
	return a.findings(asJSON, r, r.Problems, fmt.Sprintf("%s: %s, %s in %s, %s; %s proved by their headers: %s", r.ID, listSpans(r.Coverage),
		counted(r.Frames, "frame"), counted(r.Objects, "file"), humanize.IBytes(r.Bytes), counted(r.Proved, "block"),
		counted(uint64(len(r.Problems)), "problem")))
}
