package main

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/leani-go/leani/config"
)

// compactReport is what db compact prints.
type compactReport struct {
	DataMerges  uint64      `json:"dataMerges"`
	IndexMerges uint64      `json:"indexMerges"`
	BytesRead   uint64      `json:"bytesRead"`
	Before      spaceReport `json:"before"`
	After       spaceReport `json:"after"`
	// Problems are damaged files that were left as they are.
	Problems []string `json:"problems"`
}

func newDBCompact(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "compact",
		Short: "Merge what can be merged and give space back",
		Long: `Merge index files and pack short data files as far as that is due, and rewrite the database. A node does
the first in the background, and the second is worth it after much was removed. It takes room for a second
copy of what it works on. No other process may use the data directory meanwhile.`,
		Args: noArguments,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			return withStored(cmd.Context(), a, func(_ *config.Config, n node) error { return dbCompact(cmd.Context(), a, n, asJSON) })
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func dbCompact(ctx context.Context, a *app, n node, asJSON bool) error {
	log := a.logger()
	r, err := n.compact(ctx, func(what string) { log.Info(what) })
	if err != nil {
		return err
	}
	if r.Problems == nil {
		r.Problems = []string{}
	}
	return a.findings(asJSON, r, r.Problems, fmt.Sprintf("%s of index files, %s of data files; %s before, %s after.", counted(r.IndexMerges, "merge"),
		counted(r.DataMerges, "merge"), humanize.IBytes(uint64(r.Before.Total)), humanize.IBytes(uint64(r.After.Total))))
}
