package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/internal/corrupt"
	"github.com/leani-go/leani/internal/regular"
)

// The generation file is a second witness of the last commit, outside of the database. Pebble
// cannot tell damage at the end of its write-ahead log from a write that a crash cut off, and
// takes the commits from there on for ones that never happened; a directory db/ that was put
// back from an older copy looks just as sound. The witness is written after the batch of a
// commit is durable, so that it is never ahead of a healthy database: a database behind it has
// lost commits. See docs/formats/store.md for the layout.
const (
	generationMagic = "LNGN"
	// slotLength is magic 4, epoch 16, generation 8, CRC-32C 4.
	slotLength = 4 + epochLength + 8 + 4
	// slotDistance keeps the slots on pages of their own: a torn write spares the other one.
	slotDistance = 4096
	// slotCount is one slot for commits without files, which do not sync it, after the two that commits
	// with files write in turn.
	slotCount   = 3
	syncedSlots = 2
)

var slotTable = crc32.MakeTable(crc32.Castagnoli)

// slot is what one slot of the generation file says.
type slot struct {
	epoch      [epochLength]byte
	generation uint64
}

// offset is where the first slot of a file lies. Later ones spare the newest that was synced.
func (s slot) offset() int64 { return int64(s.generation%syncedSlots) * slotDistance }

// hotOffset is where the slot of a commit lies that is not synced.
const hotOffset = syncedSlots * slotDistance

// append writes the slot.
func (s slot) append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, generationMagic...)
	dst = append(dst, s.epoch[:]...)
	dst = binary.BigEndian.AppendUint64(dst, s.generation)
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], slotTable))
}

// parseSlot reads a slot; ok is false for one that was never written, was torn or is damaged.
func parseSlot(raw []byte) (s slot, ok bool) {
	if len(raw) != slotLength || string(raw[:4]) != generationMagic {
		return slot{}, false
	}
	body, sum := raw[:slotLength-4], binary.BigEndian.Uint32(raw[slotLength-4:])
	if crc32.Checksum(body, slotTable) != sum {
		return slot{}, false
	}
	copy(s.epoch[:], body[4:])
	s.generation = binary.BigEndian.Uint64(body[4+epochLength:])
	return s, true
}

// parseGenerationFile gives the newest slot that is whole. A crash tears the slot that is being
// written and no other, so that a file without a whole slot is damaged.
func parseGenerationFile(raw []byte) (newest slot, err error) {
	found := false
	for i := range int64(slotCount) {
		from := min(i*slotDistance, int64(len(raw)))
		s, ok := parseSlot(raw[from:min(from+slotLength, int64(len(raw)))])
		if ok && (!found || s.generation > newest.generation) {
			newest, found = s, true
		}
	}
	if !found {
		return slot{}, errors.New("no slot of it is whole")
	}
	return newest, nil
}

// LostCommitsError is the cause of the corruption that Open reports when the database is behind
// the generation file: the end of its log was damaged, or it is an older copy.
type LostCommitsError struct {
	// Database is the last commit that the database knows; Written the last one that was made.
	Database, Written uint64
	// Empty is set when the database knows nothing at all.
	Empty bool
}

// Error implements error.
func (e *LostCommitsError) Error() string {
	if e.Empty {
		return fmt.Sprintf("the database is empty, the store was at commit %d", e.Written)
	}
	return fmt.Sprintf("the database knows the commits up to %d, the store was at %d: the end of its log is damaged, or it is an older copy",
		e.Database, e.Written)
}

// readGenerationFile reads the witness; found is false when there is none.
func (e *Engine) readGenerationFile() (s slot, found bool, err error) {
	path := e.layout.generation()
	info, err := e.fs.Stat(path)
	if isNotExist(err) {
		return slot{}, false, nil
	}
	if err == nil {
		if err := regular.Check(path, info); err != nil { // opening a pipe would wait for somebody
			return slot{}, false, corrupt.New(path, err)
		}
	}
	f, err := e.fs.Open(path)
	if err != nil {
		return slot{}, false, fmt.Errorf("open %s: %w", path, err)
	}
	raw, err := io.ReadAll(io.LimitReader(f, slotCount*slotDistance))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return slot{}, false, fmt.Errorf("read %s: %w", path, err)
	}
	if s, err = parseGenerationFile(raw); err != nil {
		return slot{}, false, corrupt.New(path, err)
	}
	return s, true, nil
}

