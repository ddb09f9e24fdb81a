package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leani-go/leani/config"
)

// pruneRequest says what to prune: a range, or what is beyond the budget.
type pruneRequest struct {
	span     blockSpan
	toBudget bool
	head     bool // the highest block may go
	partial  bool // partial material goes, and no whole block
	dryRun   bool
}

// pruneReport is what history prune prints.
type pruneReport struct {
	Pruned []blockSpan `json:"pruned"`
	Blocks uint64      `json:"blocks"`
	// Files and bytes that go, and the files written again for blocks that stay.
	FilesRemoved  uint64 `json:"filesRemoved"`
	BytesRemoved  uint64 `json:"bytesRemoved"`
	FilesRewrite  uint64 `json:"filesToRewrite"`
	FilesWritten  uint64 `json:"filesWritten"`
	BytesWritten  uint64 `json:"bytesWritten"`
	DryRun        bool   `json:"dryRun"`
	StoredBytes   uint64 `json:"storedBytes"`            // of the segment files afterwards
	MaximumStored uint64 `json:"maximumBytes,omitempty"` // with --to-budget
}

func newHistoryPrune(a *app) *cobra.Command {
	var (
		req    pruneRequest
		before uint64
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove a range of blocks, or the oldest ones",
		Long: `Remove blocks from the store, with their receipts, logs, senders and index entries. Exactly the blocks
that are named go, in one step: a crash leaves all of them or none. Files that also hold other blocks are
written again without them, which takes space for a moment; least is written where files end, at multiples
of 1,024 for most.

Name the blocks by --before-block, or by --from-block and --to-block, both of which belong to the range; or
let --to-budget remove the oldest files until the rest fits raw_history.maximum_physical_bytes. The highest
block stays, and the tip that clients see with it, unless --head is given: that is for files which are
damaged and will be filled again.

With --partial the range loses what is kept of blocks that no source had whole, and no whole block.
--to-budget removes such material before any whole block.

What is pruned can be filled again by history fill. No other process may use the data directory meanwhile.`,
		Example: "  leani history prune --before-block 17000000 --dry-run\n  leani history prune --from-block 17034869 --to-block 17034870",
		Args:    noArguments,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			if err := req.complete(cmd.Flags(), before); err != nil {
				return &usageError{err}
			}
			return historyPrune(cmd.Context(), a, req, asJSON)
		}),
	}
	flags := cmd.Flags()
	flags.Var((*blockNumber)(&before), "before-block", "remove every `block` below this one")
	req.span.optionalFlags(cmd)
	flags.BoolVar(&req.toBudget, "to-budget", false, "remove the oldest files until raw_history.maximum_physical_bytes holds")
	flags.BoolVar(&req.head, "head", false, "let the highest block go too, and the tip move back")
	flags.BoolVar(&req.partial, "partial", false, "remove partial material of the range, and no whole block")
	flags.BoolVar(&req.dryRun, "dry-run", false, "change nothing, say what would go")
	flags.BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// complete turns the flags into a request, of which exactly one form must be given.
func (r *pruneRequest) complete(flags *pflag.FlagSet, before uint64) error {
	from, to := flags.Changed("from-block"), flags.Changed("to-block")
	forms := 0
	for _, given := range []bool{flags.Changed("before-block"), from || to, r.toBudget} {
		if given {
			forms++
		}
	}
	switch {
	case forms != 1:
		return errors.New("say what to remove: --before-block, --from-block with --to-block, or --to-budget")
	case r.partial && (r.toBudget || r.head):
		return errors.New("--partial goes with a range: it needs no --head, and --to-budget removes partial material first anyway")
	case from != to:
		return errors.New("--from-block and --to-block belong together; for all blocks below one there is --before-block")
	case r.toBudget:
		return nil
	case from:
		return r.span.validate()
	case before == 0:
		return errors.New("--before-block 0: no block is below block 0")
	}
	r.span = blockSpan{From: 0, To: before - 1}
	return nil
}

func historyPrune(ctx context.Context, a *app, req pruneRequest, asJSON bool) error {
	open := withStored
	if req.dryRun {
		open = func(ctx context.Context, a *app, f func(*config.Config, node) error) error {
			return withNode(ctx, a, true, f)
		}
	}
	return open(ctx, a, func(_ *config.Config, n node) error {
		r, err := n.prune(ctx, req)
		if err != nil {
			return err
		}
		if asJSON {
			if r.Pruned == nil {
				r.Pruned = []blockSpan{}
			}
			return printJSON(a.stdout, r)
		}
		return r.print(a)
	})
}

// print writes the report for people.
func (r pruneReport) print(a *app) error {
	if r.Blocks == 0 {
		_, err := fmt.Fprintln(a.stdout, "Nothing is stored of that; nothing was removed.")
		return err
	}
	spans := make([]string, len(r.Pruned))
	for i, s := range r.Pruned {
		spans[i] = s.String()
	}
	verb := "Removed"
	if r.DryRun {
		verb = "Would remove"
	}
	_, err := fmt.Fprintf(a.stdout, "%s %s: %s, %s in %s", verb, strings.Join(spans, ", "), counted(r.Blocks, "block"),
		humanize.IBytes(r.BytesRemoved), counted(r.FilesRemoved, "file"))
	if err == nil && r.DryRun && r.FilesRewrite > 0 {
		_, err = fmt.Fprintf(a.stdout, ", of which %d hold other blocks and would be written again without these", r.FilesRewrite)
	}
	if err == nil && r.FilesWritten > 0 {
		_, err = fmt.Fprintf(a.stdout, "; wrote %s in %s for blocks that stay", humanize.IBytes(r.BytesWritten), counted(r.FilesWritten, "file"))
	}
	if err == nil {
		_, err = fmt.Fprintln(a.stdout, ".")
	}
	return err
}
