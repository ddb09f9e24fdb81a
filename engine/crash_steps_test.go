package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine/internal/crashfs"
)

var errInjected = errors.New("injected input/output error")

// script is one fixed history that visits every state of a file: two seals, sidecars, a pinned
// repack, the deletion after the pin, a merge, a reopen in between. It reports each
// acknowledged state by ack, and stops at the first error.
type script struct {
	fs vfs.FS
	// ack is called with the files that must be there from now on; doubt before every commit
	// with those that may be there if the commit does not return.
	ack, doubt func(files []modelFile)
	// hot is the acknowledged hot tier, hotDoubt what it may be if the commit does not return.
	hot, hotDoubt modelHot
	// broken, if set, is called with the engine after an error, before it is closed.
	broken func(e *Engine, pin pin)
}

func file(kind Kind, level uint8, from, to uint64) modelFile {
	return modelFile{kind, level, chain.Range{From: from, To: to}, fmt.Sprintf("%s of level %d over [%d, %d)", kind, level, from, to)}
}

func (s *script) run() error {
	var live []modelFile
	var held pin
	commitHot := func(e *Engine, add, remove []modelFile, change HotEdit, hot modelHot) error {
		w := &world{engine: e}
		edit := Edit{Hot: change}
		next := []modelFile{}
		for _, f := range live {
			if !containsFile(remove, f) {
				next = append(next, f)
			}
		}
		next = append(next, add...)
		for _, f := range remove {
			edit.Remove = append(edit.Remove, w.rowOf(f))
		}
		for _, f := range add {
			row, err := pendingOf(e, f.kind, f.level, f.blocks, []byte(f.content))
			if err != nil {
				return err
			}
			edit.Add = append(edit.Add, row)
		}
		s.doubt(next)
		s.hotDoubt = hot
		if err := e.Commit(context.Background(), edit); err != nil {
			return err
		}
		live, s.hot = next, hot
		s.ack(live)
		return nil
	}
	commit := func(e *Engine, add, remove []modelFile) error {
		return commitHot(e, add, remove, HotEdit{}, s.hot)
	}
	hot := func(branch, n uint64, parent common.Hash) modelBlock {
		b := modelBlock{BlockRef: chain.BlockRef{Number: n, Hash: branchHash(branch, n), ParentHash: parent}}
		for i := range b.parts {
			b.parts[i] = fmt.Sprintf("part %d of %s", i, b.BlockRef)
		}
		return b
	}
	h9, h10, h11, fork := hot(0, 9, blockHash(8)), hot(0, 10, blockHash(9)), hot(0, 11, blockHash(10)), hot(7, 10, blockHash(9))
	d1, d2, d12 := file(KindData, 0, 0, 4), file(KindData, 0, 4, 9), file(KindData, 0, 0, 9)
	s1, s12 := file(KindSenders, 0, 0, 4), file(KindSenders, 0, 0, 9)
	f1, f2 := file(KindFrames, 1, 2, 6), file(KindFrames, 3, 4, 9)
	i1, i2, i12 := file(KindIndex, 0, 0, 4), file(KindIndex, 0, 4, 9), file(KindIndex, 1, 0, 9)

	sessions := []func(e *Engine) error{
		func(e *Engine) error {
			if err := commit(e, []modelFile{d1, s1, i1, f1}, nil); err != nil {
				return err
			}
			if err := commit(e, []modelFile{d2, i2, f2}, nil); err != nil {
				return err
			}
			return commitHot(e, nil, nil, HotEdit{Apply: []NewBlock{h9.edit(), fork.edit()}, Attested: &fork.BlockRef},
				modelHot{blocks: []modelBlock{h9, fork}, attested: fork.BlockRef})
		},
		func(e *Engine) error {
			held = pin{snapshot: e.Acquire(), files: live}
			if err := commit(e, []modelFile{i12}, []modelFile{i1, i2}); err != nil {
				return err
			}
			if err := commit(e, []modelFile{d12, s12}, []modelFile{d1, d2, s1, f1}); err != nil {
				return err
			}
			if err := e.reap(); err != nil {
				return err
			}
			held.snapshot.Release()
			held = pin{}
			if err := e.reap(); err != nil {
				return err
			}
			branch := HotEdit{Undo: []chain.BlockRef{fork.BlockRef}, Apply: []NewBlock{h10.edit(), h11.edit()}, Finalized: &h9.BlockRef}
			next := modelHot{blocks: []modelBlock{h9, h10, h11}, attested: h9.BlockRef, finalized: h9.BlockRef}
			if err := commitHot(e, nil, nil, branch, next); err != nil {
				return err
			}
			next.blocks = nil
			return commitHot(e, []modelFile{file(KindData, 0, 9, 12)}, nil, HotEdit{EvictTo: 12}, next)
		},
	}
	for _, session := range sessions {
		e, err := Open(testOptions(s.fs))
		if err != nil {
			return err
		}
		if err := session(e); err != nil {
			if s.broken != nil {
				s.broken(e, held)
			}
			_ = e.Close()
			return err
		}
		if err := e.Close(); err != nil {
			return err
		}
	}
	return nil
}

func containsFile(list []modelFile, f modelFile) bool {
	for _, g := range list {
		if f == g {
			return true
		}
	}
	return false
}

// scriptLength counts the operations of the undisturbed script.
func scriptLength(t *testing.T) int {
	t.Helper()
	m := crashfs.New(vfs.NewCrashableMem(), nil)
	nothing := func([]modelFile) {}
	if err := (&script{fs: m.FS(), ack: nothing, doubt: nothing}).run(); err != nil {
		t.Fatal(err)
	}
	return m.Count()
}

