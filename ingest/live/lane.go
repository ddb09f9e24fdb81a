package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/engine/history"
	"github.com/leani-go/leani/ingest/verify"
	"github.com/leani-go/leani/internal/header"
)

const (
	// queuedEvents bounds the events between source and lane.
	queuedEvents = 16
	// maximumPending bounds the marks of a level that wait for their blocks.
	maximumPending = 256
	// maximumRefused bounds the memory of blocks that contradict finality.
	maximumRefused = 1024
	// defaultRetry is the pause between two looks at whether there is room again.
	defaultRetry = 500 * time.Millisecond
)

// Options configure a Lane. Store and Source are required.
type Options struct {
	Store  *history.Store
	Source Source
	// Committed, if set, is called after each commit, to wake background work.
	Committed func()
	// Admit, if set, is asked about every block before it is applied: an error ends the lane.
	Admit func(*chain.Block) error
	// Logger receives what the operator should know; nil discards it.
	Logger *slog.Logger
	// Retry is the pause between two looks at whether there is room again; default half a second.
	Retry time.Duration
}

// Lane follows the head of a chain.
type Lane struct {
	opts      Options
	verifier  verify.Verifier
	queue     []*Event // read while there was no room
	sourceEnd error    // read then
	// pending are marks of blocks that have not come yet, by level, rising.
	pending [engine.FinalityFinalized + 1][]BlockID
	// refused are blocks that contradict finality, and their descendants.
	refused map[common.Hash]struct{}
	// astray is set while the newest blocks of the source are refused ones: their lowest number.
	astray *uint64

	tracker
}

