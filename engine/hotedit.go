package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/keys"
)

// HotEdit is the part of an edit that changes the hot tier. Its steps take effect together, and are checked
// in the order of the fields. The zero value changes nothing.
type HotEdit struct {
	// Undo are the blocks to undo, newest first: each is the newest one when its turn comes.
	Undo []chain.BlockRef
	// Apply are the blocks to apply, oldest first. Each is the child of the newest block; the first of an
	// empty hot tier is the child of the last block of the files, or lies above it with a gap.
	Apply []NewBlock
	// Attested and Finalized move the marks; nil leaves them. They name canonical blocks of the hot tier, as
	// it is after the steps above, or blocks of data files, of which only the ends are known here: the caller vouches
	// for others. They never move back. Finalized takes Attested along. The steps above take Attested back to what is
	// left when they undo its block, or begin an empty tier with another branch.
	Attested, Finalized *chain.BlockRef
	// EvictTo removes the blocks below it; 0 removes none. Data files added by the same edit hold either all
	// of them, byte for byte, or none: then they are no longer retained.
	EvictTo uint64
}

// NewBlock is a block to apply, with its material as opaque parts.
type NewBlock struct {
	chain.BlockRef
	// Transactions and Logs count what the block holds.
	Transactions, Logs uint32
	// Parts are the material, by ascending number from 1. Commit does not keep their bytes.
	Parts []NewPart
}

// NewPart is one part of a block to apply, of at most MaximumPartBytes.
type NewPart struct {
	Part    uint8
	Content []byte
}

// Sentinels of hot edits; each comes wrapped in ErrInvalidEdit or ErrStaleEdit as well.
var (
	// ErrFinalized is returned for an edit that would undo or contradict a finalized block, or move a mark back.
	ErrFinalized = errors.New("contradicts finality")
	// ErrNotChild is returned for an applied block that is not the child of the newest one.
	ErrNotChild = errors.New("block is not the child of the newest one")
	// ErrTooDeep is returned for an edit that would undo blocks below the hot tier.
	ErrTooDeep = errors.New("reorganization reaches below the recent blocks")
)

func (h *HotEdit) empty() bool {
	return len(h.Undo) == 0 && len(h.Apply) == 0 && h.Attested == nil && h.Finalized == nil && h.EvictTo == 0
}

// hotChange is a checked hot edit, ready for the batch.
type hotChange struct {
	undone  []*HotBlock // newest first
	applied []*HotBlock
	parts   [][]NewPart // of applied
	evicted []*HotBlock // oldest first
	marks   [levelSlots]markChange
}

type markChange uint8

const (
	markKept markChange = iota
	markSet
	markCleared
)

// edited gives the window after a hot edit. files are the data files after the edit.
func (w *hotWindow) edited(h *HotEdit, files []*FileRow) (next hotWindow, change *hotChange, err error) {
	next, change = *w, &hotChange{}
	if h.empty() {
		return next, change, nil
	}
	if err := next.undo(h.Undo, change); err != nil {
		return next, nil, err
	}
	if err := next.apply(h.Apply, files, change); err != nil {
		return next, nil, err
	}
	if err := next.move(FinalityAttested, h.Attested, files, change); err != nil {
		return next, nil, err
	}
	if err := next.move(FinalityFinalized, h.Finalized, files, change); err != nil {
		return next, nil, err
	}
	if err := next.evict(h.EvictTo, files, change); err != nil {
		return next, nil, err
	}
	return next, change, nil
}

