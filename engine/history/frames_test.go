package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/internal/chainmodel"
	"github.com/leani-go/leani/segments"
)

// partials are the frames of a chain that a store should hold, by shape and block.
type partials struct {
	chain *modelChain
	has   [chainmodel.Shapes]map[uint64]bool
}

func newPartials(c *modelChain) *partials {
	p := &partials{chain: c}
	for i := range p.has {
		p.has[i] = make(map[uint64]bool)
	}
	return p
}

func (p *partials) clone() *partials {
	c := newPartials(p.chain)
	for i := range p.has {
		for n := range p.has[i] {
			c.has[i][n] = true
		}
	}
	return c
}

func (p *partials) frame(n uint64, shape chainmodel.Shape) *chain.Frame {
	return p.chain.model.Partial(p.chain.at(n), shape)
}

// frames are those of a run of blocks.
func (p *partials) frames(shape chainmodel.Shape, from, to uint64) (list []*chain.Frame) {
	for n := from; n < to; n++ {
		list = append(list, p.frame(n, shape))
	}
	return list
}

func (p *partials) note(shape chainmodel.Shape, from, to uint64, there bool) {
	for n := from; n < to; n++ {
		if there {
			p.has[shape][n] = true
		} else {
			delete(p.has[shape], n)
		}
	}
}

// needs are requirements with the shapes that supply them.
func (p *partials) needs() []struct {
	need   chain.Requirement
	shapes []chainmodel.Shape
} {
	caps := chain.NewCapabilities
	scoped := &chain.FilterScope{Addresses: p.chain.model.Addresses[:1]}
	all := []chainmodel.Shape{chainmodel.HeaderOnly, chainmodel.NoWithdrawals, chainmodel.NoOmmers, chainmodel.NoReceipts, chainmodel.LogsOfAddress}
	receipts := []chainmodel.Shape{chainmodel.NoWithdrawals, chainmodel.NoOmmers}
	return []struct {
		need   chain.Requirement
		shapes []chainmodel.Shape
	}{
		{chain.Requirement{}, all},
		{chain.Requirement{Capabilities: caps(chain.CapabilityHeader)}, all},
		{chain.Requirement{Capabilities: caps(chain.CapabilityHeader), Details: chain.DetailEnvelopes}, all[1:4]},
		{chain.Requirement{Capabilities: caps(chain.CapabilityBody)}, all[1:4]},
		{chain.Requirement{Capabilities: caps(chain.CapabilityReceipts)}, receipts},
		{chain.Requirement{Capabilities: caps(chain.CapabilityLogs)}, receipts},
		{chain.Requirement{Capabilities: caps(chain.CapabilityLogs), Scope: scoped}, append(slices.Clone(receipts), chainmodel.LogsOfAddress)},
		{chain.Requirement{Capabilities: caps(chain.CapabilityLogs), Scope: &chain.FilterScope{Addresses: p.chain.model.Addresses[:2]}}, receipts},
		{chain.Requirement{Capabilities: caps(chain.CapabilityWithdrawals)}, []chainmodel.Shape{chainmodel.NoOmmers, chainmodel.NoReceipts}},
		{chain.Requirement{Capabilities: caps(chain.CapabilityTraces)}, nil},
		{chain.Requirement{Capabilities: caps(chain.CapabilityMempool)}, nil},
		{chain.Requirement{Capabilities: caps(chain.CapabilityConsensusFinality)}, nil},
	}
}

// shapeOf finds which shape a frame of the model has.
func (p *partials) shapeOf(got *chain.Frame) (chainmodel.Shape, error) {
	for shape := range chainmodel.Shape(chainmodel.Shapes) {
		want := p.frame(got.Number, shape)
		if got.Profile().Ommers == want.Profile().Ommers && reflect.DeepEqual(states(got), states(want)) {
			return shape, sameFrame(got, want)
		}
	}
	return 0, fmt.Errorf("block %d: no frame has these states", got.Number)
}

func states(f *chain.Frame) any {
	p := f.Profile()
	return p
}

// sameFrame compares all that a frame holds.
func sameFrame(got, want *chain.Frame) error {
	if err := sameBlock(&got.Block, &want.Block); err != nil {
		return err
	}
	if got.Finality != want.Finality || !slices.EqualFunc(got.LogPlaces, want.LogPlaces, func(a, b chain.LogPlace) bool {
		return *a.TransactionHash == *b.TransactionHash && a.TransactionIndex == b.TransactionIndex && a.LogIndex == b.LogIndex
	}) {
		return errors.New("finality or places of logs")
	}
	if !reflect.DeepEqual(got.Provenance, want.Provenance) || !reflect.DeepEqual(got.Verification, want.Verification) {
		return errors.New("provenance or verification")
	}
	return nil
}