// verifyGeneration compares the witness with the state of the database.
func (e *Engine) verifyGeneration(s *state) error {
	witness, found, err := e.readGenerationFile()
	if err != nil || !found {
		return err
	}
	switch {
	case !s.created && witness.epoch != e.identity.epoch:
		return corrupt.New(e.layout.generation(), fmt.Errorf("it is of store %x, the database of store %x", witness.epoch, e.identity.epoch))
	case s.created || witness.generation > s.catalog.generation:
		return corrupt.New(e.layout.database(), &LostCommitsError{Database: s.catalog.generation, Written: witness.generation, Empty: s.created})
	}
	s.witnessed, s.witness = true, witness.generation
	return nil
}

// openGenerationFile brings the witness up to date, making it if need be, and keeps it open for
// the commits to come.
func (e *Engine) openGenerationFile(s *state) (err error) {
	path := e.layout.generation()
	if !s.witnessed {
		if err := e.createGenerationFile(path, s.catalog.generation); err != nil {
			return fmt.Errorf("create %s: %w", path, err)
		}
	}
	if e.generationFile, err = e.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified); err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	if e.syncedSlot, err = newestSynced(e.generationFile); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if s.witnessed && s.witness != s.catalog.generation { // a crash came between batch and witness
		const sync = true
		return e.witness(s.catalog.generation, sync)
	}
	return nil
}

// newestSynced finds the newest whole slot among those that are synced; when there is none, any may be written.
func newestSynced(r io.ReaderAt) (offset int64, err error) {
	var newest uint64
	for at := int64(0); at < hotOffset; at += slotDistance {
		var raw [slotLength]byte
		n, err := r.ReadAt(raw[:], at)
		if err != nil && err != io.EOF {
			return 0, err
		}
		if s, ok := parseSlot(raw[:n]); ok && s.generation >= newest {
			offset, newest = at, s.generation
		}
	}
	return offset, nil
}

// createGenerationFile writes the file aside and renames it, so that one that is there is whole.
func (e *Engine) createGenerationFile(path string, generation uint64) error {
	s := slot{epoch: e.identity.epoch, generation: generation}
	raw := make([]byte, slotCount*slotDistance)
	s.append(raw[s.offset():s.offset()])
	f, err := e.fs.Create(path+tempSuffix, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err = f.Write(raw); err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err := e.fs.Rename(path+tempSuffix, path); err != nil {
		return err
	}
	return syncDir(e.fs, e.opts.Dir)
}

// witness writes the generation that the database has made durable: step 6 of a commit. Without sync it may
// be lost with the power; docs/adr/0008-hot-tier.md says why that is safe for a commit without files.
func (e *Engine) witness(generation uint64, sync bool) error {
	s := slot{epoch: e.identity.epoch, generation: generation}
	offset := int64(hotOffset)
	if sync { // a write that is torn must not take the newest synced slot along
		offset = slotDistance - e.syncedSlot
	}
	var raw [slotLength]byte
	if _, err := e.generationFile.WriteAt(s.append(raw[:0]), offset); err != nil {
		return fmt.Errorf("write %s: %w", e.layout.generation(), err)
	}
	if !sync {
		return nil
	}
	if err := e.generationFile.SyncData(); err != nil {
		return fmt.Errorf("sync %s: %w", e.layout.generation(), err)
	}
	e.syncedSlot = offset
	return nil
}

// checkGeneration reports a witness that is absent, damaged or says something else; found tells
// whether there is one.
func (e *Engine) checkGeneration(report *CheckReport) (found bool, err error) {
	path := e.layout.generation()
	witness, found, err := e.readGenerationFile()
	switch {
	case corrupt.Is(err):
		report.add(path, err)
	case err != nil:
		return false, err
	case !found && !e.opts.ReadOnly: // else the next writable Open makes it
		report.add(path, errFileMissing)
	case found && witness.epoch != e.identity.epoch:
		report.add(path, fmt.Errorf("it is of store %x, the database of store %x", witness.epoch, e.identity.epoch))
	case found && witness.generation != report.Generation && !e.opts.ReadOnly:
		report.add(path, fmt.Errorf("generation %d want %d", witness.generation, report.Generation))
	}
	return found, nil
}
