package main

import (
	"context"
	"fmt"
	"io"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/leani-go/leani/config"
)

func newHistoryStatus(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show which blocks the store holds",
		Args:  noArguments,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			return withNode(cmd.Context(), a, true, func(_ *config.Config, n node) error {
				return historyStatus(cmd.Context(), a, n, asJSON)
			})
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func historyStatus(ctx context.Context, a *app, n node, asJSON bool) error {
	s, err := n.status(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		if s.Coverage == nil {
			s.Coverage = []blockSpan{}
		}
		return printJSON(a.stdout, s)
	}
	return printStatus(a.stdout, s)
}

func printStatus(w io.Writer, s statusReport) error {
	if s.Head == nil {
		if _, err := fmt.Fprintf(w, "chain id %d: no blocks yet\n", s.ChainID); err != nil {
			return err
		}
		return printPartialStatus(w, s.Partial)
	}
	fmt.Fprintf(w, "chain id      %d\nhead          %d %s\n", s.ChainID, s.Head.Number, s.Head.Hash)
	for _, c := range s.Coverage {
		fmt.Fprintf(w, "blocks        %d to %d\n", c.From, c.To)
	}
	_, err := fmt.Fprintf(w, "in all        %s, %s, %s\nfiles         %s, %s\n",
		counted(s.Blocks, "block"), counted(s.Transactions, "transaction"), counted(s.Logs, "log"),
		humanize.Comma(int64(s.Files)), humanize.IBytes(s.FileBytes))
	if err != nil {
		return err
	}
	return printPartialStatus(w, s.Partial)
}
