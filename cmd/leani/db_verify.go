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
		Args: noArguments,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			return withNode(cmd.Context(), a, true, func(_ *config.Config, n node) error { return dbVerify(cmd.Context(), a, n, asJSON) })
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func dbVerify(ctx context.Context, a *app, n node, asJSON bool) error {
	held, err := n.status(ctx)
	if err != nil {
		return err
	}
	reporter := a.reporter("db verify", held.Blocks, false)
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
		what := counted(r.Blocks, "block")
		if r.Frames > 0 {
			what += " and partial material of " + counted(r.Frames, "block")
		}
		fmt.Fprintf(a.stdout, "%s in %s, %s: %s\n", what, counted(r.Files, "file"),
			humanize.IBytes(r.Bytes), counted(uint64(len(r.Problems)), "problem"))
	}
	return problems(len(r.Problems))
}

// problems is the failure of a check that found some.
func problems(n int) error {
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%s found: see docs/troubleshooting.md", counted(uint64(n), "problem"))
}
