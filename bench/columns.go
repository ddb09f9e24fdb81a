package bench

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/keys"
	"github.com/leani-go/leani/segments"
)

// Columns is what the columns of all segment files take, page tables included, in bytes by the name of
// the column.
type Columns map[string]int64

// Columns reads all files of a store and adds up their columns.
func (s *Store) Columns(ctx context.Context) (Columns, error) {
	snap := s.Engine.Acquire()
	defer snap.Release()
	sum := make(Columns)
	for _, kind := range keys.Kinds() {
		for _, row := range snap.Rows(kind) {
			if err := s.addColumns(ctx, row, sum); err != nil {
				return nil, fmt.Errorf("columns of %s: %w", row, err)
			}
		}
	}
	return sum, nil
}

// rowSource reads the file of a row that is held by a snapshot.
type rowSource struct {
	engine *engine.Engine
	row    *engine.FileRow
}

// ReadAt implements io.ReaderAt.
func (r rowSource) ReadAt(p []byte, off int64) (int, error) { return r.engine.ReadRowAt(r.row, p, off) }

// Size is the size of the file.
func (r rowSource) Size() int64 { return r.row.Size }

// addColumns takes the numbers from the last part of what segments.Dump prints: a line for each column,
// bytes first, those of its page table fourth, its name last.
func (s *Store) addColumns(ctx context.Context, row *engine.FileRow, sum Columns) error {
	f, err := segments.Open(row.String(), 0, rowSource{s.Engine, row}, nil)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := segments.Dump(ctx, &text, f); err != nil {
		return err
	}
	_, summary, found := strings.Cut(text.String(), "\nbytes by column\n")
	lines := strings.Split(strings.TrimSpace(summary), "\n")
	if !found || len(lines) < 2 {
		return fmt.Errorf("no summary of columns in the dump")
	}
	for _, line := range lines[1:] {
		fields := strings.Fields(line)
		if len(fields) < 8 {
			return fmt.Errorf("dump line %q: want seven numbers and a name", line)
		}
		stored, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			return fmt.Errorf("dump line %q: %w", line, err)
		}
		table, err := strconv.ParseInt(fields[3], 10, 64)
		if err != nil {
			return fmt.Errorf("dump line %q: %w", line, err)
		}
		sum[strings.Join(fields[7:], " ")] += stored + table
	}
	return nil
}

// ColumnGroups are columns by what they are for, in bytes.
type ColumnGroups struct {
	Logs     int64 // log pages without transaction hashes, and the dictionaries of their values
	Index    int64 // terms and postings
	Hashes   int64 // transaction hashes in log pages, 32 bytes each
	Locators int64 // from hashes to transactions and blocks
	Cold     int64 // headers, bodies, transactions, receipts
	Senders  int64
	Rest     int64 // rows of blocks, digests of pages
}

// Groups divides the columns of a store with a number of transactions.
func (c Columns) Groups(transactions uint64) (g ColumnGroups) {
	g.Hashes = int64(transactions) * common.HashLength
	for name, n := range c {
		switch name {
		case "logs", "shapes", "short words", "words":
			g.Logs += n
		case "terms", "postings":
			g.Index += n
		case "transaction locator", "block locator":
			g.Locators += n
		case "headers", "bodies", "transactions", "receipts":
			g.Cold += n
		case "senders":
			g.Senders += n
		default:
			g.Rest += n
		}
	}
	g.Logs -= g.Hashes
	return g
}
