package engine

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/leani-go/leani/keys"
)

// A store has one format version over keys, values and files. A build opens stores of its own version, refuses
// newer ones, and takes older ones step by step to its own. What stays the same in every version is what a
// step has to rely on before it begins: the facts about the store (package keys, meta) and the generation file.

// migration takes the database of a store from one format version to the next.
type migration struct {
	from uint32
	// name says what changes, for the log.
	name string
	// apply reads the database and writes to the batch what differs in the next version. The batch also gets
	// the version, is applied at once and synced: a crash leaves the store in the old version or in the new
	// one. Segment files must not be changed; what a step cannot do without them belongs into background
	// work of the version that needs it.
	apply func(from pebble.Reader, to *pebble.Batch) error
}

// format is a format version and the way to it from older ones.
type format struct {
	version    uint32
	migrations []migration
}

// currentFormat is that of this build.
func currentFormat() format {
	return format{version: formatVersion, migrations: []migration{
		// Nothing of version 1 changes. A build of version 1 must not open what may hold recent blocks and partial
		// material: it would find coverage without files.
		{from: 1, name: "room for recent blocks and partial material", apply: func(pebble.Reader, *pebble.Batch) error { return nil }},
	}}
}

// step finds the migration from a version.
func (f format) step(from uint32) (migration, bool) {
	for _, m := range f.migrations {
		if m.from == from {
			return m, true
		}
	}
	return migration{}, false
}

// OlderFormatError is returned by Open for a store of an older format that it cannot migrate: because this
// build no longer knows how, or because the store is opened read-only.
type OlderFormatError struct {
	Store, Supported uint32
	ReadOnly         bool
}

// Error implements error.
func (e *OlderFormatError) Error() string {
	if e.ReadOnly {
		return fmt.Sprintf("store has format version %d, this build works with %d: open it once for writing, as serve does, to migrate it", e.Store, e.Supported)
	}
	return fmt.Sprintf("store has format version %d, this build migrates none below %d: open it with a build in between first, or fill a new store", e.Store, e.Supported)
}

// migrate brings an older store to the format of this build. It comes first in an open and changes nothing
// in a store of another chain, of a newer format, or whose database has lost commits.
func (e *Engine) migrate() error {
	found, err := e.loadMeta()
	if err != nil || !found {
		return err
	}
	for e.identity.formatVersion < e.opts.format.version {
		from := e.identity.formatVersion
		m, ok := e.opts.format.step(from)
		switch {
		case e.opts.ReadOnly:
			return &OlderFormatError{Store: from, Supported: e.opts.format.version, ReadOnly: true}
		case !ok:
			return &OlderFormatError{Store: from, Supported: e.opts.format.oldest()}
		}
		generation, err := e.metaUint64(keys.MetaGeneration)
		if err != nil {
			return err
		}
		if err := e.verifyGeneration(&state{catalog: &catalog{generation: generation}}); err != nil {
			return err
		}
		if err := e.migrateBy(m); err != nil {
			return fmt.Errorf("migrate from format version %d: %w", from, err)
		}
		e.identity.formatVersion = from + 1
		e.opts.Logger.Info("migrated the store", "from", from, "to", from+1, "change", m.name)
	}
	return nil
}

// oldest is the lowest version from which all steps are known.
func (f format) oldest() uint32 {
	v := f.version
	for v > 1 {
		if _, ok := f.step(v - 1); !ok {
			break
		}
		v--
	}
	return v
}

// migrateBy makes one step.
func (e *Engine) migrateBy(m migration) error {
	b := e.db.NewBatch()
	if err := m.apply(e.db, b); err != nil {
		return errors.Join(err, b.Close())
	}
	version := binary.BigEndian.AppendUint32(nil, m.from+1)
	if err := b.Set(keys.Meta{Name: keys.MetaFormatVersion}.Append(nil), version, nil); err != nil {
		return errors.Join(err, b.Close())
	}
	return e.apply(b)
}
