package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/remote"
)

// EraMirror is the source of the era files of one chain in a folder of an HTTP or HTTPS server.
//
// What a file holds is read from the end of it, by requests for a few bytes. To be read, a file is
// fetched whole onto the disk first: the digest that the catalog gives is one of the whole file, and
// only bytes that are here cannot change between the comparison and their use.
type EraMirror struct {
	// Fetching is told of each file before it is fetched, with its size where that is known, else 0.
	// It is set before the first use; nil tells nobody.
	Fetching func(file string, bytes int64)

	folder    *remote.Folder
	temporary *Temporary
	entries   []*mirrorEntry          // in the order of the catalog
	byName    map[string]*mirrorEntry // by the names of extents
	unusable  []error                 // files of the chain that are never read

	mu       sync.Mutex
	noRanges bool // the server has no byte ranges
}

// mirrorEntry is a file of a mirror.
type mirrorEntry struct {
	era.Entry
	name string      // for extents and messages
	hint chain.Range // the blocks that the name allows
	next bool        // the name says that another file follows right behind

	// Set once known: Range, and for servers with ranges Version. The Source methods are not
	// called at the same time, and goroutines of one call have an entry each.
	known   bool
	version remote.Version
}

// Names of era files are NETWORK-NUMBER-HASH and more, with five digits for the number.
const (
	eraBlocks    = 8192 // of a full file
	eraDigits    = 5
	eraHashChars = 8
	// tailBytes is what the first look at a file asks for. It holds the whole index of small files.
	tailBytes = 1 << 10
	// maximumUnavailable is how many files a plan tries to look at in vain before it gives up the
	// source.
	maximumUnavailable = 3
)

// OpenEraMirror fetches the catalog of a mirror, given as an http or https URL that ends in a slash.
// Listed files without receipts are left out, as is what belongs to other chains.
func OpenEraMirror(ctx context.Context, endpoint, chainName string, temporary *Temporary, o remote.Options) (*EraMirror, error) {
	folder, err := remote.Open(endpoint, o)
	if err != nil {
		return nil, fmt.Errorf("era mirror: %w", err)
	}
	content, err := folder.Read(ctx, era.CatalogName, era.MaximumCatalogBytes)
	if err != nil {
		return nil, fmt.Errorf("era catalog: %w", err)
	}
	rows, err := era.ParseCatalog(content)
	if err != nil {
		return nil, fmt.Errorf("era catalog %s: %w", folder.Name(era.CatalogName), err)
	}
	m := &EraMirror{folder: folder, temporary: temporary, byName: make(map[string]*mirrorEntry)}
	for _, row := range rows {
		if !strings.HasPrefix(row.Name, chainName+"-") {
			continue
		}
		name := folder.Name(row.Name)
		if strings.Contains(row.Name, "-noreceipts") {
			m.unusable = append(m.unusable, fmt.Errorf("%s: %w", name, ErrNoReceipts))
			continue
		}
		e := &mirrorEntry{Entry: row, name: name, hint: nameRange(chainName, row.Name)}
		m.entries, m.byName[name] = append(m.entries, e), e
	}
	if len(m.entries) == 0 {
		err := fmt.Errorf("era catalog %s: none of its %d files is a file of chain %q with receipts; their names must begin with %q",
			folder.Name(era.CatalogName), len(rows), chainName, chainName+"-")
		return nil, join(append([]error{err}, m.unusable...))
	}
	for _, e := range m.entries {
		e.next = slices.ContainsFunc(m.entries, func(o *mirrorEntry) bool {
			return e.hint.To != anyBlock.To && o.hint.From == e.hint.From+eraBlocks
		})
	}
	return m, nil
}

// anyBlock is the hint of a name that says nothing.
var anyBlock = chain.Range{From: 0, To: 1<<64 - 1}

