package engine

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/engine/internal/crashfs"
	"github.com/leani-go/leani/keys"
)

// addLogs is a migration that shows when it is made twice: every file gets a log more.
func addLogs(from uint32) migration {
	return migration{from: from, name: "a log more for each file", apply: func(r pebble.Reader, to *pebble.Batch) error {
		lower, upper := keys.FamilySegment.Bounds()
		return scanRange(r, lower, upper, func(key, value []byte) error {
			k, err := keys.ParseSegment(key)
			if err != nil {
				return err
			}
			row, err := decodeSegmentRow(k, value)
			if err != nil {
				return err
			}
			row.Logs++
			return to.Set(key, appendSegmentValue(nil, row), nil)
		})
	}}
}

// optionsOf are those of a build with another format.
func optionsOf(fs vfs.FS, f format) Options {
	o := testOptions(fs)
	o.format = f
	return o
}

// first is the format of a build that knows version 1 alone.
var first = format{version: 1}

// storeOfVersion1 is a closed store with two files.
func storeOfVersion1(t *testing.T) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	e := mustOpen(t, optionsOf(fs, first))
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4), mustPending(t, e, KindData, 0, 4, 8))
	mustClose(t, e)
	return fs
}

// logsOf adds the logs of all data files: 5 a block in a store of version 1, and one for each file and step.
func logsOf(e *Engine) (sum uint64) {
	s := e.Acquire()
	defer s.Release()
	for _, r := range s.Rows(KindData) {
		sum += r.Logs
	}
	return sum
}

// An older store is migrated step by step when it is opened for writing, and refused with what to do where it
// cannot be. A newer one, one of another chain and one that lost commits are refused before anything is changed.
//
// STO-020
func TestMigrate(t *testing.T) {
	fs := storeOfVersion1(t)
	third := format{version: 3, migrations: []migration{addLogs(1), addLogs(2)}}

	var older *OlderFormatError
	readOnly := optionsOf(fs, third)
	readOnly.ReadOnly = true
	if _, err := Open(readOnly); !errors.As(err, &older) || !older.ReadOnly || older.Store != 1 || older.Supported != 3 {
		t.Errorf("read-only: %v", err)
	}
	if _, err := Open(optionsOf(fs, format{version: 3, migrations: []migration{addLogs(2)}})); !errors.As(err, &older) || older.ReadOnly || older.Supported != 2 {
		t.Errorf("a step is missing: %v", err)
	}
	another := optionsOf(fs, third)
	another.ChainID = testChain + 1
	var other *ChainError
	if _, err := Open(another); !errors.As(err, &other) {
		t.Errorf("another chain: %v", err)
	}
	mustClose(t, mustOpen(t, optionsOf(fs, first))) // nothing of that has changed it

	e := mustOpen(t, optionsOf(fs, third))
	if e.FormatVersion() != 3 || logsOf(e) != 40+4 {
		t.Errorf("version %d with %d logs", e.FormatVersion(), logsOf(e))
	}
	mustCheck(t, e)
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 8, 12))
	mustClose(t, e)
	e = mustOpen(t, optionsOf(fs, third))
	if e.FormatVersion() != 3 || logsOf(e) != 60+4 {
		t.Errorf("opened again: version %d with %d logs", e.FormatVersion(), logsOf(e))
	}
	mustClose(t, e)
	var newer *NewerFormatError
	if _, err := Open(optionsOf(fs, first)); !errors.As(err, &newer) || newer.Store != 3 || newer.Supported != 1 {
		t.Errorf("a build of version 1: %v", err)
	}
}

// A crash at any operation of an open that migrates leaves the old version or the new one, each step is made
// once, and the next open goes on.
//
// STO-020 STO-002
func TestCrashInMigration(t *testing.T) {
	second := format{version: 2, migrations: []migration{addLogs(1)}}
	migrated := 0
	for at := 0; ; at++ {
		m := crashfs.New(storeOfVersion1(t), rand.New(rand.NewPCG(uint64(at), 9)))
		m.StopAt = at
		e, err := Open(optionsOf(m.FS(), second))
		if err == nil {
			_ = e.Close()
		}
		if !m.Stopped() {
			break
		}
		disk := m.Crash()
		if e, err := Open(optionsOf(disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))}), first)); err == nil {
			if e.FormatVersion() != 1 || logsOf(e) != 40 {
				t.Errorf("crash at %s: version %d with %d logs", m, e.FormatVersion(), logsOf(e))
			}
			mustClose(t, e)
		} else {
			migrated++
		}
		e = mustOpen(t, optionsOf(disk, second))
		if e.FormatVersion() != 2 || logsOf(e) != 42 {
			t.Errorf("crash at %s, then: version %d with %d logs", m, e.FormatVersion(), logsOf(e))
		}
		mustCheck(t, e)
		mustClose(t, e)
	}
	if migrated == 0 {
		t.Error("no crash came after the migration")
	}
}