// undo removes the newest blocks.
func (w *hotWindow) undo(list []chain.BlockRef, change *hotChange) error {
	if len(list) == 0 {
		return nil
	}
	finalized, any := w.mark(FinalityFinalized)
	n := len(w.blocks)
	for _, r := range list {
		switch {
		case any && r.Number <= finalized.Number:
			return fmt.Errorf("%w: %w: undo of block %s, block %s is finalized", ErrInvalidEdit, ErrFinalized, r, finalized)
		case n == 0:
			return fmt.Errorf("%w: %w: undo of block %s", ErrInvalidEdit, ErrTooDeep, r)
		case w.blocks[n-1].BlockRef != r:
			return fmt.Errorf("%w: undo of block %s, the newest is %s", ErrStaleEdit, r, w.blocks[n-1].BlockRef)
		}
		n--
		change.undone = append(change.undone, w.blocks[n])
		w.bytes -= w.blocks[n].Bytes()
	}
	w.lower(n, change)
	w.blocks = slices.Clone(w.blocks[:n]) // what is applied next must not overwrite what older windows see
	return nil
}

// lower takes the attested mark back to the newest of the first n blocks that are left.
func (w *hotWindow) lower(n int, change *hotChange) {
	attested, any := w.mark(FinalityAttested)
	lowest := change.undone[len(change.undone)-1]
	if !any || attested.Number < lowest.Number {
		return
	}
	switch finalized, final := w.mark(FinalityFinalized); {
	case n > 0:
		w.marks[FinalityAttested], change.marks[FinalityAttested] = w.blocks[n-1].BlockRef, markSet
	case final:
		w.marks[FinalityAttested], change.marks[FinalityAttested] = finalized, markSet
	default:
		w.marks[FinalityAttested], change.marks[FinalityAttested] = chain.BlockRef{}, markCleared
	}
}

// apply appends blocks.
func (w *hotWindow) apply(list []NewBlock, files []*FileRow, change *hotChange) error {
	begins := len(w.blocks) == 0
	for i := range list {
		b, err := newHotBlock(&list[i])
		if err != nil {
			return fmt.Errorf("%w: block %s: %w", ErrInvalidEdit, list[i].BlockRef, err)
		}
		if err := w.follows(b.BlockRef, files); err != nil {
			return fmt.Errorf("%w: apply of block %s: %w", ErrInvalidEdit, b.BlockRef, err)
		}
		w.blocks = append(w.blocks, b)
		w.bytes += b.Bytes()
		change.applied = append(change.applied, b)
		change.parts = append(change.parts, list[i].Parts)
	}
	if begins && len(list) > 0 {
		w.overtake(change)
	}
	return nil
}

// overtake takes the attested mark back that a window which begins anew contradicts: its block is no longer
// retained, and another one may have its place, as long as it is not finalized.
func (w *hotWindow) overtake(change *hotChange) {
	attested, any := w.mark(FinalityAttested)
	first := w.blocks[0]
	switch b, ok := w.at(attested.Number); {
	case !any, ok && b.BlockRef == attested:
		return
	case first.Number > attested.Number+1, first.Number == attested.Number+1 && first.ParentHash == attested.Hash:
		return
	}
	if finalized, final := w.mark(FinalityFinalized); final {
		w.marks[FinalityAttested], change.marks[FinalityAttested] = finalized, markSet
	} else {
		w.marks[FinalityAttested], change.marks[FinalityAttested] = chain.BlockRef{}, markCleared
	}
}

// follows tells why a block cannot come next.
func (w *hotWindow) follows(r chain.BlockRef, files []*FileRow) error {
	if r.Number >= maximumBlock {
		return fmt.Errorf("its number is above %d", uint64(maximumBlock))
	}
	if n := len(w.blocks); n > 0 {
		if tip := w.blocks[n-1]; r.Number != tip.Number+1 || r.ParentHash != tip.Hash {
			return fmt.Errorf("%w: its parent is %x, the newest is %s", ErrNotChild, r.ParentHash[:4], tip.BlockRef)
		}
		return nil
	}
	if finalized, ok := w.mark(FinalityFinalized); ok &&
		(r.Number <= finalized.Number || r.Number == finalized.Number+1 && r.ParentHash != finalized.Hash) {
		return fmt.Errorf("%w: block %s is finalized", ErrFinalized, finalized)
	}
	if n := len(files); n > 0 {
		switch last := files[n-1]; {
		case r.Number < last.To:
			return fmt.Errorf("%w: %s holds blocks up to %d", ErrNotChild, last, last.To-1)
		case r.Number == last.To && r.ParentHash != last.LastHash:
			return fmt.Errorf("%w: its parent is %x, the last block of %s is %x", ErrNotChild, r.ParentHash[:4], last, last.LastHash[:4])
		}
	}
	return nil
}

