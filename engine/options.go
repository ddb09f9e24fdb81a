package engine

import (
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Defaults of Options.
const (
	// DefaultCacheBytes is the block cache of the catalog database. The catalog is read at
	// open and kept in memory, so that the cache serves little.
	DefaultCacheBytes = 8 << 20
	// DefaultOpenFiles is the number of segment files kept open.
	DefaultOpenFiles = 512
)

// Options configure Open. Dir, and ChainID for a new store, are required; every other zero
// value is the default.
type Options struct {
	// Dir is the data directory. It is created, unless ReadOnly is set.
	Dir string
	// FS is the file system of both tiers; nil is the operating system's.
	FS vfs.FS
	// ChainID is the EIP-155 chain id of the store. It is fixed at creation; opening a store
	// of another chain fails. Zero opens an existing store of any chain.
	ChainID uint64
	// ReadOnly changes nothing in the directory (but its lock file): no recovery, no commits.
	ReadOnly bool
	// Logger receives what the operator should know; nil discards it.
	Logger *slog.Logger
	// CacheBytes is the block cache of the catalog database in bytes; default
	// DefaultCacheBytes.
	CacheBytes int64
	// OpenFiles bounds the segment files kept open while nobody reads them; default
	// DefaultOpenFiles. Files being read stay open beyond it.
	OpenFiles int
	// MaximumBytes bounds what the store takes on disk, the files being written excepted; 0 sets no bound.
	// A commit that would pass it is refused with a *SpaceError.
	MaximumBytes int64
	// MaximumTemporaryBytes bounds the files being written together; 0 sets no bound. A write that would
	// pass it is refused with a *SpaceError.
	MaximumTemporaryBytes int64
	// OnEvent, if set, is told what the store did. It is called on the goroutine that did it,
	// with the commit lock held for most events: it must return soon and not call into the
	// engine.
	OnEvent func(Event)

	// noReaper leaves the deletion of retired files to explicit calls of reap, for tests that
	// count file operations.
	noReaper bool
	// format replaces that of the build, for tests of migrations.
	format format
}

// withDefaults fills in the zero values.
func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.CacheBytes <= 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	if o.OpenFiles <= 0 {
		o.OpenFiles = DefaultOpenFiles
	}
	if o.format.version == 0 {
		o.format = currentFormat()
	}
	if o.OnEvent == nil {
		o.OnEvent = func(Event) {}
	}
	return o
}
