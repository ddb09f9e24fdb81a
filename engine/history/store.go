package history

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/internal/sender"
	"github.com/leani-go/leani/segments"
)

// Defaults of Options.
const (
	// DefaultCacheBytes is the page cache: enough for the dictionaries and posting lists of a few
	// thousand blocks.
	DefaultCacheBytes = 64 << 20
	// DefaultTargetBlocks is the length of a data file. Files end at multiples of it.
	DefaultTargetBlocks = 1024
	// DefaultSegmentBytes ends a data file early.
	DefaultSegmentBytes = 256 << 20
	// DefaultBuilderMemory is several times what a run of 1,024 full blocks takes.
	DefaultBuilderMemory = 96 << 20
	// DefaultHotBytes is enough for the decoded logs of some 500 full blocks.
	DefaultHotBytes = 32 << 20
	// maximumOpenSegments bounds the footers kept in memory, about 2 KiB each.
	maximumOpenSegments = 4096
)

// Options configure New. The zero value is the default throughout.
type Options struct {
	// CacheBytes is the size of the page cache.
	CacheBytes int64
	// Compression of cold pages: headers, bodies, transactions, receipt scalars.
	Compression codec.Compression
	// TargetBlocks is the number of blocks of a full data file.
	TargetBlocks uint64
	// SegmentBytes bounds the size of a data file, roughly.
	SegmentBytes int64
	// MaximumBytes bounds the segment files together; 0 sets no bound. A run that would pass it is
	// not committed.
	MaximumBytes int64
	// MaximumLogicalBytes bounds the data files together, counted before compression; 0 sets no bound.
	MaximumLogicalBytes int64
	// BuilderMemory ends a data file early: what its builder may hold in memory. A Writer has up to
	// two of them, and Compact another one.
	BuilderMemory int64
	// HotBytes bounds what is kept decoded of the hot tier.
	HotBytes int64
	// Recent bounds the hot tier; see there.
	Recent RecentOptions
	// Logger is told about background work; nil discards it.
	Logger *slog.Logger

	// What follows is for tests: small stores that behave like large ones.

	// newRecoverer replaces the recovery of senders from signatures.
	newRecoverer func() senderRecoverer
	// scanRows replaces the constant of that name; 0 does not.
	scanRows uint64
	// hotGroup replaces maximumHotGroup; 0 does not.
	hotGroup uint64
}

func (o Options) withDefaults() Options {
	if o.CacheBytes <= 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	if o.TargetBlocks == 0 {
		o.TargetBlocks = DefaultTargetBlocks
	}
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.BuilderMemory <= 0 {
		o.BuilderMemory = DefaultBuilderMemory
	}
	if o.HotBytes <= 0 {
		o.HotBytes = DefaultHotBytes
	}
	o.Recent = o.Recent.withDefaults()
	if o.hotGroup == 0 || o.hotGroup > maximumHotGroup {
		o.hotGroup = maximumHotGroup
	}
	if o.scanRows == 0 {
		o.scanRows = scanRows
	}
	return o
}

// Store is the raw history in an open engine. The engine is not owned: close it after the last use.
type Store struct {
	engine *engine.Engine
	opts   Options
	cache  *segments.Cache

	open struct {
		sync.Mutex
		byRow map[*engine.FileRow]any // *segments.Data, *segments.Index, *segments.Senders or *segments.Frames
	}
	layout    atomic.Pointer[layout] // of the generation asked for last
	hot       hotCache
	feed      feed
	followers followers
	extend    extender

	// compacting serializes background work: two would plan the same.
	compacting sync.Mutex
	damaged    map[*engine.FileRow]struct{} // left out of it; guarded by compacting

	senders senderCache

	profiles sync.Map // *engine.Profile to *chain.Profile: decoded descriptions

	// logical are the sizes of data files before compression, by digest.
	logical struct {
		sync.Mutex
		bytes map[[32]byte]int64
	}
	scrubbed scrubCounts
}