// check compares what a view hands out with the model, for each requirement.
func (p *partials) check(ctx context.Context, v *View, r chain.Range) error {
	for _, c := range p.needs() {
		var yielded []uint64
		supplied, err := v.Frames(ctx, r, c.need, func(f *chain.Frame) error {
			yielded = append(yielded, f.Number)
			shape, err := p.shapeOf(f)
			if err != nil {
				return err
			}
			if !slices.Contains(c.shapes, shape) || !p.has[shape][f.Number] {
				return fmt.Errorf("block %d: a frame of shape %d was handed out for %+v", f.Number, shape, c.need)
			}
			return nil
		})
		if err != nil {
			return err
		}
		var want, told []uint64
		for n := max(r.From, p.chain.first); n < min(r.To, p.chain.end()); n++ {
			if slices.ContainsFunc(c.shapes, func(s chainmodel.Shape) bool { return p.has[s][n] }) {
				want = append(want, n)
			}
		}
		for i, run := range supplied {
			if i > 0 && run.From <= supplied[i-1].To {
				return fmt.Errorf("runs %v are not maximal", supplied)
			}
			for n := run.From; n < run.To; n++ {
				told = append(told, n)
			}
		}
		if !slices.Equal(yielded, want) || !slices.Equal(told, want) {
			return fmt.Errorf("%+v: frames of %v, said to be of %v, want %v", c.need, yielded, supplied, want)
		}
	}
	return nil
}

func openPartials(t *testing.T, fs vfs.FS) (*engine.Engine, *Store) {
	t.Helper()
	e, s, err := openSmall(fs, 0, smallOptions(8))
	if err != nil {
		t.Fatal(err)
	}
	return e, s
}

