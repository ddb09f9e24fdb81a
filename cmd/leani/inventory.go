package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/dustin/go-humanize"

	"github.com/leani-go/leani/engine"
)

// printInventory prints what a store holds, for people. logical is the size of its data files before
// compression.
func printInventory(out io.Writer, inv *engine.Inventory, space engine.Space, logical int64, quarantined []engine.QuarantinedFile) error {
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
		if c.Profile == engine.ProfileComplete {
			fmt.Fprintf(w, "%s\t%d to %d\n", c.Field, c.From, c.To-1)
		}
	}
	printPartial(w, inv)
	fmt.Fprint(w, "\ndisk space\tbytes\n")
	for _, class := range []struct {
		name  string
		bytes int64
	}{
		{"data", space.Data}, {"data before compression", logical}, {"index", space.Index}, {"senders", space.Senders}, {"frames", space.Frames},
		{"replaced", space.Retired}, {"temporary", space.Temporary}, {"database", space.Database}, {"in all", space.Total()},
	} {
		fmt.Fprintf(w, "%s\t%d\n", class.name, class.bytes)
	}
	if len(quarantined) > 0 {
		fmt.Fprint(w, "\nquarantine\tbytes\n")
		for _, q := range quarantined {
			fmt.Fprintf(w, "%s\t%d\n", q.Name, q.Size)
		}
	}
	return w.Flush()
}
