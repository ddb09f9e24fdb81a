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
		Short: "List the files of the history sources, their blocks, and what of them is stored",
		Long: `List the history sources in the order in which they are read, and of each the files that belong to
the chain, the blocks that each of them holds, and how many of these are stored already. No block is
read. While another process uses the store, the files are listed without what is stored.

Of a mirror the list of its files is fetched. Where the name of a file says which era it holds, the name
is believed until the file is read, and the size is not known; otherwise the end of the file is fetched.`,
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
	for _, source := range r.Sources {
		fmt.Fprintf(out, "%s: %s, priority %d, %s\n", source.ID, source.Kind, source.Priority, source.Place)
		if source.Error != "" {
			fmt.Fprintf(out, "not usable: %s\n\n", source.Error)
			continue
		}
		fmt.Fprintln(out)
		w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
		fmt.Fprint(w, "file\tfrom block\tto block\tsize\tstored\n")
		files := 0
		for _, f := range r.Files {
			if f.Source == source.ID {
				fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\n", f.Name, f.From, f.To, f.size(), f.stored())
				files++
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(out, "\n%s: %s\n\n", counted(uint64(files), "file"), listSpans(source.Coverage))
	}
	for _, problem := range r.Unreadable {
		fmt.Fprintf(out, "not usable: %s\n", problem)
	}
	if r.Note != "" {
		fmt.Fprintf(out, "%s\n", r.Note)
	}
	if len(r.Sources) > 1 {
		if _, err := fmt.Fprintf(out, "All sources: %s\n", listSpans(r.Coverage)); err != nil {
			return err
		}
	}
	return nil
}

// size is how large the file is, where that is known.
func (f sourceFile) size() string {
	if f.Bytes == 0 {
		return "?"
	}
	return humanize.IBytes(f.Bytes)
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