func newHotBlock(n *NewBlock) (*HotBlock, error) {
	b := &HotBlock{BlockRef: n.BlockRef, Transactions: n.Transactions, Logs: n.Logs, parts: make([]partLength, len(n.Parts))}
	if len(n.Parts) == 0 || len(n.Parts) > maximumParts {
		return nil, fmt.Errorf("got %d parts, want 1 to %d", len(n.Parts), maximumParts)
	}
	for i, p := range n.Parts {
		switch {
		case p.Part == 0 || i > 0 && p.Part <= n.Parts[i-1].Part:
			return nil, fmt.Errorf("part %d out of order", p.Part)
		case len(p.Content) > MaximumPartBytes:
			return nil, fmt.Errorf("part %d has %d bytes, at most %d are possible", p.Part, len(p.Content), MaximumPartBytes)
		}
		b.parts[i] = partLength{p.Part, uint32(len(p.Content) + frameOverhead)}
	}
	return b, nil
}

// move moves a mark forward.
func (w *hotWindow) move(level FinalityLevel, to *chain.BlockRef, files []*FileRow, change *hotChange) error {
	if to == nil {
		return nil
	}
	old, any := w.mark(level)
	switch {
	case any && *to == old:
		return nil
	case any && to.Number <= old.Number:
		return fmt.Errorf("%w: %w: %s is block %s already, got %s", ErrInvalidEdit, ErrFinalized, level, old, to)
	}
	if b, ok := w.at(to.Number); ok && b.BlockRef != *to || !ok && !inFiles(*to, files) {
		return fmt.Errorf("%w: %s block %s is no retained canonical block", ErrInvalidEdit, level, to)
	}
	w.marks[level], change.marks[level] = *to, markSet
	if attested, any := w.mark(FinalityAttested); level == FinalityFinalized && (!any || attested.Number < to.Number) {
		w.marks[FinalityAttested], change.marks[FinalityAttested] = *to, markSet
	}
	return nil
}

// inFiles tells whether data files may hold a block: one has its number, and no other block at that end.
func inFiles(r chain.BlockRef, files []*FileRow) bool {
	for _, f := range files {
		switch {
		case r.Number < f.From || r.Number >= f.To:
		case r.Number == f.From && (r.Hash != f.FirstHash || r.ParentHash != f.ParentHash), r.Number == f.To-1 && r.Hash != f.LastHash:
			return false
		default:
			return true
		}
	}
	return false
}

// evict removes the oldest blocks.
func (w *hotWindow) evict(to uint64, files []*FileRow, change *hotChange) error {
	if to == 0 {
		return nil
	}
	span := w.span()
	if to <= span.From || to > span.To {
		return fmt.Errorf("%w: eviction of the blocks below %d, recent blocks are %v", ErrStaleEdit, to, span)
	}
	n := to - span.From
	change.evicted = w.blocks[:n]
	if err := sameAsFiles(change.evicted, files); err != nil {
		return err
	}
	for _, b := range change.evicted {
		w.bytes -= b.Bytes()
	}
	w.blocks = w.blocks[n:]
	return nil
}

// sameAsFiles proves that data files hold all of the blocks, at their ends with the same hashes, or none.
// Blocks between the ends of a file follow from the hash at its end: hashes name their parents.
func sameAsFiles(blocks []*HotBlock, files []*FileRow) error {
	from, to := blocks[0].Number, blocks[len(blocks)-1].Number+1
	at := from
	for _, f := range files {
		if f.To <= from {
			continue
		}
		if f.From != at || f.To > to {
			return fmt.Errorf("%w: %s over evicted blocks [%d, %d) does not begin at %d or ends beyond", ErrInvalidEdit, f, from, to, at)
		}
		first, last := blocks[f.From-from], blocks[f.To-1-from]
		if f.FirstHash != first.Hash || f.LastHash != last.Hash || f.ParentHash != first.ParentHash {
			return fmt.Errorf("%w: %s holds other blocks than the evicted ones", ErrInvalidEdit, f)
		}
		at = f.To
	}
	if at != from && at != to {
		return fmt.Errorf("%w: files hold only the blocks below %d of the evicted [%d, %d)", ErrInvalidEdit, at, from, to)
	}
	return nil
}

