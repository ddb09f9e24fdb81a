package engine

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine/internal/crashfs"
)

// A commit that would take the store past its budget is refused without a trace; one that makes it smaller
// is not; and the refused one succeeds when there is room.
//
// STO-004 STO-005 STO-006 INV-24
func TestStoreBudget(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, testOptions(fs))
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4))
	before := e.Space()
	mustClose(t, e)

	opts := testOptions(fs)
	opts.MaximumBytes = before.Store() + 10_000
	e = mustOpen(t, opts)
	large := strings.Repeat("x", 40_000)
	row, err := pendingOf(e, KindData, 0, chain.Range{From: 4, To: 8}, []byte(large))
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Space(); got.Temporary != int64(len(large)) || got.Data != before.Data {
		t.Errorf("space while writing: %+v", got)
	}
	for range 2 {
		var refused *SpaceError
		err = e.Commit(context.Background(), Edit{Add: []NewRow{row}})
		if !errors.As(err, &refused) || !errors.Is(err, ErrSpace) || refused.Budget != BudgetStore || refused.Grows != int64(len(large)) || refused.Maximum != opts.MaximumBytes {
			t.Fatalf("got %v", err)
		}
	}
	if e.Err() != nil {
		t.Errorf("the store has failed: %v", e.Err())
	}
	if s := e.Acquire(); len(s.Rows(KindData)) != 1 {
		t.Errorf("files %v", s.Rows(KindData))
	} else {
		s.Release()
	}
	// Its temporary file is there until it is given up or committed; nothing else is.
	report, err := e.Check(context.Background(), CheckOptions{})
	if err != nil || !report.Clean() || len(report.Waiting) != 1 {
		t.Errorf("check: %+v %v", report, err)
	}
	// A replacement by less passes, also above the budget.
	e.opts.MaximumBytes = 1
	small, err := pendingOf(e, KindData, 0, chain.Range{From: 0, To: 4}, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	mustCommit(t, e, []*FileRow{rowAt(t, e, KindData, 0, 0)}, small)
	if err := e.reap(); err != nil {
		t.Fatal(err)
	}
	// With room the same file is committed.
	e.opts.MaximumBytes = before.Store() + 200_000
	mustCommit(t, e, nil, row)
	if got := e.Space(); got.Temporary != 0 || got.Data != 1+int64(len(large)) || got.Retired != 0 || got.Total() != got.Store() {
		t.Errorf("space afterwards: %+v", got)
	}
	mustCheck(t, e)
	mustClose(t, e)
}

// Files being written stay below their budget together; what is refused is given up and its bytes are free
// again.
//
// STO-015
func TestTemporaryBudget(t *testing.T) {
	opts := testOptions(vfs.NewMem())
	opts.MaximumTemporaryBytes = 1000
	e := mustOpen(t, opts)
	first, err := pendingOf(e, KindData, 0, chain.Range{From: 0, To: 4}, make([]byte, 600))
	if err != nil {
		t.Fatal(err)
	}
	_, err = pendingOf(e, KindData, 0, chain.Range{From: 4, To: 8}, make([]byte, 600))
	var refused *SpaceError
	if !errors.As(err, &refused) || refused.Budget != BudgetTemporary || refused.Maximum != 1000 {
		t.Fatalf("got %v", err)
	}
	if got := e.Space().Temporary; got != 600 {
		t.Errorf("%d temporary bytes", got)
	}
	mustCommit(t, e, nil, first)
	second, err := pendingOf(e, KindData, 0, chain.Range{From: 4, To: 8}, make([]byte, 600))
	if err != nil {
		t.Fatal(err)
	}
	mustCommit(t, e, nil, second)
	if got := e.Space().Temporary; got != 0 {
		t.Errorf("%d temporary bytes", got)
	}
	mustCheck(t, e)
	mustClose(t, e)
}

// A disk that is full while a file is written costs that file and nothing else: the store takes changes
// as soon as there is room.
//
// STO-005 STO-024
func TestFullDiskCostsTheFile(t *testing.T) {
	disk := new(crashfs.Full)
	disk.SetRoom(1 << 30)
	e := mustOpen(t, testOptions(disk.On(vfs.NewMem())))
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4))
	for _, room := range []int64{0, 100, 5000} {
		disk.SetRoom(room)
		if _, err := pendingOf(e, KindData, 0, chain.Range{From: 4, To: 8}, make([]byte, 20_000)); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("room for %d: %v", room, err)
		}
		if err := e.Err(); err != nil {
			t.Fatalf("room for %d: the store has failed: %v", room, err)
		}
	}
	// A file of which a write failed cannot be committed.
	disk.SetRoom(1000)
	p, err := e.NewFile(KindData)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write(make([]byte, 5000)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	disk.SetRoom(1 << 30)
	if _, err := p.Write([]byte("more")); !errors.Is(err, errPendingSpoiled) {
		t.Errorf("write after a failed one: %v", err)
	}
	if err := e.Commit(context.Background(), Edit{Add: []NewRow{{File: p, Row: newRow(KindData, 0, chain.Range{From: 4, To: 8}, nil)}}}); !errors.Is(err, errPendingSpoiled) {
		t.Errorf("commit of a spoiled file: %v", err)
	}
	if err := p.Abort(); err != nil {
		t.Error(err)
	}
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 4, 8))
	if report := mustCheck(t, e); len(report.Waiting) > 0 {
		t.Errorf("left over: %v", report.Waiting)
	}
	mustClose(t, e)
}

// Above the budget no block is applied, and blocks are still undone, finalized and evicted: what takes nothing is
// not held up.
//
// STO-004
func TestStoreBudgetOfRecentBlocks(t *testing.T) {
	e := mustOpen(t, testOptions(vfs.NewMem()))
	blocks := hotBlocks(4, 5)
	mustHot(t, e, HotEdit{Apply: applyOf(blocks[:3])})
	large := applyOf(blocks[3:4])
	large[0].Parts[0].Content = make([]byte, 1<<20)
	for _, maximum := range []int64{1, e.Space().Store() + 1<<19} {
		e.opts.MaximumBytes = maximum
		if err := e.Commit(t.Context(), Edit{Hot: HotEdit{Apply: large}}); !errors.Is(err, ErrSpace) {
			t.Errorf("apply with a maximum of %d: got %v", maximum, err)
		}
	}
	e.opts.MaximumBytes = 1
	mustHot(t, e, HotEdit{Undo: []chain.BlockRef{blocks[2].BlockRef}})
	mustHot(t, e, HotEdit{Finalized: &blocks[1].BlockRef})
	mustHot(t, e, HotEdit{EvictTo: 5})
	mustCheck(t, e)
	mustClose(t, e)
}
