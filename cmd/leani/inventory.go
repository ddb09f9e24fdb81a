package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/dustin/go-humanize"

	"github.com/leani-go/leani/engine"
)

// printInventory prints what a store holds, for people.
func printInventory(out io.Writer, inv *engine.Inventory) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "format version\t%d\nchain id\t%d\nepoch\t%x\ngeneration\t%d\ndatabase\t%s\n",
		inv.FormatVersion, inv.ChainID, inv.Epoch, inv.Generation, humanize.IBytes(inv.DatabaseBytes))
	fmt.Fprintf(w, "replaced files\t%d, %s\n", inv.RetiredFiles, humanize.IBytes(uint64(inv.RetiredBytes)))
	fmt.Fprint(w, "\nkey family\tkeys\tkey bytes\tvalue bytes\n")
	for _, f := range inv.Families {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\n", f.Family, f.Keys, f.KeyBytes, f.ValueBytes)
	}
	fmt.Fprint(w, "\nsegment files\tlevel\tfiles\tsize\tblocks\ttransactions\tlogs\n")
	for _, f := range inv.Files {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%d\t%d\t%d\n", f.Kind, f.Level, f.Files, humanize.IBytes(uint64(f.Bytes)), f.Blocks, f.Transactions, f.Logs)
	}
	fmt.Fprint(w, "\ncoverage\tblocks\n")
	for _, c := range inv.Coverage {
		fmt.Fprintf(w, "%s\t%d to %d\n", c.Field, c.From, c.To-1)
	}
	return w.Flush()
}