// nameRange is where the blocks of a file can be by its name: a file begins within the era of its
// number and has no more blocks than an era.
func nameRange(chainName, name string) chain.Range {
	number, rest, _ := strings.Cut(strings.TrimPrefix(name, chainName+"-"), "-")
	hash, _, _ := strings.Cut(rest, ".")
	hash, _, _ = strings.Cut(hash, "-")
	n, err := strconv.ParseUint(number, 10, 32)
	_, hashErr := strconv.ParseUint(hash, 16, 32)
	if err != nil || hashErr != nil || len(number) != eraDigits || len(hash) != eraHashChars {
		return anyBlock
	}
	return chain.Range{From: n * eraBlocks, To: (n + 2) * eraBlocks}
}

// Name is how messages name the mirror.
func (m *EraMirror) Name() string { return m.folder.Name("") }

// Files are what is known of the files of the chain, in the order of their blocks: name, and the range
// that the index or, until that is read, the name says. Where neither says anything, the range is
// empty. The size is 0 until the index is read.
func (m *EraMirror) Files() []era.Entry {
	var files []era.Entry
	for _, e := range m.entries {
		f := e.Entry
		if !e.known && e.hint != anyBlock {
			f.Range = chain.Range{From: e.hint.From, To: e.hint.From + eraBlocks}
		}
		files = append(files, f)
	}
	slices.SortStableFunc(files, func(a, b era.Entry) int { return cmp.Compare(a.Range.From, b.Range.From) })
	return files
}

// Unread are the errors of files that the source leaves out.
func (m *EraMirror) Unread() []error { return m.unusable }

// Close closes idle connections.
func (m *EraMirror) Close() error {
	m.folder.Close()
	return nil
}

// Plan looks at the files that may hold blocks of r by their names, and names those that do. The
// error is an *era.HoleError, or that of a mirror which is not available.
func (m *EraMirror) Plan(ctx context.Context, r chain.Range) ([]Extent, error) {
	unread := slices.Clone(m.unusable)
	failures, err := m.look(ctx, func(e *mirrorEntry) bool { return !e.hint.Intersect(r).Empty() })
	if err != nil {
		return nil, err
	}
	unread = append(unread, failures...)
	var entries []era.Entry
	for _, e := range m.entries {
		if e.known {
			entries = append(entries, e.Entry)
		}
	}
	catalog, err := era.NewCatalog(m.folder.Name(""), entries, unread)
	if err != nil {
		return nil, err
	}
	pieces, err := catalog.Select(r)
	extents := make([]Extent, len(pieces))
	for i, p := range pieces {
		extents[i] = Extent{File: m.folder.Name(p.Entry.Name), Range: p.Range, Digest: p.Entry.Digest}
	}
	return extents, err
}

// Look reads the indexes of the files whose names do not say which blocks they hold, and returns the
// errors of those it could not read.
func (m *EraMirror) Look(ctx context.Context) ([]error, error) {
	return m.look(ctx, func(e *mirrorEntry) bool { return e.hint == anyBlock })
}

// look reads the indexes of files that are wanted and not known yet. It returns the errors of those
// it could not read, and an error when that is to be taken for the mirror's.
func (m *EraMirror) look(ctx context.Context, wanted func(*mirrorEntry) bool) ([]error, error) {
	var todo []*mirrorEntry
	for _, e := range m.entries {
		if !e.known && wanted(e) {
			todo = append(todo, e)
		}
	}
	var (
		mu          sync.Mutex
		failures    []error
		unavailable int
		next        int
		workers     sync.WaitGroup
	)
	take := func() *mirrorEntry {
		mu.Lock()
		defer mu.Unlock()
		if next == len(todo) || unavailable >= maximumUnavailable || ctx.Err() != nil {
			return nil
		}
		next++
		return todo[next-1]
	}
	for range min(lookers, len(todo)) {
		workers.Go(func() {
			for e := take(); e != nil; e = take() {
				if err := m.probe(ctx, e); err != nil {
					mu.Lock()
					failures = append(failures, err)
					if remote.Unavailable(err) {
						unavailable++
					}
					mu.Unlock()
				}
			}
		})
	}
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if unavailable >= maximumUnavailable { // those under way may have made it more
		return nil, join(failures)
	}
	return failures, nil
}