// New makes a lane.
func New(opts Options) *Lane {
	if opts.Committed == nil {
		opts.Committed = func() {}
	}
	if opts.Admit == nil {
		opts.Admit = func(*chain.Block) error { return nil }
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Retry <= 0 {
		opts.Retry = defaultRetry
	}
	return &Lane{opts: opts, refused: make(map[common.Hash]struct{})}
}

// read is an event, or the error after the last one.
type read struct {
	event *Event
	err   error
}

// Run follows the source to its end, and returns nil there, or until the context ends, and returns its error.
// What was committed stays. A lane is run once.
func (l *Lane) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := make(chan read, queuedEvents)
	done := make(chan struct{})
	go func() { // ends with the source or the context; Run waits for it
		defer close(done)
		for {
			e, err := l.opts.Source.Next(ctx)
			select {
			case events <- read{e, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	defer func() { cancel(); <-done }()
	defer l.end()
	for {
		l.reached(l.newestPending(), l.astray != nil)
		e, err := l.next(ctx, events)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		l.told(e.Kind)
		if err := l.handle(ctx, e, events); err != nil {
			return fmt.Errorf("live source: %w", err)
		}
	}
}

// next gives the event whose turn it is.
func (l *Lane) next(ctx context.Context, events <-chan read) (*Event, error) {
	if len(l.queue) > 0 {
		e := l.queue[0]
		l.queue = l.queue[1:]
		return e, nil
	}
	if l.sourceEnd != nil {
		return nil, l.sourceEnd
	}
	select {
	case r := <-events:
		return r.event, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// handle does what an event says.
func (l *Lane) handle(ctx context.Context, e *Event, events <-chan read) error {
	switch e.Kind {
	case Apply:
		return l.apply(ctx, e.Blocks, events)
	case Undo:
		return l.undo(ctx, e.Block)
	case Attested:
		return l.mark(ctx, engine.FinalityAttested, e.Block)
	case Finalized:
		return l.mark(ctx, engine.FinalityFinalized, e.Block)
	case Current:
		return nil
	default:
		return fmt.Errorf("event of kind %d", e.Kind)
	}
}

// apply proves blocks and makes them the newest ones, as one commit. While there is no room, among the recent blocks
// or in the budget of the store, it waits.
func (l *Lane) apply(ctx context.Context, blocks []*chain.Block, events <-chan read) error {
	for i, b := range blocks {
		want, err := expected(b)
		if err != nil {
			return err
		}
		if i > 0 {
			want.Number, want.ParentHash = blocks[i-1].Number+1, blocks[i-1].Hash
		}
		if err := l.verifier.Block(b, want); err != nil {
			return err
		}
		if !b.HasReceipts {
			return fmt.Errorf("block %s comes without receipts", b.BlockRef)
		}
	}
	for stalled := false; ; stalled = true {
		err := l.commit(ctx, blocks)
		reason := "recent_storage_full"
		switch {
		case errors.Is(err, engine.ErrSpace):
			reason = "physical_storage_limit"
		case !errors.Is(err, history.ErrRecentFull):
			return err
		}
		if !stalled {
			l.opts.Logger.Warn("the live lane waits for room", "reason", reason, "cause", err)
			l.opts.Committed() // sealing may be all that is needed
			l.waits(max(blocks[len(blocks)-1].Number, l.newestPending()))
		}
		if err := l.stall(ctx, blocks[0].Number, events); err != nil {
			return err
		}
	}
}

// expected is what the header of a block says of its place.
func expected(b *chain.Block) (verify.Expected, error) {
	var h header.Header
	if err := header.Parse(b.Header, &h); err != nil {
		return verify.Expected{}, fmt.Errorf("header of an applied block: %w", err)
	}
	return verify.Expected{Number: h.Number, ParentHash: *h.ParentHash}, nil
}

// stall waits a while for room for the blocks from a number on, and takes marks out of turn meanwhile: they are
// what makes room.
func (l *Lane) stall(ctx context.Context, from uint64, events <-chan read) error {
	if err := l.takeMarks(ctx, from); err != nil {
		return err
	}
	if len(l.queue) >= queuedEvents || l.sourceEnd != nil {
		events = nil
	}
	timer := time.NewTimer(l.opts.Retry)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	case r := <-events:
		if r.err != nil {
			l.sourceEnd = r.err
			return nil
		}
		l.queue = append(l.queue, r.event)
		return l.takeMarks(ctx, from)
	}
}

// takeMarks handles the marks of the queue whose blocks are known whatever happens before their turn: those with a
// hash, and those below all blocks that what waits in front of them adds or takes back. Without a hash a mark means
// the canonical block of its turn.
func (l *Lane) takeMarks(ctx context.Context, from uint64) error {
	for i := 0; i < len(l.queue); {
		switch e := l.queue[i]; e.Kind {
		case Attested, Finalized:
			if e.Block.Hash != (common.Hash{}) || e.Block.Number < from {
				l.queue = slices.Delete(l.queue, i, i+1)
				if err := l.handle(ctx, e, nil); err != nil {
					return err
				}
				continue
			}
		case Apply:
			first, err := expected(e.Blocks[0])
			if err != nil {
				first.Number = 0 // its turn will tell
			}
			from = min(from, first.Number)
		case Undo:
			from = min(from, e.Block.Number+1)
		}
		i++
	}
	return nil
}

// commit applies proved blocks where they belong. Blocks that are there already are left out.
func (l *Lane) commit(ctx context.Context, blocks []*chain.Block) error {
	snap := l.opts.Store.Engine().Acquire()
	defer snap.Release()
	for len(blocks) > 0 {
		known, err := l.known(snap, blocks[0])
		if err != nil {
			return err
		}
		if !known {
			break
		}
		l.astray, blocks = nil, blocks[1:]
	}
	if len(blocks) == 0 {
		return nil
	}
	first := blocks[0]
	reason := l.contradicts(snap, blocks)
	var undo []chain.BlockRef
	if reason == "" {
		var err error
		if undo, err = l.place(snap, first.BlockRef); err != nil {
			return err
		}
	}
	if reason != "" {
		for _, b := range blocks {
			l.refuse(b.Hash)
		}
		if l.astray == nil || first.Number < *l.astray {
			l.astray = &first.Number
		}
		l.opts.Logger.Warn("blocks that contradict finality are not applied", "first", first.BlockRef.String(), "blocks", len(blocks), "reason", reason)
		return nil
	}
	for _, b := range blocks {
		if err := l.opts.Admit(b); err != nil {
			return err
		}
	}
	l.astray = nil
	x := history.Extension{Undo: undo, Apply: blocks}
	x.Attested, x.Finalized = l.due(snap, engine.FinalityAttested, blocks), l.due(snap, engine.FinalityFinalized, blocks)
	return l.extend(ctx, &x)
}

// extend commits a change.
func (l *Lane) extend(ctx context.Context, x *history.Extension) error {
	err := l.opts.Store.Extend(ctx, x)
	if err != nil {
		return err
	}
	for _, level := range []engine.FinalityLevel{engine.FinalityAttested, engine.FinalityFinalized} {
		mark := x.Attested
		if level == engine.FinalityFinalized {
			mark = x.Finalized
		}
		for mark != nil && len(l.pending[level]) > 0 && l.pending[level][0].Number <= mark.Number {
			l.pending[level] = l.pending[level][1:]
		}
	}
	if len(x.Undo) > 0 {
		l.opts.Logger.Info("reorganization", "undone", len(x.Undo), "applied", len(x.Apply), "newest", x.Undo[0].String())
	}
	l.opts.Committed()
	return nil
}

// known tells whether a block is retained and canonical.
func (l *Lane) known(snap *engine.Snapshot, b *chain.Block) (bool, error) {
	if hot := snap.HotRange(); !hot.Empty() && b.Number >= hot.From {
		return hot.Contains(b.Number) && snap.Hot()[b.Number-hot.From].Hash == b.Hash, nil
	}
	if _, ok := snap.DataFile(b.Number); !ok {
		return false, nil
	}
	v, err := l.opts.Store.View()
	if err != nil {
		return false, err
	}
	defer v.Close()
	_, ok, err := v.NumberByHash(b.Hash)
	return ok, err
}

// place finds the blocks that a block of a branch replaces, newest first.
func (l *Lane) place(snap *engine.Snapshot, r chain.BlockRef) (undo []chain.BlockRef, err error) {
	hot := snap.Hot()
	for i := len(hot) - 1; i >= 0; i-- {
		if hot[i].Hash == r.ParentHash {
			return undo, nil
		}
		undo = append(undo, hot[i].BlockRef)
	}
	if len(hot) > 0 {
		if hot[0].Number == r.Number && hot[0].ParentHash == r.ParentHash {
			return undo, nil
		}
		if r.Number <= hot[0].Number {
			return nil, fmt.Errorf("block %s: %w: recent blocks begin with %s", r, engine.ErrTooDeep, hot[0].BlockRef)
		}
		return nil, fmt.Errorf("block %s: %w: the newest block is %s", r, ErrUnknownParent, hot[len(hot)-1].BlockRef)
	}
	files := snap.Rows(engine.KindData)
	if len(files) == 0 {
		return nil, nil // the lane starts the store
	}
	switch last := files[len(files)-1]; {
	case r.Number < last.To:
		return nil, fmt.Errorf("block %s: %w: the files end with block %d", r, engine.ErrTooDeep, last.To-1)
	case r.Number > last.To || r.ParentHash != last.LastHash:
		return nil, fmt.Errorf("block %s: %w: the files end with block %d (%x)", r, ErrUnknownParent, last.To-1, last.LastHash[:4])
	}
	return nil, nil
}

// contradicts tells why blocks, of which the first is not canonical, cannot become so because of what is final;
// empty if they can.
func (l *Lane) contradicts(snap *engine.Snapshot, blocks []*chain.Block) string {
	if _, ok := l.refused[blocks[0].ParentHash]; ok {
		return "the parent contradicts finality"
	}
	if finalized, ok := snap.Mark(engine.FinalityFinalized); ok && blocks[0].Number <= finalized.Number {
		return fmt.Sprintf("block %s is finalized", finalized)
	}
	for _, final := range l.pending[engine.FinalityFinalized] {
		if n := final.Number - blocks[0].Number; final.Hash != (common.Hash{}) && n < uint64(len(blocks)) && blocks[n].Hash != final.Hash {
			return fmt.Sprintf("block %d with the hash %x is finalized", final.Number, final.Hash[:4])
		}
	}
	return ""
}

// wait keeps a mark until its block comes. Of too many the highest goes: a mark far ahead must not cost the next ones.
func (l *Lane) wait(level engine.FinalityLevel, id BlockID) {
	list := l.pending[level]
	i, found := slices.BinarySearchFunc(list, id.Number, func(p BlockID, n uint64) int { return cmp.Compare(p.Number, n) })
	if found {
		list[i] = id
		return
	}
	list = slices.Insert(list, i, id)
	l.pending[level] = list[:min(len(list), maximumPending)]
}

// newestPending is the highest block whose mark waits for it, 0 if there is none.
func (l *Lane) newestPending() (number uint64) {
	for _, marks := range l.pending {
		if len(marks) > 0 {
			number = max(number, marks[len(marks)-1].Number)
		}
	}
	return number
}

func (l *Lane) refuse(hash common.Hash) {
	if len(l.refused) >= maximumRefused {
		clear(l.refused)
	}
	l.refused[hash] = struct{}{}
}

// due gives the mark of a level that waited for one of the blocks.
func (l *Lane) due(snap *engine.Snapshot, level engine.FinalityLevel, blocks []*chain.Block) *chain.BlockRef {
	old, any := snap.Mark(level)
	for _, p := range slices.Backward(l.pending[level]) {
		if any && p.Number <= old.Number {
			break
		}
		if n := p.Number - blocks[0].Number; n < uint64(len(blocks)) && l.names(p, blocks[n].BlockRef) {
			return &blocks[n].BlockRef
		}
	}
	return nil
}

// undo ends the chain at a block.
func (l *Lane) undo(ctx context.Context, to BlockID) error {
	snap := l.opts.Store.Engine().Acquire()
	defer snap.Release()
	hot := snap.Hot()
	if finalized, ok := snap.Mark(engine.FinalityFinalized); ok &&
		(finalized.Number > to.Number || finalized.Number == to.Number && !l.names(to, finalized)) {
		l.opts.Logger.Warn("an undo that contradicts finality is not done", "to", to.Number, "finalized", finalized.String())
		return nil
	}
	// The source takes back blocks that were refused: nothing of them is here.
	if _, ok := l.refused[to.Hash]; ok || l.astray != nil && to.Number >= *l.astray {
		l.opts.Logger.Warn("an undo to a block that contradicts finality is not done", "to", to.Number)
		return nil
	}
	l.astray = nil
	var x history.Extension
	found := false
	for i := len(hot) - 1; i >= 0 && !found; i-- {
		if found = l.names(to, hot[i].BlockRef); !found {
			x.Undo = append(x.Undo, hot[i].BlockRef)
		}
	}
	if !found && len(hot) > 0 {
		found = hot[0].Number > 0 && hot[0].Number-1 == to.Number && (to.Hash == common.Hash{} || to.Hash == hot[0].ParentHash)
	}
	switch {
	case !found && len(hot) > 0 && to.Number < hot[0].Number:
		return fmt.Errorf("undo to block %d: %w: recent blocks begin with %s", to.Number, engine.ErrTooDeep, hot[0].BlockRef)
	case !found:
		return fmt.Errorf("undo to block %d: %w", to.Number, ErrUnknownBlock)
	case len(x.Undo) == 0:
		return nil
	}
	return l.extend(ctx, &x)
}

func (l *Lane) names(id BlockID, r chain.BlockRef) bool {
	return id.Number == r.Number && (id.Hash == common.Hash{} || id.Hash == r.Hash)
}

// mark moves a mark, now or once its block has come.
func (l *Lane) mark(ctx context.Context, level engine.FinalityLevel, id BlockID) error {
	snap := l.opts.Store.Engine().Acquire()
	defer snap.Release()
	if old, ok := snap.Mark(level); ok && id.Number <= old.Number {
		if id.Number == old.Number && !l.names(id, old) {
			l.opts.Logger.Warn("a mark that contradicts the one before is ignored", "level", level.String(), "got", id.Number, "have", old.String())
		}
		return nil
	}
	hot := snap.HotRange()
	_, sealed := snap.DataFile(id.Number)
	switch {
	case sealed:
		return l.markSealed(ctx, level, id)
	case hot.Empty() || id.Number >= hot.To:
		l.wait(level, id)
		return nil
	case id.Number < hot.From:
		return nil // not retained: there is nothing to compare it with
	}
	b := snap.Hot()[id.Number-hot.From]
	if !l.names(id, b.BlockRef) {
		if level == engine.FinalityFinalized {
			return l.foreign(ctx, snap, id)
		}
		l.opts.Logger.Warn("a mark of a block that is not canonical is ignored", "level", level.String(), "got", id.Number, "have", b.BlockRef.String())
		return nil
	}
	return l.extend(ctx, markOf(level, &b.BlockRef))
}

// markSealed moves a mark to a block of the files, which came there by the word of an archive, or by their depth. When the
// source has another block there, what is retained is not its chain, and nothing that follows can mend that.
func (l *Lane) markSealed(ctx context.Context, level engine.FinalityLevel, id BlockID) error {
	v, err := l.opts.Store.View()
	if err != nil {
		return err
	}
	defer v.Close()
	var b chain.Block
	switch err := v.LoadBlock(ctx, id.Number, chain.PartHeader, &b); {
	case errors.Is(err, chain.ErrNotRetained): // pruned meanwhile
		return nil
	case err != nil:
		return err
	case l.names(id, b.BlockRef):
		return l.extend(ctx, markOf(level, &b.BlockRef))
	case level == engine.FinalityFinalized:
		return fmt.Errorf("block %d: %w: finalized is %x, retained is %x; if the source is right, prune the blocks from there on and fill them anew",
			id.Number, ErrOtherChain, id.Hash, b.Hash)
	}
	l.opts.Logger.Warn("a mark of a block that is not canonical is ignored", "level", level.String(), "got", id.Number, "have", b.BlockRef.String())
	return nil
}

// markOf is the change that moves a mark.
func markOf(level engine.FinalityLevel, to *chain.BlockRef) *history.Extension {
	if level == engine.FinalityFinalized {
		return &history.Extension{Finalized: to}
	}
	return &history.Extension{Attested: to}
}

// foreign undoes the blocks that a finalized block of another branch contradicts, and keeps its mark until the
// branch comes.
func (l *Lane) foreign(ctx context.Context, snap *engine.Snapshot, id BlockID) error {
	var x history.Extension
	hot := snap.Hot()
	for i := len(hot) - 1; i >= 0 && hot[i].Number >= id.Number; i-- {
		x.Undo = append(x.Undo, hot[i].BlockRef)
		l.refuse(hot[i].Hash)
	}
	l.pending[engine.FinalityFinalized] = nil
	l.wait(engine.FinalityFinalized, id)
	l.opts.Logger.Warn("a block of another branch is finalized: the blocks from there on are undone", "number", id.Number, "undone", len(x.Undo))
	return l.extend(ctx, &x)
}
