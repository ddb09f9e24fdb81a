package era

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/regular"
)

// CatalogName is the file that lists the era files of a folder with their SHA-256, in the
// form that sha256sum writes: 64 hexadecimal digits, white space, an optional '*', the name.
const CatalogName = "checksums_sha256.txt"

// Limits of a catalog file.
const (
	// MaximumCatalogBytes is how large a catalog file may be.
	MaximumCatalogBytes = 16 << 20
	maximumCatalogRows  = 16_384
)

// Digest is a SHA-256.
type Digest [32]byte

// String is the digest in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Entry is a file of a catalog.
type Entry struct {
	Name   string // without folder
	Digest Digest
	Size   int64 // bytes when the catalog was read
	Layout Layout
	Range  chain.Range
}

// Catalog is a folder of era files of one chain, ordered by their blocks. It is immutable.
type Catalog struct {
	folder  string
	entries []Entry
	unread  []error
}

// Piece is a run of blocks within one file of a catalog.
type Piece struct {
	Entry *Entry
	Range chain.Range
}

// OpenCatalog reads the catalog of a folder, given as a path or a file: URL, and the block
// range of each file of the chain that it lists. Rows whose name does not begin with the
// chain's name and a '-' belong to other chains and are left out.
//
// Listed files that are missing or not readable as era files do not fail the catalog; Unread
// has their errors, and Select mentions them when it lacks blocks. Two files that hold the same
// block do fail it, as do a malformed row, a name listed twice, and a catalog without a file of
// the chain. No digest is checked yet: Prove does that.
func OpenCatalog(folder, chainName string) (*Catalog, error) {
	path, err := FolderPath(folder)
	if err != nil {
		return nil, err
	}
	rows, err := readRows(filepath.Join(path, CatalogName))
	if err != nil {
		return nil, err
	}
	c := &Catalog{folder: path}
	for _, row := range rows {
		if !strings.HasPrefix(row.Name, chainName+"-") {
			continue
		}
		if err := row.probe(path); err != nil {
			c.unread = append(c.unread, err)
			continue
		}
		c.entries = append(c.entries, row)
	}
	if len(c.entries) == 0 {
		err := fmt.Errorf("era catalog %s: none of its %d files is a readable file of chain %q; their names must begin with %q",
			filepath.Join(path, CatalogName), len(rows), chainName, chainName+"-")
		return nil, errors.Join(append([]error{err}, c.unread...)...)
	}
	return NewCatalog(path, c.entries, c.unread)
}

// NewCatalog makes a catalog of entries whose block ranges are known, and of the errors of files
// whose are not. The folder is for errors only. It keeps and sorts the entries. The error is that
// two of them hold the same block.
func NewCatalog(folder string, entries []Entry, unread []error) (*Catalog, error) {
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Range.From, b.Range.From), strings.Compare(a.Name, b.Name))
	})
	for i := range max(len(entries), 1) - 1 {
		a, b := &entries[i], &entries[i+1]
		if common := a.Range.Intersect(b.Range); !common.Empty() {
			return nil, fmt.Errorf("era catalog %s: %s with blocks %v and %s with blocks %v both hold %v",
				strings.TrimSuffix(folder, "/")+"/"+CatalogName, a.Name, a.Range, b.Name, b.Range, common)
		}
	}
	return &Catalog{folder: folder, entries: entries, unread: unread}, nil
}

// readRows parses a catalog file.
func readRows(path string) ([]Entry, error) {
	file, err := regular.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open era catalog: %w", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, MaximumCatalogBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read era catalog %s: %w", path, err)
	}
	rows, err := ParseCatalog(content)
	if err != nil {
		return nil, fmt.Errorf("era catalog %s: %w", path, err)
	}
	return rows, nil
}