// verifyReopened opens the store on what a disturbance left and compares.
func verifyReopened(t *testing.T, disk vfs.FS, s *script, acknowledged, inDoubt []modelFile) {
	t.Helper()
	e, err := Open(testOptions(disk))
	if err != nil {
		t.Fatalf("reopen: %v", err)
	}
	defer mustClose(t, e)
	got, err := readFiles(e)
	if err != nil {
		t.Fatal(err)
	}
	if !sameFiles(got, acknowledged) && !sameFiles(got, inDoubt) {
		t.Errorf("got %v\nacknowledged %v\nin doubt %v", describe(got), describe(acknowledged), describe(inDoubt))
	}
	hot, err := readHot(e)
	if err != nil {
		t.Fatal(err)
	}
	before := sameFiles(got, acknowledged) && hot.same(&s.hot)
	if after := sameFiles(got, inDoubt) && hot.same(&s.hotDoubt); !before && !after {
		t.Errorf("got recent blocks %v\nacknowledged %v\nin doubt %v", &hot, &s.hot, &s.hotDoubt)
	}
	if report := mustCheck(t, e); len(report.Waiting) > 0 {
		t.Errorf("leaked files: %v", report.Waiting)
	}
	if q := e.Recovery().Quarantined; len(q) > 0 {
		t.Errorf("own files were quarantined: %v", q)
	}
}

// TestCrashAtEveryOperation crashes the scripted history at every single operation, creation
// of the store included, with none, half and all of the unsynced data surviving.
//
// STO-002 STO-015
func TestCrashAtEveryOperation(t *testing.T) {
	n := scriptLength(t)
	for _, percent := range []int{0, 50, 100} {
		for at := 0; at < n; at++ {
			m := crashfs.New(vfs.NewCrashableMem(), rand.New(rand.NewPCG(uint64(at), uint64(percent))))
			m.StopAt, m.Percent = at, percent
			var acknowledged, inDoubt []modelFile
			s := &script{
				fs:    m.FS(),
				ack:   func(files []modelFile) { acknowledged = files },
				doubt: func(files []modelFile) { inDoubt = files },
			}
			_ = s.run()
			verifyReopened(t, m.Crash(), s, acknowledged, inDoubt)
			if t.Failed() {
				t.Fatalf("%s, %d%% of unsynced data survive", m, percent)
			}
		}
	}
}

// passedBefore is how many changes of other goroutines of Pebble may be on their way to the disk, behind the
// guard, while one fails: closing flushes, rotates the log and deletes at once.
const passedBefore = 2

// TestErrorAtEveryOperation fails every single operation of the scripted history once. The
// store must refuse every change afterwards, try none on the disk, serve the snapshots that
// are held, and recover at the next open, whether or not the machine lost power then.
//
// STO-024
func TestErrorAtEveryOperation(t *testing.T) {
	n := scriptLength(t)
	sticky := 0
	for at := 0; at < n; at++ {
		disk := vfs.NewCrashableMem()
		m := crashfs.New(disk, nil)
		m.StopAt = at
		m.Inject = func(string) error { return errInjected }
		var acknowledged, inDoubt []modelFile
		tried := 0
		s := &script{
			fs:    m.FS(),
			ack:   func(files []modelFile) { acknowledged = files },
			doubt: func(files []modelFile) { inDoubt = files },
			broken: func(e *Engine, held pin) {
				sticky++
				tried = len(m.After()) // by others, while the failure made its way
				verifyFailed(t, e, held, acknowledged)
			},
		}
		err := s.run()
		if !m.Stopped() {
			break // background work made this run shorter
		}
		var failed *FailedError
		if !errors.As(err, &failed) || !errors.Is(err, errInjected) {
			t.Errorf("got %v, want the injected failure", err)
		}
		if after := m.After(); len(after) > tried+passedBefore {
			t.Errorf("changes after the failure: %v", after[tried:])
		}
		verifyReopened(t, disk.CrashClone(vfs.CrashCloneCfg{}), s, acknowledged, inDoubt)
		verifyReopened(t, disk, s, acknowledged, inDoubt)
		if t.Failed() {
			t.Fatalf("error at %s", m)
		}
	}
	if sticky < 50 {
		t.Errorf("only %d operations failed in an open store: the script is too short", sticky)
	}
}

// verifyFailed proves that a failed store refuses changes and serves reads.
func verifyFailed(t *testing.T, e *Engine, held pin, acknowledged []modelFile) {
	t.Helper()
	if err := e.Err(); !errors.Is(err, errInjected) {
		t.Errorf("status: got %v", err)
	}
	if _, err := e.NewFile(KindData); !errors.Is(err, errInjected) {
		t.Errorf("begin a file in a failed store: %v", err)
	}
	edit := Edit{Remove: []*FileRow{{Kind: KindData, From: 1}}}
	if err := e.Commit(context.Background(), edit); !errors.Is(err, errInjected) {
		t.Errorf("commit in a failed store: %v", err)
	}
	if got, err := readFiles(e); err != nil || !sameFiles(got, acknowledged) {
		t.Errorf("read of a failed store: got %v, %v want %v", describe(got), err, describe(acknowledged))
	}
	if held.snapshot != nil {
		if got, err := snapshotFiles(held.snapshot); err != nil || !sameFiles(got, held.files) {
			t.Errorf("held snapshot of a failed store: got %v, %v want %v", describe(got), err, describe(held.files))
		}
		held.snapshot.Release()
	}
	// The database can still be read.
	if err := e.ScanKeys(context.Background(), nil, func([]byte, int) error { return nil }); err != nil {
		t.Errorf("scan keys of a failed store: %v", err)
	}
	if _, err := e.Check(context.Background(), CheckOptions{}); !errors.Is(err, errInjected) {
		t.Errorf("check of a failed store: %v", err)
	}
}