// lookers is how many files are looked at together; the folder bounds the requests.
const lookers = 16

// probe finds out which blocks a file holds.
func (m *EraMirror) probe(ctx context.Context, e *mirrorEntry) error {
	m.mu.Lock()
	noRanges := m.noRanges
	m.mu.Unlock()
	if !noRanges {
		tail, version, err := m.folder.Tail(ctx, e.Entry.Name, tailBytes)
		if err == nil {
			info, err := era.ProbeIndex(e.name, &sparse{ctx, m.folder, e.Entry.Name, version, tail}, version.Size)
			if err != nil {
				return err
			}
			e.version, e.Size, e.Layout, e.Range, e.known = version, version.Size, info.Layout, info.Range, true
			return nil
		}
		if !errors.Is(err, remote.ErrNoRanges) {
			return err
		}
		m.mu.Lock()
		m.noRanges = true
		m.mu.Unlock()
	}
	if e.next { // the name has to do: fetching the file to look at its end costs as much as reading it
		e.Range, e.known = chain.Range{From: e.hint.From, To: e.hint.From + eraBlocks}, true
		return nil
	}
	file, err := m.fetch(ctx, e)
	if err != nil {
		return err
	}
	info, err := era.Probe(e.name, file, e.Size)
	if err = join([]error{err, file.Close()}); err != nil {
		return err
	}
	e.Layout, e.Range, e.known = info.Layout, info.Range, true
	return nil
}

// sparse reads a remote file whose end is at hand.
type sparse struct {
	ctx     context.Context
	folder  *remote.Folder
	file    string
	version remote.Version
	tail    []byte
}

// ReadAt reads from the end that is at hand, or from the server.
func (s *sparse) ReadAt(b []byte, offset int64) (int, error) {
	if from := offset - (s.version.Size - int64(len(s.tail))); from >= 0 {
		n := copy(b, s.tail[min(from, int64(len(s.tail))):])
		if n < len(b) {
			return n, io.EOF
		}
		return n, nil
	}
	if err := s.folder.ReadRange(s.ctx, s.file, s.version, b, offset); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Open fetches a file that Plan named and reads its index. When that is damaged, the content is
// compared with the digest at once, and a difference is part of the error.
func (m *EraMirror) Open(ctx context.Context, name string, limits Limits) (File, error) {
	e, ok := m.byName[name]
	if !ok {
		return nil, fmt.Errorf("BUG: %s is not in the catalog", name)
	}
	file, err := m.fetch(ctx, e)
	if err != nil {
		return nil, err
	}
	return openEraFile(ctx, name, file.File, file.Close, &e.Entry, limits)
}

// fetch fetches a file onto the disk.
func (m *EraMirror) fetch(ctx context.Context, e *mirrorEntry) (*temporaryFile, error) {
	if m.Fetching != nil {
		m.Fetching(e.name, e.version.Size)
	}
	m.mu.Lock()
	noRanges := m.noRanges
	m.mu.Unlock()
	if !noRanges {
		return m.fetchPieces(ctx, e)
	}
	file, err := m.temporary.create(ctx, m.temporary.file) // how much is needed is not known
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", e.name, err)
	}
	version, err := m.folder.FetchWhole(ctx, e.Entry.Name, m.temporary.file, file)
	if errors.Is(err, remote.ErrTooLarge) {
		err = fmt.Errorf("%w: %w", ErrTemporaryDisk, err)
	}
	if err != nil {
		return nil, join([]error{err, file.Close()})
	}
	e.Size = version.Size
	if err := file.settle(version.Size); err != nil {
		return nil, join([]error{err, file.Close()})
	}
	return file, nil
}

func (m *EraMirror) fetchPieces(ctx context.Context, e *mirrorEntry) (*temporaryFile, error) {
	file, err := m.temporary.create(ctx, e.version.Size)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", e.name, err)
	}
	if err := m.folder.Fetch(ctx, e.Entry.Name, e.version, file); err != nil {
		return nil, join([]error{err, file.Close()})
	}
	return file, nil
}