// ParseCatalog parses the content of a catalog file; blank lines mean nothing. Of the entries only
// name and digest are filled in.
func ParseCatalog(content []byte) ([]Entry, error) {
	if len(content) > MaximumCatalogBytes {
		return nil, fmt.Errorf("larger than %d bytes", MaximumCatalogBytes)
	}
	var rows []Entry
	seen := make(map[string]int)
	lines := bufio.NewScanner(bytes.NewReader(content))
	for line := 1; lines.Scan(); line++ {
		fields := bytes.Fields(lines.Bytes())
		if len(fields) == 0 {
			continue
		}
		row, err := parseRow(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if before, ok := seen[row.Name]; ok {
			return nil, fmt.Errorf("line %d: file %q is listed on line %d already", line, row.Name, before)
		}
		if len(rows) == maximumCatalogRows {
			return nil, fmt.Errorf("line %d: more than %d files", line, maximumCatalogRows)
		}
		seen[row.Name] = line
		rows = append(rows, row)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, errors.New("lists no file")
	}
	return rows, nil
}

func parseRow(fields [][]byte) (Entry, error) {
	if len(fields) != 2 {
		return Entry{}, fmt.Errorf("%d fields, want a digest and a file name", len(fields))
	}
	var e Entry
	if len(fields[0]) != hex.EncodedLen(len(e.Digest)) {
		return Entry{}, fmt.Errorf("digest of %d characters, want %d hexadecimal digits", len(fields[0]), hex.EncodedLen(len(e.Digest)))
	}
	if _, err := hex.Decode(e.Digest[:], fields[0]); err != nil {
		return Entry{}, fmt.Errorf("digest: %w", err)
	}
	e.Name = string(bytes.TrimPrefix(fields[1], []byte("*")))
	if e.Name == "" || e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\\\x00") {
		return Entry{}, fmt.Errorf("%q is not a file name", e.Name)
	}
	return e, nil
}

// probe fills in what the end of the file says.
func (e *Entry) probe(folder string) error {
	path := filepath.Join(folder, e.Name)
	file, err := regular.Open(path)
	if err != nil {
		return fmt.Errorf("open era file: %w", err)
	}
	defer file.Close()
	stat, err := file.Stat()
	if err != nil {
		return fmt.Errorf("open era file: %w", err)
	}
	info, err := Probe(path, file, stat.Size())
	if err != nil {
		return err
	}
	e.Size, e.Layout, e.Range = stat.Size(), info.Layout, info.Range
	return nil
}

// Entries are the files of the chain in the order of their blocks. They must not be changed.
func (c *Catalog) Entries() []Entry { return c.entries }

// Unread are the errors of listed files of the chain that could not be read.
func (c *Catalog) Unread() []error { return c.unread }

// Select cuts r into runs of blocks by file, in order. When files for some of the blocks are
// lacking the error is a *HoleError that lists those, and the runs are those of the other blocks.
func (c *Catalog) Select(r chain.Range) ([]Piece, error) {
	var pieces []Piece
	var holes []chain.Range
	next := r.From
	for i := range c.entries {
		e := &c.entries[i]
		part := e.Range.Intersect(r)
		if part.Empty() {
			continue
		}
		if next < part.From {
			holes = append(holes, chain.Range{From: next, To: part.From})
		}
		pieces = append(pieces, Piece{Entry: e, Range: part})
		next = part.To
	}
	if next < r.To {
		holes = append(holes, chain.Range{From: next, To: r.To})
	}
	if len(holes) > 0 {
		return pieces, &HoleError{Folder: c.folder, Missing: holes, Unread: c.unread}
	}
	return pieces, nil
}

// HoleError says which blocks no file of a catalog holds.
type HoleError struct {
	Folder  string
	Missing []chain.Range // in order, none empty
	Unread  []error       // files of the chain that might hold them but could not be read
}

// Error lists the missing blocks and the files that could not be read.
func (e *HoleError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "era folder %s: no file holds blocks", e.Folder)
	for i, r := range e.Missing {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, " %v", r)
	}
	for _, err := range e.Unread {
		fmt.Fprintf(&b, "; %v", err)
	}
	return b.String()
}

// Holes are the missing runs of blocks.
func (e *HoleError) Holes() []chain.Range { return e.Missing }

// Unwrap gives the errors of the files that could not be read.
func (e *HoleError) Unwrap() []error { return e.Unread }
