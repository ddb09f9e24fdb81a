package engine

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/leani-go/leani/keys"
)

// Edit is a change of the catalog: files that appear, files that go, and blocks of the hot tier. It is
// applied as a whole or not at all.
type Edit struct {
	// Add are the new files.
	Add []NewRow
	// Remove are rows of a snapshot; only their identity and range are looked at.
	Remove []*FileRow
	// Hot changes the hot tier, after Add and Remove.
	Hot HotEdit
}

// touchesFiles tells whether the edit changes more than the hot tier.
func (edit *Edit) touchesFiles() bool { return len(edit.Add)+len(edit.Remove) > 0 }

// Growth is how many bytes of segment files the edit adds, less those that it removes.
func (edit *Edit) Growth() (bytes int64) {
	for _, a := range edit.Add {
		bytes += a.File.size
	}
	for _, r := range edit.Remove {
		bytes -= r.Size
	}
	return bytes
}

// NewRow is a new file with its row. Commit sets the row's Kind, Generation and Size. The Profile of a frames
// file is what Engine.ProfileID gave.
type NewRow struct {
	File *PendingFile
	Row  FileRow
}

// Commit makes the edit durable and visible: steps 2 to 7 of the package comment. When it
// returns nil the edit survives any crash, and every later Acquire shows it.
//
// An error for which errors.Is(err, ErrInvalidEdit) or errors.Is(err, ErrStaleEdit) holds, or
// the context's error, means that nothing changed: the pending files, though closed for
// writing, can be committed by another edit or aborted. A *FailedError means that the store
// takes no more changes and that whether this edit is durable is known only after the next
// Open.
//
// The context is obeyed while waiting for other commits, not once files are being renamed.
func (e *Engine) Commit(ctx context.Context, edit Edit) error {
	_, err := e.CommitGeneration(ctx, edit)
	return err
}

// CommitGeneration is Commit, and gives the generation that the edit became: snapshots of that or a later one show
// it, and no earlier one does.
func (e *Engine) CommitGeneration(ctx context.Context, edit Edit) (uint64, error) {
	generation, err := e.commit(ctx, edit)
	if err != nil {
		return 0, fmt.Errorf("commit: %w", err)
	}
	return generation, nil
}

func (e *Engine) commit(ctx context.Context, edit Edit) (generation uint64, err error) {
	if !edit.touchesFiles() && edit.Hot.empty() {
		return 0, fmt.Errorf("%w: it is empty", ErrInvalidEdit)
	}
	if err := e.writable(); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	for _, a := range edit.Add {
		if err := e.owns(a.File); err != nil {
			return 0, err
		}
	}
	// Step 2 comes before the lock: large files are synced side by side.
	for _, a := range edit.Add {
		if err := a.File.seal(); err != nil {
			return 0, err
		}
	}
	if err := e.lockCommit(ctx); err != nil {
		return 0, err
	}
	defer e.unlockCommit()
	if err := e.writable(); err != nil {
		return 0, err
	}

	if err := e.admit(&edit); err != nil {
		return 0, err
	}
	base := e.catalog()
	generation = base.generation + 1
	added, err := newRows(edit.Add, generation)
	if err != nil {
		return 0, err
	}
	next, err := base.edited(generation, added, edit.Remove)
	if err != nil {
		return 0, err
	}
	described := e.describe(next, added)
	if len(described) > 0 {
		next.cover()
	}
	hot, change, err := next.hot.edited(&edit.Hot, next.rows[KindData])
	if err != nil {
		return 0, err
	}
	next.setHot(hot)
	if err := firstBroken(next, &edit); err != nil {
		return 0, err
	}

	if err := e.rename(edit.Add, added); err != nil { // steps 3 and 4
		return 0, err
	}
	removed := make([]tombstone, len(edit.Remove))
	for i, r := range edit.Remove {
		live, _ := base.find(r.key())
		removed[i] = tombstoneOf(live)
	}
	if err := e.applyEdit(base, next, added, described, removed, change); err != nil { // step 5
		return 0, err
	}
	if err := e.witness(generation, edit.touchesFiles()); err != nil { // step 6
		return 0, err
	}
	view, err := e.newView(next)
	if err != nil {
		return 0, err
	}
	e.cleared = e.cleared[:0]
	for _, a := range edit.Add {
		a.File.done()
	}
	e.publish(next, view, removed) // step 7
	e.opts.OnEvent(Event{Kind: EventCommitted, Generation: generation, Added: added, Removed: edit.Remove})
	return generation, nil
}

// catalog is the current catalog.
func (e *Engine) catalog() *catalog {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.current.catalog
}

// lockCommit waits for the commit lock, or for the end of the context or the engine.
func (e *Engine) lockCommit(ctx context.Context) error {
	select {
	case e.commitLock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-e.closing:
		return ErrClosed
	}
}

