package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/leani-go/leani/config"
	"github.com/leani-go/leani/ingest/archive"
)

// archiveRequest says which blocks become an archive, and how.
type archiveRequest struct {
	span         blockSpan
	out          string
	objectBlocks uint64
}

// archiveReport is what archive create prints.
type archiveReport struct {
	Manifest string `json:"manifest"`
	ID       string `json:"id"`
	blockSpan
	Blocks  uint64 `json:"blocks"`
	Objects uint64 `json:"objects"`
	Bytes   uint64 `json:"bytes"` // of the objects
}

func newArchiveCreate(a *app) *cobra.Command {
	var (
		req    archiveRequest
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Write stored blocks as an archive of normalized frames",
		Long: `Write a range of stored blocks as an archive: a folder with a manifest and files of JSON lines, which
other programs read and which "archive" sources of history are filled from. Every block of the range must be
stored and final. The same blocks always give the same bytes.

The folder must not exist, and the one above it must. It appears as a whole when everything in it is durable; a
run that is killed before leaves a folder beside it whose name begins with a dot and holds .partial-, which can
be deleted. An archive takes some twenty times the space of era files. No other process may use the data directory
meanwhile.`,
		Example: "  leani archive create --from-block 17034869 --to-block 17034870 --out archive",
		Args:    noArguments,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			switch err := req.span.validate(); {
			case err != nil:
				return &usageError{err}
			case req.objectBlocks == 0:
				return &usageError{errors.New("--object-blocks 0: an object holds at least one block")}
			}
			return archiveCreate(cmd.Context(), a, req, asJSON)
		}),
	}
	req.span.flags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&req.out, "out", "", "`folder` to make")
	flags.Uint64Var(&req.objectBlocks, "object-blocks", archive.DefaultObjectBlocks, "blocks in a file, at most; a file of 256 MiB ends earlier")
	flags.BoolVar(&asJSON, "json", false, "print a JSON object")
	if err := cmd.MarkFlagRequired("out"); err != nil {
		panic("BUG: " + err.Error()) // the flag was added above
	}
	return cmd
}

func archiveCreate(ctx context.Context, a *app, req archiveRequest, asJSON bool) error {
	return withNode(ctx, a, true, func(_ *config.Config, n node) error {
		reporter := a.reporter("archive create", req.span.To-req.span.From+1, false)
		r, err := n.createArchive(ctx, req, reporter.Report)
		reporter.Finish()
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(a.stdout, r)
		}
		_, err = fmt.Fprintf(a.stdout, "%s written: %s in %s, %s. The manifest is %s.\n", req.span.subject(), counted(r.Blocks, "block"),
			counted(r.Objects, "file"), humanize.IBytes(r.Bytes), r.Manifest)
		return err
	})
}
