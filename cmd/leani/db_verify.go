package main

import (
	"context"
	"fmt"
	"slices"

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
	what := counted(r.Blocks, "block")
	if r.Frames > 0 {
		what += " and partial material of " + counted(r.Frames, "block")
	}
	return a.findings(asJSON, r, r.Problems, fmt.Sprintf("%s in %s, %s: %s", what, counted(r.Files, "file"),
		humanize.IBytes(r.Bytes), counted(uint64(len(r.Problems)), "problem")))
}

// findings prints what a check found, as a JSON object or, for people, a line for each problem and a last one. It fails
// when there are problems.
func (a *app) findings(asJSON bool, report any, found []string, last string) error {
	if asJSON {
		if err := printJSON(a.stdout, report); err != nil {
			return err
		}
		return problems(len(found))
	}
	for _, line := range append(slices.Clip(found), last) {
		if _, err := fmt.Fprintln(a.stdout, line); err != nil {
			return err
		}
	}
	return problems(len(found))
}

// problems is the failure of a check that found some.
func problems(n int) error {
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%s found: see docs/troubleshooting.md", counted(uint64(n), "problem"))
}