func (e *Engine) unlockCommit() { <-e.commitLock }

// owns checks that a file of an edit can be committed by this engine.
func (e *Engine) owns(p *PendingFile) error {
	switch {
	case p == nil:
		return fmt.Errorf("%w: a row without a file", ErrInvalidEdit)
	case p.engine != e:
		return fmt.Errorf("%w: %s belongs to another store", ErrInvalidEdit, p.path)
	case p.state == pendingDone:
		return fmt.Errorf("%w: %s: %w", ErrInvalidEdit, p.path, errPendingUsed)
	}
	return nil
}

// newRows completes the rows of new files.
func newRows(add []NewRow, generation uint64) ([]*FileRow, error) {
	rows := make([]*FileRow, len(add))
	seen := make(map[*PendingFile]bool, len(add))
	for i, a := range add {
		if seen[a.File] {
			return nil, fmt.Errorf("%w: %s is added twice", ErrInvalidEdit, a.File.path)
		}
		seen[a.File] = true
		r := a.Row
		r.Kind, r.Generation, r.Size = a.File.kind, generation, a.File.size
		if err := r.validate(); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrInvalidEdit, &r, err)
		}
		rows[i] = &r
	}
	return rows, nil
}

// firstBroken reports the first row that breaks a rule as an invalid edit. What HotEdit changes it checks
// itself: between the hot tier and files that do not change there is nothing new to find.
func firstBroken(c *catalog, edit *Edit) error {
	if !edit.touchesFiles() {
		return nil
	}
	var first error
	c.verify(func(r *FileRow, err error) {
		if first == nil {
			first = fmt.Errorf("%w: %s %w", ErrInvalidEdit, r, err)
		}
	})
	c.hot.verify(c.rows[KindData], func(k keys.Key, err error) {
		if first == nil {
			first = fmt.Errorf("%w: %s %w", ErrInvalidEdit, k, err)
		}
	})
	return first
}

// rename gives the files their final names and makes the names durable.
func (e *Engine) rename(add []NewRow, rows []*FileRow) error {
	var touched [kindSlots]bool
	for i, a := range add {
		if err := e.fs.Rename(a.File.path, e.layout.file(rows[i].Kind, rows[i].Name())); err != nil {
			// A file that vanished is a failure too: somebody else works in our directory.
			return e.fail(fmt.Errorf("rename %s: %w", a.File.path, err))
		}
		touched[rows[i].Kind] = true
	}
	return e.syncKinds(touched)
}

// syncKinds syncs the directories of the kinds.
func (e *Engine) syncKinds(touched [kindSlots]bool) error {
	for kind, is := range touched {
		if !is {
			continue
		}
		if err := e.dirs[kind].Sync(); err != nil {
			return fmt.Errorf("sync directory of %s files: %w", Kind(kind), err)
		}
	}
	return nil
}

// applyEdit writes the batch of a commit.
func (e *Engine) applyEdit(base, next *catalog, added []*FileRow, described []*Profile, removed []tombstone, change *hotChange) error {
	b := e.db.NewBatch()
	w := batchWriter{batch: b}
	for _, r := range added {
		w.set(r.key(), appendSegmentValue(w.value[:0], r))
	}
	for _, p := range described {
		w.set(p.key(), appendProfileValue(nil, p))
	}
	for _, t := range removed {
		w.delete(t.key)
		w.set(keys.Retired(t.key), appendTombstoneValue(w.value[:0], t))
	}
	for _, t := range e.cleared {
		w.delete(keys.Retired(t.key))
	}
	gone, new := diffRuns(base.coverage, next.coverage)
	for _, run := range gone {
		w.delete(run.key())
	}
	for _, run := range new {
		w.set(run.key(), appendCoverageValue(w.value[:0], run))
	}
	change.write(&w, &next.hot)
	w.set(keys.Meta{Name: keys.MetaGeneration}, binary.BigEndian.AppendUint64(w.value[:0], next.generation))
	if w.err != nil {
		return e.fail(fmt.Errorf("build batch: %w", w.err))
	}
	return e.apply(b)
}

// batchWriter fills a batch and keeps the first error.
type batchWriter struct {
	batch *pebble.Batch
	key   []byte
	value [256]byte // scratch: longer than any value but parts and profiles
	err   error
}

func (w *batchWriter) set(k keys.Key, value []byte) {
	if w.err == nil {
		w.key = k.Append(w.key[:0])
		w.err = w.batch.Set(w.key, value, nil)
	}
}

func (w *batchWriter) delete(k keys.Key) {
	if w.err == nil {
		w.key = k.Append(w.key[:0])
		w.err = w.batch.Delete(w.key, nil)
	}
}
