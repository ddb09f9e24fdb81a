package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
)

func newHistorySources(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "sources",
		Short: "List the era files, their blocks, and what of them is stored",
		Long: `List the files of the era source that belong to the chain, the blocks that each of them holds, and
how many of these are stored already. No block is read. While another process uses the store, the
files are listed without what is stored.`,
		Args: noArguments,
		RunE: action(func(cmd *cobra.Command, _ []string) error { return historySources(cmd.Context(), a, asJSON) }),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func historySources(ctx context.Context, a *app, asJSON bool) error {
	cfg, err := a.settings()
	if err != nil {
		return err
	}
	r, err := a.backend.sources(ctx, nodeOptions{settings: cfg, log: a.logger(), readOnly: true})
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(a.stdout, r)
	}
	return printSources(a.stdout, r)
}

func printSources(out io.Writer, r sourcesReport) error {
	fmt.Fprintf(out, "%s\n\n", r.Folder)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprint(w, "file\tfrom block\tto block\tsize\tstored\n")
	for _, f := range r.Files {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\n", f.Name, f.From, f.To, humanize.IBytes(f.Bytes), f.stored())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, problem := range r.Unreadable {
		fmt.Fprintf(out, "not usable: %s\n", problem)
	}
	if r.Note != "" {
		fmt.Fprintf(out, "\n%s\n", r.Note)
	}
	_, err := fmt.Fprintf(out, "\n%s: %s\n", counted(uint64(len(r.Files)), "file"), listSpans(r.Coverage))
	return err
}

// stored says how much of the file is stored.
func (f sourceFile) stored() string {
	switch all := f.To - f.From + 1; {
	case f.Stored == nil:
		return "?"
	case *f.Stored == all:
		return "all"
	case *f.Stored == 0:
		return "-"
	default:
		return fmt.Sprintf("%s of %s", humanize.Comma(int64(*f.Stored)), humanize.Comma(int64(all)))
	}
}
