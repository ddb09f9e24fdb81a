package segments

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/leani-go/leani/codec"
)

// Dump describes a file for people: what it covers, its columns, every page with the result of its
// checksum, and what each column takes. Pages that are damaged or cannot be read are described as far as
// they can be; only the context and the writer end it early. It does not use the cache.
func Dump(ctx context.Context, w io.Writer, f *File) error {
	out := bufio.NewWriter(w)
	d := dumper{f: f, out: out, pages: pageChecker{f: f}}
	d.info()
	d.columns()
	for i := range f.footer.columns {
		if err := d.column(ctx, &f.footer.columns[i]); err != nil {
			return fmt.Errorf("dump segment file %s: %w", f.name, errors.Join(err, out.Flush()))
		}
	}
	d.summary()
	if err := out.Flush(); err != nil {
		return fmt.Errorf("dump segment file %s: %w", f.name, err)
	}
	return nil
}

// dumper writes a dump. Errors of out show when it is flushed.
type dumper struct {
	f     *File
	out   *bufio.Writer
	pages pageChecker
	sizes []columnBytes
}

// columnBytes is what the pages of one column take.
type columnBytes struct {
	name                string
	pages               int
	raw, stored, tables uint64
	compressed, damaged int // pages
}

func (d *dumper) info() {
	i, f := d.f.footer.info, d.f
	w := d.table()
	fmt.Fprintf(w, "file\t%s\n", f.name)
	fmt.Fprintf(w, "kind\t%s, version %d, profile %d\n", i.Kind, formatVersion, i.Profile)
	fmt.Fprintf(w, "blocks\t%d to %d, %d in all\n", i.From, i.To-1, i.Blocks())
	fmt.Fprintf(w, "transactions\t%d\n", i.Transactions)
	fmt.Fprintf(w, "logs\t%d\n", i.Logs)
	fmt.Fprintf(w, "parent\t%s\n", i.FirstParent)
	fmt.Fprintf(w, "first\t%s\n", i.FirstHash)
	fmt.Fprintf(w, "last\t%s\n", i.LastHash)
	fmt.Fprintf(w, "digest\t%x\n", f.digest)
	fmt.Fprintf(w, "bytes\t%d, footer at %d\n", f.src.Size(), f.limit)
	if i.Kind == KindFrames {
		d.profile(w)
	}
	w.Flush()
}

// profile describes what the frames of a file hold.
func (d *dumper) profile(w io.Writer) {
	v, err := NewFrames(d.f.uncached())
	if err != nil {
		fmt.Fprintf(w, "profile\t%v\n", err)
		return
	}
	for _, line := range v.Profile().Lines() {
		fmt.Fprintf(w, "%s\t%s\n", line[0], line[1])
	}
}

// table starts an aligned part.
func (d *dumper) table() *tabwriter.Writer { return tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0) }

// numbers starts an aligned part of numbers.
func (d *dumper) numbers() *tabwriter.Writer {
	return tabwriter.NewWriter(d.out, 0, 0, 2, ' ', tabwriter.AlignRight)
}

func (d *dumper) columns() {
	fmt.Fprintln(d.out, "\ncolumns")
	w := d.numbers()
	fmt.Fprintln(w, "id\trows\tpages\ttable\tbytes\trow bytes\trows a page\t\tname")
	for i := range d.f.footer.columns {
		c := &d.f.footer.columns[i]
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%s\t%s\t\t%s\n", c.id, c.rows, c.pages, len(c.root), c.storedBytes, fixed(c.rowSize), fixed(c.rowsPerPage), c.id)
	}
	w.Flush()
}

// fixed prints a number that only fixed columns have.
func fixed(n uint32) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// column describes the pages of a column and of its page table.
func (d *dumper) column(ctx context.Context, c *column) error {
	fmt.Fprintf(d.out, "\npages of %s\n", c.id)
	var damage []error
	pages, _, err := d.f.columnPages(nil, c, func(err error) error {
		damage = append(damage, err)
		return nil
	})
	if err != nil {
		return err
	}
	for n, e := range c.root {
		pages = append(pages, pageRef{e, c.id, uint32(n), true})
	}
	sizes := columnBytes{name: c.id.String()}
	if len(pages) > 0 {
		fmt.Fprintf(d.out, "%12s %13s %9s %9s  %-8s %11s %11s  %s\n", "page", "offset", "bytes", "raw", "codec", "first row", "first tx", "checksum")
	}
	for _, p := range pages {
		if err := ctx.Err(); err != nil {
			return err
		}
		d.page(p, &sizes)
	}
	for _, err := range damage {
		fmt.Fprintln(d.out, err)
	}
	d.sizes = append(d.sizes, sizes)
	return nil
}

// page describes one page.
func (d *dumper) page(p pageRef, sizes *columnBytes) {
	number, state, raw, compression := fmt.Sprint(p.number), "ok", 0, codec.None
	err := d.pages.read(p)
	if err == nil {
		raw, compression, err = codec.PageInfo(d.pages.stored)
	}
	if err == nil {
		_, err = codec.DecodePage(d.pages.stored)
	}
	if err != nil {
		state = err.Error()
		sizes.damaged++
	}
	if p.table {
		number = "table " + number
		sizes.tables += uint64(p.entry.size)
	} else {
		sizes.pages++
		sizes.stored += uint64(p.entry.size)
		sizes.raw += uint64(raw)
		if compression != codec.None {
			sizes.compressed++
		}
	}
	fmt.Fprintf(d.out, "%12s %13d %9d %9d  %-8s %11d %11d  %s\n", number, p.entry.offset, p.entry.size, raw, compression, p.entry.firstRow, p.entry.firstTx, state)
}

// summary says what each column takes.
func (d *dumper) summary() {
	fmt.Fprintln(d.out, "\nbytes by column")
	w := d.numbers()
	fmt.Fprintln(w, "bytes\tof file\traw\ttable\tpages\tcompressed\tdamaged\t\tname")
	file := float64(max(d.f.src.Size(), 1))
	for _, s := range d.sizes {
		fmt.Fprintf(w, "%d\t%.1f%%\t%d\t%d\t%d\t%d\t%d\t\t%s\n", s.stored, 100*float64(s.stored)/file, s.raw, s.tables, s.pages, s.compressed, s.damaged, s.name)
	}
	w.Flush()
}
