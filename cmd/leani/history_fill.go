package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/config"
	"github.com/leani-go/leani/internal/progress"
)

func newHistoryFill(a *app) *cobra.Command {
	var (
		span   blockSpan
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "fill",
		Short: "Read, verify and store a range of blocks",
		Long: `Read a range of blocks from the history sources, verify it against the roots in its headers, and
store it. Proved are each block against its own header, the links between blocks, and block 0 against
the genesis block where that is known; that the headers are those of the canonical chain is what the
checksums of the source say.

Both ends of the range belong to it. Blocks that are stored already are skipped, so that a run that
was interrupted goes on where it stopped. One SIGINT or SIGTERM stops cleanly after what is being
written; a second one at once. No other process may use the data directory meanwhile.

Where no source has a block whole the run ends with an error, unless raw_history.partial is "keep": what
archives and era folders have of such blocks is then kept apart, and answers no request.`,
		Example: "  leani history fill --from-block 0 --to-block 8191",
		Args:    noArguments,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			if err := span.validate(); err != nil {
				return &usageError{err}
			}
			return historyFill(cmd.Context(), a, span, asJSON)
		}),
	}
	span.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print progress and outcome as JSON lines")
	return cmd
}

// flags adds --from-block and --to-block, both required, with --from and --to as other names.
func (s *blockSpan) flags(cmd *cobra.Command) {
	s.optionalFlags(cmd)
	for _, name := range []string{"from-block", "to-block"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic("BUG: " + err.Error()) // the flag was added above
		}
	}
}

// optionalFlags adds the same flags, which may be left out.
func (s *blockSpan) optionalFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var((*blockNumber)(&s.From), "from-block", "first `block` (also --from)")
	flags.Var((*blockNumber)(&s.To), "to-block", "last `block` (also --to)")
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		switch name {
		case "from", "to":
			name += "-block"
		}
		return pflag.NormalizedName(name)
	})
}

// validate refuses a span without blocks, and one whose half-open form does not fit.
func (s *blockSpan) validate() error {
	switch {
	case s.From > s.To:
		return fmt.Errorf("--from-block %d is above --to-block %d", s.From, s.To)
	case s.To == math.MaxUint64:
		return fmt.Errorf("--to-block %d is out of range", s.To)
	}
	return nil
}

func (s blockSpan) half() chain.Range { return chain.Range{From: s.From, To: s.To + 1} }

func historyFill(ctx context.Context, a *app, span blockSpan, asJSON bool) error {
	var (
		reporter *progress.Reporter
		missing  uint64
		failures []sourceFailure
		partial  uint64
	)
	err := withNode(ctx, a, false, func(_ *config.Config, n node) error {
		missing = n.missing(span.half())
		reporter = a.reporter("history fill", missing, asJSON)
		err := n.fill(ctx, span.half(), reporter.Report)
		failures, partial = n.sourceFailures(), n.keptPartial()
		return err
	})
	if asJSON {
		for _, f := range failures {
			if err := json.NewEncoder(a.stdout).Encode(sourceFailureEvent{"sourceFailure", f}); err != nil {
				return err
			}
		}
	}
	if reporter == nil { // nothing was opened
		if asJSON {
			a.reporter("history fill", 0, true).Fail(err)
		}
		return err
	}
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return fmt.Errorf("interrupted after %s; run the command again to go on", reporter.Interrupt())
	case err != nil:
		reporter.Fail(err)
		return err
	}
	summary := reporter.Finish()
	switch {
	case asJSON:
	case partial > 0:
		_, err = fmt.Fprintf(a.stdout, "%s stored as far as the sources have them, %s in part: %s. `leani history status` lists what is there.\n",
			span.subject(), counted(partial, "block"), summary)
	case missing == 0:
		_, err = fmt.Fprintf(a.stdout, "%s stored already.\n", span.subject())
	default:
		_, err = fmt.Fprintf(a.stdout, "%s stored: %s.\n", span.subject(), summary)
	}
	if err != nil || asJSON {
		return err
	}
	return printFailures(a.stdout, failures)
}

// sourceFailureEvent is a line of history fill --json.
type sourceFailureEvent struct {
	Event string `json:"event"`
	sourceFailure
}

// printFailures says which sources failed although all blocks are stored.
func printFailures(out io.Writer, failures []sourceFailure) error {
	if len(failures) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(out, "Sources failed, and others had the blocks (%s):\n", counted(uint64(len(failures)), "failure")); err != nil {
		return err
	}
	for _, f := range failures {
		if _, err := fmt.Fprintf(out, "  %s, from block %d on: %s\n", f.Source, f.Block, f.Reason); err != nil {
			return err
		}
	}
	return nil
}

// subject begins a sentence about the span: "Blocks 5 to 7 are".
func (s blockSpan) subject() string {
	if s.From == s.To {
		return fmt.Sprintf("Block %d is", s.From)
	}
	return fmt.Sprintf("Blocks %d to %d are", s.From, s.To)
}

// reporter shows progress: JSON lines on standard output, or for people on standard error.
func (a *app) reporter(label string, blocks uint64, asJSON bool) *progress.Reporter {
	o := progress.Options{Out: a.stderr, Style: progress.Lines, Label: label, Total: blocks, Now: a.now}
	switch {
	case asJSON:
		o.Out, o.Style = a.stdout, progress.JSON
	case isTerminal(a.stderr):
		o.Style = progress.Bar
	}
	return progress.New(o)
}