// New makes a store on an open engine.
func New(e *engine.Engine, options Options) *Store {
	s := &Store{engine: e, opts: options.withDefaults()}
	if s.opts.newRecoverer == nil {
		s.opts.newRecoverer = func() senderRecoverer { return sender.New(e.ChainID()) }
	}
	s.cache = segments.NewCache(s.opts.CacheBytes)
	s.open.byRow = make(map[*engine.FileRow]any)
	s.damaged = make(map[*engine.FileRow]struct{})
	return s
}

// Engine is the engine under the store.
func (s *Store) Engine() *engine.Engine { return s.engine }

// Cache is the page cache, for statistics and measurements.
func (s *Store) Cache() *segments.Cache { return s.cache }

// rowSource reads a segment file through the engine's handles.
type rowSource struct {
	engine *engine.Engine
	row    *engine.FileRow
}

func (r rowSource) ReadAt(p []byte, off int64) (int, error) { return r.engine.ReadRowAt(r.row, p, off) }
func (r rowSource) Size() int64                             { return r.row.Size }

// segment opens the file of a row, or finds it open. The caller holds a snapshot with the row.
func segment[T any](s *Store, row *engine.FileRow, view func(*segments.File) (*T, error)) (*T, error) {
	s.open.Lock()
	found := s.open.byRow[row]
	s.open.Unlock()
	if t, ok := found.(*T); ok {
		return t, nil
	}
	f, err := s.openFile(row)
	if err != nil {
		return nil, err
	}
	t, err := view(f)
	if err != nil {
		return nil, err
	}
	s.open.Lock()
	defer s.open.Unlock()
	if len(s.open.byRow) >= maximumOpenSegments {
		for other := range s.open.byRow { // any: a footer is one small read
			delete(s.open.byRow, other)
			break
		}
	}
	s.open.byRow[row] = t
	return t, nil
}

// openFile opens a segment file through the store's cache.
func (s *Store) openFile(row *engine.FileRow) (*segments.File, error) {
	// The digest is unique to the content: it names the pages in the cache.
	id := uint64(0)
	for _, b := range row.Digest[:8] {
		id = id<<8 | uint64(b)
	}
	return s.openRow(row, id, s.cache)
}

// openRow opens a segment file and compares it with its row. A version, kind or flag that this build does
// not know is damage here: the format version of the store, which Open of the engine looked at, promises
// files that it reads.
func (s *Store) openRow(row *engine.FileRow, id uint64, cache *segments.Cache) (*segments.File, error) {
	f, err := segments.Open(row.String(), id, rowSource{s.engine, row}, cache)
	var unsupported *segments.UnsupportedError
	switch {
	case errors.As(err, &unsupported):
		return nil, corruptRow(row, err)
	case err != nil:
		return nil, err
	case f.Info().Kind != segments.Kind(row.Kind):
		return nil, corruptRow(row, fmt.Errorf("kind: got %s want %s", f.Info().Kind, row.Kind))
	case f.Digest() != row.Digest:
		return nil, corruptRow(row, fmt.Errorf("digest: got %x want %x", f.Digest(), row.Digest))
	}
	says := rowOf(f.Info(), f.Digest(), row.Level)
	says.Generation, says.Size = row.Generation, row.Size
	if says != *row {
		return nil, corruptRow(row, fmt.Errorf("footer: got %+v want %+v", says, *row))
	}
	return f, nil
}

func (s *Store) data(row *engine.FileRow) (*segments.Data, error) {
	return segment(s, row, segments.NewData)
}

func (s *Store) index(row *engine.FileRow) (*segments.Index, error) {
	return segment(s, row, segments.NewIndex)
}

func (s *Store) sendersFile(row *engine.FileRow) (*segments.Senders, error) {
	return segment(s, row, segments.NewSenders)
}

// openApart opens a file with a small cache of its own, for work that reads all of it: it reads the disk,
// and leaves the pages of queries alone.
func (s *Store) openApart(row *engine.FileRow) (*segments.File, error) {
	return s.openRow(row, 0, segments.NewCache(readBackCache))
}

func (s *Store) dataApart(row *engine.FileRow) (*segments.Data, error) {
	f, err := s.openApart(row)
	if err != nil {
		return nil, err
	}
	return segments.NewData(f)
}
