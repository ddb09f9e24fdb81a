package main

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/leani-go/leani/config"
)

func newDBVerify(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Prove the store against itself",
		Long: `Read everything that is stored and prove it: the catalog against the files, every page against its
checksum, and transactions, receipts, logs and withdrawals against the roots in their headers.`,
		Args: cobra.NoArgs,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			return withNode(cmd.Context(), a, true, func(_ *config.Config, n node) error { return dbVerify(cmd.Context(), a, n, asJSON) })
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func dbVerify(ctx context.Context, a *app, n node, asJSON bool) error {
	reporter := a.reporter("db verify", 0, false)
	r, err := n.verify(ctx, reporter.Report)
	reporter.Finish()
	if err != nil {
		return err
	}
	if r.Problems == nil {
		r.Problems = []string{}
	}
	if asJSON {
		if err := printJSON(a.stdout, r); err != nil {
			return err
		}
	} else {
		for _, p := range r.Problems {
			fmt.Fprintln(a.stdout, p)
		}
		fmt.Fprintf(a.stdout, "%s blocks in %s files, %s: %d problems\n", humanize.Comma(int64(r.Blocks)),
			humanize.Comma(int64(r.Files)), humanize.IBytes(r.Bytes), len(r.Problems))
	}
	return problems(len(r.Problems))
}

// problems is the failure of a check that found some.
func problems(n int) error {
	switch n {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("1 problem found")
	}
	return fmt.Errorf("%d problems found", n)
}