// checkAll compares a store with the model: frames, complete blocks, and what it says of both.
func (p *partials) checkAll(t *testing.T, s *Store, has []bool) {
	t.Helper()
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for _, r := range []chain.Range{{To: p.chain.end() + 5}, {From: p.chain.first + 3, To: p.chain.first + 20}, {From: 9, To: 9}} {
		if err := p.check(t.Context(), v, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.chain.check(t.Context(), v, chainmodel.New(1, 0), has); err != nil {
		t.Fatal(err)
	}
	if err := p.chain.verifyAgainst(t.Context(), s, has); err != nil {
		t.Fatal(err)
	}
	list, err := v.Partial()
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, part := range list {
		for _, r := range part.Ranges {
			blocks += int(r.Len())
		}
		blocks -= int(part.Blocks)
	}
	for shape := range p.has {
		blocks += len(p.has[shape])
	}
	for _, part := range list {
		blocks -= int(part.Blocks)
	}
	if blocks != 0 {
		t.Errorf("the lists of partial material are %d blocks off: %+v", blocks, list)
	}
}

// Frames of profiles that overlap come back as they were added and are handed out for what they supply, before
// and after complete material of the same blocks arrives, and are pruned block by block.
func TestFrames(t *testing.T) {
	fs := vfs.NewMem()
	e, s := openPartials(t, fs)
	c := newModelChain(4, 20, 60)
	p := newPartials(c)
	none := make([]bool, len(c.blocks))
	add := func(shape chainmodel.Shape, from, to uint64) {
		t.Helper()
		if err := s.AddFrames(t.Context(), p.frames(shape, from, to)...); err != nil {
			t.Fatal(err)
		}
		p.note(shape, from, to, true)
	}
	p.checkAll(t, s, none)
	add(chainmodel.HeaderOnly, 20, 60)
	add(chainmodel.LogsOfAddress, 33, 70)
	add(chainmodel.NoReceipts, 25, 27)
	add(chainmodel.NoReceipts, 27, 40) // links to the one before
	add(chainmodel.NoOmmers, 79, 80)
	p.checkAll(t, s, none)
	// The same again is nothing new, also in parts and out of order.
	files := len(snapshotRows(s, engine.KindFrames))
	if err := s.AddFrames(t.Context(), append(p.frames(chainmodel.HeaderOnly, 50, 60), p.frames(chainmodel.HeaderOnly, 20, 25)...)...); err != nil {
		t.Fatal(err)
	}
	if got := len(snapshotRows(s, engine.KindFrames)); got != files {
		t.Errorf("%d files became %d", files, got)
	}
	// Kinds that alternate, a gap that is filled, all in one session.
	var mixed []*chain.Frame
	for n := uint64(60); n < 78; n++ {
		shape := chainmodel.Shape(n % 3)
		mixed = append(mixed, p.frame(n, shape))
		p.note(shape, n, n+1, true)
	}
	mixed = append(mixed, p.frames(chainmodel.NoReceipts, 40, 44)...)
	p.note(chainmodel.NoReceipts, 40, 44, true)
	if err := s.AddFrames(t.Context(), mixed...); err != nil {
		t.Fatal(err)
	}
	p.checkAll(t, s, none)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}

	e, s = openPartials(t, fs)
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	p.checkAll(t, s, none)
	has := slices.Clone(none)
	write(t, s, c.slice(chain.Range{From: 30, To: 50}))
	for n := 10; n < 30; n++ {
		has[n] = true
	}
	p.checkAll(t, s, has)
	if err := s.AddFrames(t.Context(), p.frames(chainmodel.NoOmmers, 28, 52)...); err != nil {
		t.Fatal(err)
	}
	p.note(chainmodel.NoOmmers, 28, 52, true)
	p.checkAll(t, s, has)

	for _, gone := range []chain.Range{{From: 22, To: 24}, {From: 35, To: 51}, {From: 0, To: 21}} {
		dry, err := s.PruneFrames(t.Context(), AllProfiles, gone, PruneOptions{DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		report, err := s.PruneFrames(t.Context(), AllProfiles, gone, PruneOptions{})
		if err != nil || report.Blocks != dry.Blocks || report.FilesRemoved != dry.FilesRemoved || report.Rewritten != dry.Rewritten {
			t.Fatalf("got %+v, a dry run %+v: %v", report, dry, err)
		}
		for shape := range chainmodel.Shape(chainmodel.Shapes) {
			p.note(shape, gone.From, gone.To, false)
		}
		p.checkAll(t, s, has)
	}
	// One kind alone.
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	list, err := v.Partial()
	v.Close()
	if err != nil || len(list) < 3 {
		t.Fatal(list, err)
	}
	if _, err := s.PruneFrames(t.Context(), list[0].ID, chain.Range{To: 1000}, PruneOptions{}); err != nil {
		t.Fatal(err)
	}
	p.note(chainmodel.HeaderOnly, 0, 1000, false)
	p.checkAll(t, s, has)
	// To a size: partial material goes first.
	if _, err := s.PruneTo(t.Context(), dataBytes(s), PruneOptions{}); err != nil {
		t.Fatal(err)
	}
	for shape := range p.has {
		clear(p.has[shape])
	}
	p.checkAll(t, s, has)
}

func snapshotRows(s *Store, kind engine.Kind) []*engine.FileRow {
	snap := s.engine.Acquire()
	defer snap.Release()
	return snap.Rows(kind)
}

func dataBytes(s *Store) (sum int64) {
	for _, kind := range []engine.Kind{engine.KindData, engine.KindIndex, engine.KindSenders} {
		for _, r := range snapshotRows(s, kind) {
			sum += r.Size
		}
	}
	return sum
}

// A store of partial material alone answers nothing: it has no head, no coverage, no block by number or hash, no
// transaction, no log, and says so.
//
// INV-07 INV-10
func TestFramesNeverAnswer(t *testing.T) {
	e, s := openPartials(t, vfs.NewMem())
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	c := newModelChain(4, 20, 30)
	p := newPartials(c)
	for shape := range chainmodel.Shape(chainmodel.Shapes) {
		if err := s.AddFrames(t.Context(), p.frames(shape, 20, 50)...); err != nil {
			t.Fatal(err)
		}
	}
	whole := chain.Range{From: 20, To: 50}
	if got := s.Missing(whole); len(got) != 1 || got[0] != whole {
		t.Errorf("missing: %v", got)
	}
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if head, ok := v.Head(); ok || v.HeadHash() != (common.Hash{}) || len(v.Coverage()) > 0 {
		t.Errorf("head %d, coverage %v", head, v.Coverage())
	}
	var b chain.Block
	var gap *chain.NotRetainedError
	for n := whole.From; n < whole.To; n++ {
		for _, parts := range []chain.Parts{chain.PartHeader, chain.PartsAll} {
			if err := v.LoadBlock(t.Context(), n, parts, &b); !errors.As(err, &gap) {
				t.Fatalf("block %d was loaded: %v", n, err)
			}
		}
		if _, ok, err := v.NumberByHash(c.at(n).Hash); ok || err != nil {
			t.Fatalf("block %d was found by its hash: %v", n, err)
		}
		for _, h := range c.at(n).TransactionHashes {
			if _, _, ok, err := v.LocateTransaction(h); ok || err != nil {
				t.Fatalf("a transaction of block %d was found: %v", n, err)
			}
		}
	}
	err = v.Logs(t.Context(), whole, &chain.LogFilter{}, func(*chain.FoundLog) error { return errors.New("a log was found") })
	if !errors.As(err, &gap) || gap.Range != whole {
		t.Errorf("logs: got %v", err)
	}
}

// Frames that contradict the chain, what is retained, or each other, are refused, and the writer goes on.
//
// INV-14
func TestFramesContradict(t *testing.T) {
	e, s := openPartials(t, vfs.NewMem())
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	c := newModelChain(4, 20, 30)
	p := newPartials(c)
	write(t, s, c.slice(chain.Range{From: 30, To: 34}))
	if err := s.AddFrames(t.Context(), p.frames(chainmodel.HeaderOnly, 40, 44)...); err != nil {
		t.Fatal(err)
	}
	w := s.NewFramesWriter(t.Context(), nil)
	refused := func(want error, n uint64, edit func(f *chain.Frame)) {
		t.Helper()
		f := p.frame(n, chainmodel.HeaderOnly)
		edit(f)
		if err := w.Add(f); !errors.Is(err, want) {
			t.Errorf("block %d: got %v want %v", n, err, want)
		}
	}
	hash := func(f *chain.Frame) { f.Hash[3]++ }
	parent := func(f *chain.Frame) { f.ParentHash[3]++ }
	refused(ErrContradiction, 29, hash)   // the parent of block 30
	refused(ErrContradiction, 31, hash)   // retained
	refused(ErrContradiction, 34, parent) // follows block 33
	refused(ErrContradiction, 39, hash)   // the parent of the frame of block 40
	refused(ErrContradiction, 41, hash)
	refused(ErrContradiction, 44, parent)
	refused(ErrOtherChain, 20, func(f *chain.Frame) { f.ChainID = 5 })
	refused(segments.ErrMalformedBlock, 20, func(f *chain.Frame) { f.Finality = 0 })
	refused(segments.ErrMalformedBlock, 20, func(f *chain.Frame) { f.Verification.ReceiptsRoot.Status = chain.Failed })
	refused(nil, 20, func(*chain.Frame) {})
	refused(ErrContradiction, 21, parent) // of the frame before
	refused(nil, 21, func(*chain.Frame) {})
	if n := w.Pending(); n != 2 {
		t.Errorf("%d frames are pending, want 2", n)
	}
	if err := w.Close(false); err != nil {
		t.Fatal(err)
	}
	p.note(chainmodel.HeaderOnly, 20, 22, true)
	p.note(chainmodel.HeaderOnly, 40, 44, true)
	has := make([]bool, len(c.blocks))
	for n := 10; n < 14; n++ {
		has[n] = true
	}
	p.checkAll(t, s, has)
	// What is discarded leaves nothing.
	w = s.NewFramesWriter(t.Context(), nil)
	for _, f := range p.frames(chainmodel.NoReceipts, 20, 40) {
		if err := w.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(true); err != nil {
		t.Fatal(err)
	}
	p.checkAll(t, s, has)
}

// Damage of a frames file is found by Verify and by whoever reads the frame, and hurts nobody else.
func TestDamagedFrames(t *testing.T) {
	fs := vfs.NewMem()
	e, s := openPartials(t, fs)
	c := newModelChain(4, 20, 30)
	p := newPartials(c)
	write(t, s, c.slice(chain.Range{From: 30, To: 34}))
	if err := s.AddFrames(t.Context(), p.frames(chainmodel.NoOmmers, 20, 24)...); err != nil {
		t.Fatal(err)
	}
	path := fs.PathJoin(testDir, "segments/frames", snapshotRows(s, engine.KindFrames)[0].Name())
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	var one [1]byte
	_, err = f.ReadAt(one[:], 500)
	one[0] ^= 1
	_, err2 := f.WriteAt(one[:], 500)
	if err := errors.Join(err, err2, f.Close()); err != nil {
		t.Fatal(err)
	}
	e, s = openPartials(t, fs)
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	r, err := s.Verify(t.Context(), VerifyOptions{Workers: 1})
	if err != nil || len(r.Problems) != 1 || !bytes.Contains([]byte(r.Problems[0].Error()), []byte("frames/")) {
		t.Errorf("problems %v, %v", r.Problems, err)
	}
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if _, err := v.Frames(t.Context(), chain.Range{To: 100}, chain.Requirement{}, func(*chain.Frame) error { return nil }); err == nil {
		t.Error("damaged frames were handed out")
	}
	var b chain.Block
	if err := v.LoadBlock(t.Context(), 31, chain.PartsAll, &b); err != nil {
		t.Error(err)
	}
	if _, err := s.PruneFrames(t.Context(), AllProfiles, chain.Range{To: 100}, PruneOptions{}); err != nil {
		t.Errorf("damaged frames cannot be pruned: %v", err)
	}
}
