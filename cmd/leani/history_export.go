package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/holiman/uint256"
	"github.com/spf13/cobra"

	"github.com/leani-go/leani/config"
	"github.com/leani-go/leani/internal/progress"
)

// exportRequest says which blocks become era files, and where.
type exportRequest struct {
	span blockSpan
	out  string
	// parentDifficulty is the total difficulty before the first block; nil when it is to be found.
	parentDifficulty *uint256.Int
}

// exportReport is what history export prints.
type exportReport struct {
	Folder string       `json:"folder"`
	Files  []exportFile `json:"files"`
	Blocks uint64       `json:"blocks"`
	Bytes  uint64       `json:"bytes"`
}

// exportFile is a file of an export.
type exportFile struct {
	Name string `json:"name"`
	blockSpan
	Bytes  uint64 `json:"bytes"`
	SHA256 string `json:"sha256"`
}

func newHistoryExport(a *app) *cobra.Command {
	var (
		req        exportRequest
		difficulty string
		asJSON     bool
	)
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write stored blocks as era files",
		Long: `Write a range of stored blocks as EraE files (.ere), byte for byte as go-ethereum exports them: one file for
each era of 8,192 blocks that the range touches, with receipts and without proofs, named by chain, era and last
block. Every block of the range must be stored. The files are listed in checksums_sha256.txt of the folder, beside
what it lists already, so that the folder is a source for history fill. A file appears when it is complete.

Files with blocks before the merge hold total difficulties. They follow from the stored headers when blocks are
held from block 0 on; otherwise --parent-difficulty gives the total difficulty before the first block.

No other process may use the data directory meanwhile.`,
		Example: "  leani history export --from-block 17034869 --to-block 17034870 --out era",
		Args:    noArguments,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			if err := req.span.validate(); err != nil {
				return &usageError{err}
			}
			if difficulty != "" {
				d, err := uint256.FromDecimal(difficulty)
				if err != nil {
					return &usageError{errors.New("--parent-difficulty: write a decimal number")}
				}
				req.parentDifficulty = d
			}
			return historyExport(cmd.Context(), a, req, asJSON)
		}),
	}
	req.span.flags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&req.out, "out", "", "`folder` of the files, made where the one above it exists")
	flags.StringVar(&difficulty, "parent-difficulty", "", "total `difficulty` before the first block, decimal")
	flags.BoolVar(&asJSON, "json", false, "print a JSON object")
	requireFlag(cmd, "out")
	return cmd
}

func historyExport(ctx context.Context, a *app, req exportRequest, asJSON bool) error {
	return withNode(ctx, a, true, func(_ *config.Config, n node) error {
		reporter := a.reporter("history export", req.span.half().Len(), false)
		r, err := n.export(ctx, req, reporter.Report)
		reporter.Finish()
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(a.stdout, r)
		}
		for _, f := range r.Files {
			fmt.Fprintf(a.stdout, "%s  %s, %s\n", f.Name, f.blockSpan, humanize.IBytes(f.Bytes))
		}
		_, err = fmt.Fprintf(a.stdout, "%s in %s of %s, %s.\n", counted(r.Blocks, "block"), counted(uint64(len(r.Files)), "file"), r.Folder, humanize.IBytes(r.Bytes))
		return err
	})
}

// observer reports blocks one by one.
type observer struct {
	blocks  uint64
	observe func(progress.Count)
}

func (o *observer) block() {
	o.blocks++
	o.observe(progress.Count{Blocks: o.blocks})
}
