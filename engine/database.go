package engine

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/leani-go/leani/internal/corrupt"
	"github.com/leani-go/leani/internal/regular"
	"github.com/leani-go/leani/keys"
)

// This file is all there is between the engine and Pebble: opening, the batch of a commit,
// reading the state back, closing. Pebble reports fatal errors by a logger that is expected
// to end the process, and by panics; both become the sticky failure of the engine.

// pebbleFormat is the format of the database files, fixed so that an update of the library
// does not change stores by the way.
const pebbleFormat = pebble.FormatValueSeparation

// memTableBytes bounds the write buffer. Commits are small: a few hundred bytes a file.
const memTableBytes = 4 << 20

// database calls into Pebble where it may write. It returns when the call does or when the
// store fails, whichever comes first: the goroutine of the call may then be waiting until the
// engine is closed, and nothing it does can reach the disk any more (guardFS).
func (e *Engine) database(call func() error) error {
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() {
			if r := recover(); r != nil {
				cause, ok := r.(error)
				if !ok {
					cause = fmt.Errorf("%v", r)
				}
				err = e.fail(fmt.Errorf("database: %w", cause))
			}
			done <- err
		}()
		err = call()
	}()
	select {
	case err := <-done:
		if failed := e.Err(); failed != nil {
			return failed
		}
		return err
	case <-e.failing:
		return e.Err()
	}
}

// checkDatabaseFiles refuses what Pebble would wait for when it opens it, or read without end: a pipe or device in place of a file.
func (e *Engine) checkDatabaseFiles() error {
	dir := e.layout.database()
	names, err := e.fs.List(dir)
	if err != nil {
		return nil // Pebble says what is wrong, or makes the directory
	}
	for _, name := range names {
		path := e.fs.PathJoin(dir, name)
		if info, err := e.fs.Stat(path); err == nil && !info.IsDir() {
			if err := regular.Check(path, info); err != nil {
				return corrupt.New(path, err)
			}
		}
	}
	return nil
}

// openDatabase opens Pebble.
func (e *Engine) openDatabase() error {
	if e.opts.ReadOnly {
		// Somebody else's directory, or one whose process was killed right after it made the lock
		// file: Pebble has no error value for a missing directory.
		if _, err := e.fs.Stat(e.layout.database()); isNotExist(err) {
			return ErrNoStore
		}
	}
	if err := e.checkDatabaseFiles(); err != nil {
		return err
	}
	listener := pebble.EventListener{
		BackgroundError: func(err error) { _ = e.fail(fmt.Errorf("database: %w", err)) },
	}
	listener.EnsureDefaults(nil)
	opened := make(chan *pebble.DB, 1)
	cache := pebble.NewCache(e.opts.CacheBytes)
	err := e.database(func() error {
		defer close(opened)
		db, err := pebble.Open(e.layout.database(), &pebble.Options{
			FS:                 e.dbFS,
			Cache:              cache,
			MemTableSize:       memTableBytes,
			FormatMajorVersion: pebbleFormat,
			ReadOnly:           e.opts.ReadOnly,
			Logger:             pebbleLogger{log: e.opts.Logger, fail: e.fail},
			EventListener:      &listener,
		})
		cache.Unref() // an open database holds it
		if err != nil {
			return err
		}
		opened <- db
		return nil
	})
	if e.Err() != nil {
		go func() { abandon(<-opened) }()
	}
	switch {
	case errors.Is(err, pebble.ErrDBDoesNotExist):
		return ErrNoStore
	case err != nil:
		return fmt.Errorf("open database: %w", damaged(err))
	}
	e.db = <-opened
	return nil
}

// apply applies a synced batch, which it takes over. On an error the store has failed, and
// whether the batch is durable is not known.
func (e *Engine) apply(b *pebble.Batch) error {
	if err := e.Err(); err != nil {
		return err
	}
	return e.database(func() error {
		if err := e.db.Apply(b, pebble.Sync); err != nil {
			return e.fail(fmt.Errorf("apply batch: %w", err))
		}
		return b.Close()
	})
}

// closeDatabase closes Pebble, or abandons it when the store has failed.
func (e *Engine) closeDatabase() error {
	var err error
	if e.db != nil && e.Err() == nil {
		err = e.database(func() error {
			// Tables are checksummed throughout; the tail of a log is where Pebble cannot tell damage
			// from a write that was cut off. A store that was closed has nothing in its log.
			if !e.opts.ReadOnly {
				if err := e.db.Flush(); err != nil {
					return errors.Join(err, e.db.Close())
				}
			}
			return e.db.Close()
		})
	} else if e.db != nil {
		go abandon(e.db)
	}
	close(e.dbFS.abandoned)
	return err
}

// abandon brings a Pebble to its end that has lost its disk, as far as it goes: nobody waits
// for it, and a state it does not expect ends the attempt.
func abandon(db *pebble.DB) {
	defer func() { _ = recover() }()
	if db != nil {
		_ = db.Close()
	}
}

// pebbleLogger passes Pebble's log on and takes fatal errors as the failure of the store.
type pebbleLogger struct {
	log  *slog.Logger
	fail func(error) error
}

