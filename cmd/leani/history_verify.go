package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/config"
)

// provedReport is what history verify prints.
type provedReport struct {
	Blocks       uint64 `json:"blocks"`
	Transactions uint64 `json:"transactions"`
	Logs         uint64 `json:"logs"`
	// Digest is over the content of the blocks.
	Digest string `json:"digest"`
	// Missing are the blocks of the range that are not stored.
	Missing  []blockSpan `json:"missing"`
	Problems []string    `json:"problems"`
}

func newHistoryVerify(a *app) *cobra.Command {
	var (
		span   blockSpan
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Prove stored blocks against their headers",
		Long: `Prove stored blocks: transactions, receipts, logs, withdrawals and ommers against the roots in their headers,
the links between blocks, and stored senders against the signatures, which are recovered again. Index files that
lie in the range are compared with the logs.

Without a range everything that is stored is verified. With one, both ends belong to it, and a block of it that is
not stored is a problem. The database and the files as a whole are proved by db verify.`,
		Example: "  leani history verify --from-block 17034869 --to-block 17034870",
		Args:    noArguments,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			from, to := cmd.Flags().Changed("from-block"), cmd.Flags().Changed("to-block")
			if from != to {
				return &usageError{errors.New("--from-block and --to-block belong together")}
			}
			var blocks chain.Range
			if from {
				if err := span.validate(); err != nil {
					return &usageError{err}
				}
				blocks = span.half()
			}
			return withNode(cmd.Context(), a, true, func(_ *config.Config, n node) error {
				return historyVerify(cmd.Context(), a, n, blocks, asJSON)
			})
		}),
	}
	span.optionalFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func historyVerify(ctx context.Context, a *app, n node, blocks chain.Range, asJSON bool) error {
	held, err := n.status(ctx)
	if err != nil {
		return err
	}
	total := held.Blocks
	if !blocks.Empty() {
		total = blocks.Len() - n.missing(blocks)
	}
	reporter := a.reporter("history verify", total, false)
	r, err := n.prove(ctx, blocks, reporter.Report)
	reporter.Finish()
	if err != nil {
		return err
	}
	if r.Problems == nil {
		r.Problems = []string{}
	}
	found := slices.Clip(r.Problems)
	for _, m := range r.Missing {
		found = append(found, m.String()+" not stored")
	}
	return a.findings(asJSON, r, found, fmt.Sprintf("%s, %s, %s: %s", counted(r.Blocks, "block"), counted(r.Transactions, "transaction"),
		counted(r.Logs, "log"), counted(uint64(len(found)), "problem")))
}