// write adds the change to the batch of a commit.
func (c *hotChange) write(w *batchWriter, next *hotWindow) {
	for _, b := range c.undone {
		w.deleteBlock(b)
		w.deleteRange(keys.FrameRange(b.Number, b.Number+1))
	}
	if n := len(c.evicted); n > 0 {
		for _, b := range c.evicted {
			w.deleteBlock(b)
		}
		w.deleteRange(keys.FrameRange(c.evicted[0].Number, c.evicted[n-1].Number+1))
	}
	for i, b := range c.applied {
		if slices.Contains(c.evicted, b) {
			continue
		}
		w.set(keys.Canonical{Number: b.Number}, appendCanonicalValue(w.value[:0], b))
		w.set(keys.Hash{Hash: b.Hash}, binary.BigEndian.AppendUint64(w.value[:0], b.Number))
		for _, p := range c.parts[i] {
			w.setFrame(keys.Frame{Number: b.Number, Hash: b.Hash, Part: p.Part}, p.Content)
		}
	}
	for level := FinalityAttested; level <= FinalityFinalized; level++ {
		switch c.marks[level] {
		case markSet:
			w.set(keys.Finality{Level: level}, appendFinalityValue(w.value[:0], next.marks[level]))
		case markCleared:
			w.delete(keys.Finality{Level: level})
		}
	}
}

// deleteBlock deletes the rows of a block, parts excepted.
func (w *batchWriter) deleteBlock(b *HotBlock) {
	w.delete(keys.Canonical{Number: b.Number})
	w.delete(keys.Hash{Hash: b.Hash})
}

func (w *batchWriter) deleteRange(lower, upper []byte) {
	if w.err == nil {
		w.err = w.batch.DeleteRange(lower, upper, nil)
	}
}

// setFrame writes a part straight into the batch.
func (w *batchWriter) setFrame(k keys.Frame, content []byte) {
	if w.err != nil {
		return
	}
	w.key = k.Append(w.key[:0])
	op := w.batch.SetDeferred(len(w.key), len(content)+frameOverhead)
	copy(op.Key, w.key)
	appendFrame(op.Value[:0], w.key, content)
	w.err = op.Finish()
}

// newView takes the database snapshot of a version with hot blocks; nil for one without. The commit lock is
// held, so that the snapshot shows exactly the commit before.
func (e *Engine) newView(c *catalog) (*pebble.Snapshot, error) {
	if len(c.hot.blocks) == 0 {
		return nil, nil
	}
	made := make(chan *pebble.Snapshot, 1)
	err := e.database(func() error {
		made <- e.db.NewSnapshot()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return <-made, nil
}

// closeView closes the database snapshot of a version that nobody reads any more, on a goroutine of its own:
// in a store that fails meanwhile it may never end, and nobody but Close, while the store works, waits for it.
func (e *Engine) closeView(v *pebble.Snapshot) {
	if v != nil && e.Err() == nil {
		e.closingViews.Go(func() { _ = v.Close() })
	}
}

// closeAllViews closes the views of all versions that are left, when the engine is closed.
func (e *Engine) closeAllViews() {
	e.mu.Lock()
	var list []*pebble.Snapshot
	for v := e.mu.oldest; v != nil; v = v.next {
		if v.view != nil {
			list = append(list, v.view)
			v.view = nil
		}
	}
	e.mu.Unlock()
	if e.Err() != nil {
		return
	}
	_ = e.database(func() error {
		e.closingViews.Wait()
		for _, v := range list {
			_ = v.Close()
		}
		return nil
	})
}