// Infof implements pebble.Logger.
func (l pebbleLogger) Infof(format string, args ...any) {
	l.log.Debug(fmt.Sprintf(format, args...), "from", "database")
}

// Errorf implements pebble.Logger.
func (l pebbleLogger) Errorf(format string, args ...any) {
	l.log.Error(fmt.Sprintf(format, args...), "from", "database")
}

// Fatalf implements pebble.Logger. Pebble expects the process to end here; the goroutine does.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	for _, a := range args {
		if cause, ok := a.(error); ok {
			err = fmt.Errorf("database: %w", cause) // keep the cause for errors.Is
		}
	}
	_ = l.fail(err)
	select {}
}

// state is what the database says about the store.
type state struct {
	created    bool // by this Open: nothing is written yet
	witnessed  bool // the generation file is there and does not contradict
	witness    uint64
	generation uint64
	catalog    *catalog
	tombstones []tombstone
}

// loadState reads the whole state and checks it. For a new store it fills in the identity and
// writes nothing: see create.
func (e *Engine) loadState() (*state, error) {
	found, err := e.loadMeta()
	if err != nil {
		return nil, err
	}
	if !found {
		if e.opts.ReadOnly {
			return nil, ErrNoStore
		}
		if err := e.newIdentity(); err != nil {
			return nil, err
		}
		return &state{created: true, catalog: newCatalog(0, nil, hotWindow{})}, nil
	}
	s := &state{}
	if s.generation, err = e.metaUint64(keys.MetaGeneration); err != nil {
		return nil, err
	}
	var rows []*FileRow
	err = e.scan(keys.FamilySegment, func(key, value []byte) error {
		k, err := keys.ParseSegment(key)
		if err != nil {
			return err
		}
		r, err := decodeSegmentRow(k, value)
		if err != nil {
			return err
		}
		rows = append(rows, r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	profiles, err := e.loadProfiles()
	if err != nil {
		return nil, err
	}
	s.catalog = newCatalog(s.generation, rows, hotWindow{}).describedBy(profiles)
	hot, err := e.loadHot(s.catalog.rows[KindData])
	if err != nil {
		return nil, err
	}
	s.catalog.setHot(hot)
	err = e.scan(keys.FamilyRetired, func(key, value []byte) error {
		k, err := keys.ParseRetired(key)
		if err != nil {
			return err
		}
		t, err := decodeTombstone(k, value)
		if err != nil {
			return err
		}
		s.tombstones = append(s.tombstones, t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := e.verifyState(s); err != nil {
		return nil, err
	}
	return s, nil
}

// verifyState checks the rules between rows and the stored coverage.
func (e *Engine) verifyState(s *state) error {
	var first error
	broken := 0
	s.catalog.verify(func(r *FileRow, err error) {
		if broken++; first == nil {
			first = corrupt.New(r.key().String(), err)
		}
	})
	if broken > 0 {
		return fmt.Errorf("%d catalog rows break a rule, the first: %w", broken, first)
	}
	verifyProfiles(s.catalog.profiles, func(p *Profile, err error) {
		if first == nil {
			first = corrupt.New(p.key().String(), err)
		}
	})
	if first != nil {
		return first
	}
	for _, t := range s.tombstones {
		if _, live := s.catalog.find(t.key); live {
			return corrupt.New(keys.Retired(t.key).String(), errors.New("the file is live and retired at once"))
		}
	}
	stored, err := e.loadCoverage()
	if err != nil {
		return err
	}
	remove, add := diffRuns(stored, s.catalog.coverage)
	switch {
	case len(add) > 0:
		return corrupt.New(add[0].key().String(), fmt.Errorf("files hold blocks %v, the stored run differs", add[0].Range))
	case len(remove) > 0:
		return corrupt.New(remove[0].key().String(), fmt.Errorf("run %v is stored, no files hold it", remove[0].Range))
	}
	return nil
}

func (e *Engine) loadProfiles() (profiles []*Profile, err error) {
	err = e.scan(keys.FamilyProfile, func(key, value []byte) error {
		k, err := keys.ParseProfile(key)
		if err != nil {
			return err
		}
		p, err := decodeProfile(k, value)
		if err != nil {
			return err
		}
		profiles = append(profiles, p)
		return nil
	})
	return profiles, err
}

func (e *Engine) loadCoverage() ([]CoverageRun, error) {
	var runs []CoverageRun
	err := e.scan(keys.FamilyRawCoverage, func(key, value []byte) error {
		k, err := keys.ParseRawCoverage(key)
		if err != nil {
			return err
		}
		run, err := decodeCoverage(k, value)
		if err != nil {
			return err
		}
		runs = append(runs, run)
		return nil
	})
	return runs, err
}

// scan visits the rows of a family in order. key and value are valid during the visit. An error
// of the visit is reported as corruption of the row.
func (e *Engine) scan(f keys.Family, visit func(key, value []byte) error) error {
	lower, upper := f.Bounds()
	return scanRange(e.db, lower, upper, func(key, value []byte) error {
		if err := visit(key, value); err != nil {
			return corrupt.New(keys.Print(key), err)
		}
		return nil
	})
}

// damaged makes what Pebble says of damaged files the error for damage. Pebble adds a line without a meaning.
func damaged(err error) error {
	if !pebble.IsCorruptionError(err) {
		return err
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return corrupt.New("db", errors.New(text))
}

// scanRange visits the rows in [lower, upper) in order; nil is unbounded. An error of the visit
// ends the scan and is returned as it is.
func scanRange(r pebble.Reader, lower, upper []byte, visit func(key, value []byte) error) (err error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return fmt.Errorf("scan database: %w", damaged(err))
	}
	defer func() {
		if closeErr := it.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("scan database: %w", damaged(closeErr))
		}
	}()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("scan database: %w", damaged(err))
		}
		if err := visit(it.Key(), value); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return fmt.Errorf("scan database: %w", damaged(err))
	}
	return nil
}

// meta reads one fact about the store; nil means that it is absent.
func (e *Engine) meta(name keys.MetaName) ([]byte, error) {
	value, closer, err := e.db.Get(keys.Meta{Name: name}.Append(nil))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", keys.Meta{Name: name}, damaged(err))
	}
	value = bytes.Clone(value)
	return value, closer.Close()
}

// metaOf reads a fact that must be there and have a length.
func (e *Engine) metaOf(name keys.MetaName, length int) ([]byte, error) {
	value, err := e.meta(name)
	if err != nil {
		return nil, err
	}
	if err := checkValueLength(value, length); err != nil {
		return nil, corrupt.New(keys.Meta{Name: name}.String(), err)
	}
	return value, nil
}

func (e *Engine) metaUint64(name keys.MetaName) (uint64, error) {
	value, err := e.metaOf(name, 8)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(value), nil
}

// loadMeta reads the identity of the store; found is false for an empty database.
func (e *Engine) loadMeta() (found bool, err error) {
	version, err := e.meta(keys.MetaFormatVersion)
	if err != nil {
		return false, err
	}
	if version == nil {
		err := scanRange(e.db, nil, nil, func(key, _ []byte) error {
			return corrupt.New(keys.Print(key), errors.New("the database has rows and no format version"))
		})
		return false, err
	}
	// The version comes first: of a newer store not even the lengths of the others are known.
	if err := checkValueLength(version, 4); err != nil {
		return false, corrupt.New(keys.Meta{Name: keys.MetaFormatVersion}.String(), err)
	}
	e.identity.formatVersion = binary.BigEndian.Uint32(version)
	if e.identity.formatVersion > e.opts.format.version {
		return false, &NewerFormatError{Store: e.identity.formatVersion, Supported: e.opts.format.version}
	}
	if e.identity.formatVersion == 0 {
		return false, corrupt.New(keys.Meta{Name: keys.MetaFormatVersion}.String(), errors.New("version 0"))
	}
	if e.identity.chainID, err = e.metaUint64(keys.MetaChainID); err != nil {
		return false, err
	}
	if e.opts.ChainID != 0 && e.opts.ChainID != e.identity.chainID {
		return false, &ChainError{Store: e.identity.chainID, Want: e.opts.ChainID}
	}
	epoch, err := e.metaOf(keys.MetaEpoch, epochLength)
	if err != nil {
		return false, err
	}
	copy(e.identity.epoch[:], epoch)
	secret, err := e.metaOf(keys.MetaSecret, secretLength)
	if err != nil {
		return false, err
	}
	copy(e.identity.secret[:], secret)
	return true, nil
}

// newIdentity draws the identity of a store to be created.
func (e *Engine) newIdentity() error {
	if e.opts.ChainID == 0 {
		return errors.New("create store: no chain id given")
	}
	e.identity = identity{formatVersion: e.opts.format.version, chainID: e.opts.ChainID}
	_, _ = rand.Read(e.identity.epoch[:]) // never fails: crypto/rand ends the process instead
	_, _ = rand.Read(e.identity.secret[:])
	return nil
}

// create writes the identity of a new store, which makes it exist.
func (e *Engine) create() error {
	b := e.db.NewBatch()
	for _, m := range []struct {
		name  keys.MetaName
		value []byte
	}{
		{keys.MetaFormatVersion, binary.BigEndian.AppendUint32(nil, e.identity.formatVersion)},
		{keys.MetaEpoch, e.identity.epoch[:]},
		{keys.MetaSecret, e.identity.secret[:]},
		{keys.MetaChainID, binary.BigEndian.AppendUint64(nil, e.identity.chainID)},
		{keys.MetaGeneration, binary.BigEndian.AppendUint64(nil, 0)},
	} {
		if err := b.Set(keys.Meta{Name: m.name}.Append(nil), m.value, nil); err != nil {
			return fmt.Errorf("create store: %w", err)
		}
	}
	if err := e.apply(b); err != nil {
		return fmt.Errorf("create store: %w", err)
	}
	return nil
}

// randomSession names the temporary files of one Open.
func randomSession() string {
	var b [4]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
