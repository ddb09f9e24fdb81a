package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/keys"
)

// STO-003
func TestIdentityIsFixedAtCreation(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, testOptions(fs))
	first := e.identity
	if first.epoch == [epochLength]byte{} || first.secret == [secretLength]byte{} {
		t.Error("epoch or secret is not random")
	}
	mustClose(t, e)

	e = mustOpen(t, testOptions(fs))
	if e.identity != first {
		t.Errorf("identity after reopen: got %+v want %+v", e.identity, first)
	}
	if e.ChainID() != testChain || e.FormatVersion() != formatVersion || e.Epoch() != first.epoch {
		t.Error("accessors differ from the identity")
	}
	mustClose(t, e)

	other := mustOpen(t, testOptions(vfs.NewMem()))
	defer mustClose(t, other)
	if other.identity.epoch == first.epoch || other.identity.secret == first.secret {
		t.Error("two stores share an epoch or a secret")
	}
}

// STO-019
func TestSecondOpenFailsAtOnce(t *testing.T) {
	for name, opts := range map[string]Options{
		"memory": testOptions(vfs.NewMem()),
		"disk":   {Dir: t.TempDir(), ChainID: testChain},
	} {
		t.Run(name, func(t *testing.T) {
			e := mustOpen(t, opts)
			for _, readOnly := range []bool{false, true} {
				second := opts
				second.ReadOnly = readOnly
				if _, err := Open(second); !errors.Is(err, ErrLocked) {
					t.Errorf("second open, read-only %v: got %v want ErrLocked", readOnly, err)
				}
			}
			mustClose(t, e)
			mustClose(t, mustOpen(t, opts))
		})
	}
}

// lockFailsFS refuses locks with an error.
type lockFailsFS struct {
	vfs.FS
	err error
}

func (f lockFailsFS) Lock(string) (io.Closer, error) { return nil, f.err }

// TestLockErrors tells a store that is in use from one whose lock cannot be asked for.
//
// STO-019
func TestLockErrors(t *testing.T) {
	for _, test := range []struct {
		err    error
		locked bool
	}{
		{syscall.EAGAIN, true},
		{syscall.EWOULDBLOCK, true},
		{syscall.EACCES, true},
		{syscall.ENOLCK, false},
		{syscall.ENOSYS, false},
		{syscall.EIO, false},
		{&os.PathError{Op: "open", Path: "LOCK", Err: syscall.EACCES}, false},
		{&os.PathError{Op: "open", Path: "LOCK", Err: syscall.EROFS}, false},
		{errors.New("file locking is not implemented"), false},
	} {
		opts := testOptions(vfs.NewMem())
		opts.FS = lockFailsFS{opts.FS, test.err}
		_, err := Open(opts)
		if errors.Is(err, ErrLocked) != test.locked || !errors.Is(err, test.err) {
			t.Errorf("%v: got %v, want locked %v", test.err, err, test.locked)
		}
		if !test.locked && !strings.Contains(err.Error(), "lock data directory: ") {
			t.Errorf("%v: got %v", test.err, err)
		}
	}
}

// TestSecondProcessFailsAtOnce opens the store of this process in another one.
//
// STO-019
func TestSecondProcessFailsAtOnce(t *testing.T) {
	const variable = "LEANI_TEST_OPEN_DIR"
	if dir := os.Getenv(variable); dir != "" {
		_, err := Open(Options{Dir: dir, ChainID: testChain})
		fmt.Printf("locked: %v\n", errors.Is(err, ErrLocked))
		os.Exit(0)
	}
	dir := t.TempDir()
	e := mustOpen(t, Options{Dir: dir, ChainID: testChain})
	defer mustClose(t, e)
	cmd := exec.Command(os.Args[0], "-test.run=^TestSecondProcessFailsAtOnce$")
	cmd.Env = append(os.Environ(), variable+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "locked: true") {
		t.Errorf("second process: %v\n%s", err, out)
	}
}

// STO-020
func TestNewerFormatIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	mustClose(t, mustOpen(t, testOptions(fs)))
	changeDatabase(t, fs, set(keys.Meta{Name: keys.MetaFormatVersion}, binary.BigEndian.AppendUint32(nil, formatVersion+1)))
	_, err := Open(testOptions(fs))
	var newer *NewerFormatError
	if !errors.As(err, &newer) || newer.Store != formatVersion+1 || newer.Supported != formatVersion {
		t.Errorf("got %v want NewerFormatError", err)
	}
}

func TestOtherChainIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	mustClose(t, mustOpen(t, testOptions(fs)))
	opts := testOptions(fs)
	opts.ChainID = 1
	var other *ChainError
	if _, err := Open(opts); !errors.As(err, &other) || other.Store != testChain || other.Want != 1 {
		t.Errorf("got %v want ChainError", err)
	}
	opts.ChainID = 0
	mustClose(t, mustOpen(t, opts))
}

func TestOpenWithoutStore(t *testing.T) {
	opts := testOptions(vfs.NewMem())
	opts.ReadOnly = true
	if _, err := Open(opts); !errors.Is(err, ErrNoStore) {
		t.Errorf("read-only open of nothing: got %v want ErrNoStore", err)
	}
	if err := opts.FS.MkdirAll(opts.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(opts); !errors.Is(err, ErrNoStore) {
		t.Errorf("read-only open of an empty directory: got %v want ErrNoStore", err)
	}
	opts.ReadOnly = false
	opts.ChainID = 0
	if _, err := Open(opts); err == nil {
		t.Error("a store without a chain is created")
	}
	opts.Dir = ""
	if _, err := Open(opts); err == nil {
		t.Error("a store without a directory is opened")
	}
}

func TestReadOnly(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, testOptions(fs))
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4))
	left := mustPending(t, e, KindData, 0, 4, 8).File.Path()
	_ = e.Close()

	opts := testOptions(fs)
	opts.ReadOnly = true
	e = mustOpen(t, opts)
	if got := e.Recovery().Unfinished; len(got) != 1 || got[0] != left {
		t.Errorf("unfinished files: got %v want %s", got, left)
	}
	if report := mustCheck(t, e); report.Files != 1 || len(report.Waiting) != 1 {
		t.Errorf("check: %+v", report)
	}
	if _, err := e.NewFile(KindData); !errors.Is(err, ErrReadOnly) {
		t.Errorf("begin: got %v", err)
	}
	if err := e.Commit(t.Context(), Edit{Remove: []*FileRow{rowAt(t, e, KindData, 0, 0)}}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("commit: got %v", err)
	}
	mustClose(t, e)
	if _, err := fs.Stat(left); err != nil {
		t.Errorf("a read-only open removed a file: %v", err)
	}
}

func TestRefusedEdits(t *testing.T) {
	e := mustOpen(t, testOptions(vfs.NewMem()))
	defer mustClose(t, e)
	mustCommit(t, e, nil,
		mustPending(t, e, KindData, 0, 10, 20), mustPending(t, e, KindData, 0, 20, 30), mustPending(t, e, KindSenders, 0, 10, 20),
		mustPending(t, e, KindIndex, 0, 10, 20), mustPending(t, e, KindIndex, 0, 20, 30))
	before, err := readFiles(e)
	if err != nil {
		t.Fatal(err)
	}
	data := rowAt(t, e, KindData, 0, 10)
	stale := *data
	stale.Generation++

	changed := func(n NewRow, change func(*FileRow)) NewRow {
		change(&n.Row)
		return n
	}
	pending := func(kind Kind, level uint8, from, to uint64) NewRow { return mustPending(t, e, kind, level, from, to) }
	for _, c := range []struct {
		name string
		edit Edit
		want error
	}{
		{"empty", Edit{}, ErrInvalidEdit},
		{"overlap", Edit{Add: []NewRow{pending(KindData, 0, 15, 25)}}, ErrInvalidEdit},
		{"overlap by one block", Edit{Add: []NewRow{pending(KindData, 0, 9, 11)}}, ErrInvalidEdit},
		{"same range", Edit{Add: []NewRow{pending(KindData, 0, 10, 20)}}, ErrInvalidEdit},
		{"two new files overlap", Edit{Add: []NewRow{pending(KindData, 0, 30, 35), pending(KindData, 0, 34, 36)}}, ErrInvalidEdit},
		{"parent does not link", Edit{Add: []NewRow{changed(pending(KindData, 0, 30, 35), func(r *FileRow) { r.ParentHash[0] ^= 1 })}}, ErrInvalidEdit},
		{"child does not link", Edit{Add: []NewRow{changed(pending(KindData, 0, 5, 10), func(r *FileRow) { r.LastHash[0] ^= 1 })}}, ErrInvalidEdit},
		{"empty range", Edit{Add: []NewRow{pending(KindData, 0, 40, 40)}}, ErrInvalidEdit},
		{"inverted range", Edit{Add: []NewRow{changed(pending(KindData, 0, 40, 41), func(r *FileRow) { r.To = 3 })}}, ErrInvalidEdit},
		{"number too high", Edit{Add: []NewRow{changed(pending(KindData, 0, 40, 41), func(r *FileRow) { r.To = 1 << 63 })}}, ErrInvalidEdit},
		{"profile", Edit{Add: []NewRow{changed(pending(KindData, 0, 40, 41), func(r *FileRow) { r.Profile = 1 })}}, ErrInvalidEdit},
		{"level of data", Edit{Add: []NewRow{pending(KindData, 1, 40, 41)}}, ErrInvalidEdit},
		{"senders of half a file", Edit{Add: []NewRow{pending(KindSenders, 0, 20, 25)}}, ErrInvalidEdit},
		{"senders of two files", Edit{Add: []NewRow{pending(KindSenders, 0, 10, 30)}}, ErrInvalidEdit},
		{"senders of nothing", Edit{Add: []NewRow{pending(KindSenders, 0, 50, 60)}}, ErrInvalidEdit},
		{"second senders", Edit{Add: []NewRow{pending(KindSenders, 0, 10, 20)}}, ErrInvalidEdit},
		{"index over half a file", Edit{Add: []NewRow{pending(KindIndex, 1, 10, 25)}}, ErrInvalidEdit},
		{"index from the middle", Edit{Add: []NewRow{pending(KindIndex, 1, 15, 30)}}, ErrInvalidEdit},
		{"index over a gap", Edit{Add: []NewRow{pending(KindIndex, 1, 10, 40)}}, ErrInvalidEdit},
		{"indexes of a level overlap", Edit{Add: []NewRow{pending(KindIndex, 0, 10, 30)}}, ErrInvalidEdit},
		{"data below an index", Edit{Remove: []*FileRow{data}}, ErrInvalidEdit},
		{"removed twice", Edit{Remove: []*FileRow{rowAt(t, e, KindSenders, 0, 10), rowAt(t, e, KindSenders, 0, 10)}}, ErrInvalidEdit},
		{"row without a file", Edit{Add: []NewRow{{Row: *data}}}, ErrInvalidEdit},
		{"empty file", Edit{Add: []NewRow{emptyFile(t, e)}}, ErrInvalidEdit},
		{"not live", Edit{Remove: []*FileRow{&stale}}, ErrStaleEdit},
		{"never existed", Edit{Remove: []*FileRow{{Kind: KindData, From: 77, Generation: 1}}}, ErrStaleEdit},
		{"kind never existed", Edit{Remove: []*FileRow{{Kind: 99}}}, ErrStaleEdit},
	} {
		if err := e.Commit(t.Context(), c.edit); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v want %v", c.name, err, c.want)
		}
		for _, a := range c.edit.Add {
			if a.File == nil {
				continue
			}
			if err := a.File.Abort(); err != nil {
				t.Errorf("%s: abort: %v", c.name, err)
			}
		}
	}
	after, err := readFiles(e)
	if err != nil {
		t.Fatal(err)
	}
	if !sameFiles(before, after) {
		t.Errorf("refused edits changed the store: got %v want %v", describe(after), describe(before))
	}
	if report := mustCheck(t, e); report.Generation != 1 || len(report.Waiting) > 0 {
		t.Errorf("refused edits left something: %+v", report)
	}
	if err := e.Err(); err != nil {
		t.Errorf("refused edits failed the store: %v", err)
	}
}

func emptyFile(t *testing.T, e *Engine) NewRow {
	t.Helper()
	p, err := e.NewFile(KindData)
	if err != nil {
		t.Fatal(err)
	}
	return NewRow{File: p, Row: newRow(KindData, 0, chain.Range{From: 40, To: 41}, nil)}
}

func TestPendingFileLife(t *testing.T) {
	e := mustOpen(t, testOptions(vfs.NewMem()))
	defer mustClose(t, e)

	refused := mustPending(t, e, KindSenders, 0, 0, 4)
	if err := e.Commit(t.Context(), Edit{Add: []NewRow{refused}}); !errors.Is(err, ErrInvalidEdit) {
		t.Fatalf("senders without data: %v", err)
	}
	if _, err := refused.File.Write([]byte("more")); err == nil {
		t.Error("a sealed file can be written")
	}
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4), refused) // valid together

	if err := refused.File.Abort(); err != nil {
		t.Errorf("abort after commit: %v", err)
	}
	if err := e.Commit(t.Context(), Edit{Add: []NewRow{refused}}); !errors.Is(err, ErrInvalidEdit) {
		t.Errorf("a file is committed twice: %v", err)
	}
	twice := mustPending(t, e, KindData, 0, 4, 8)
	if err := e.Commit(t.Context(), Edit{Add: []NewRow{twice, twice}}); !errors.Is(err, ErrInvalidEdit) {
		t.Errorf("a file is added twice: %v", err)
	}
	if err := twice.File.Abort(); err != nil {
		t.Error(err)
	}
	if err := twice.File.Abort(); err != nil {
		t.Errorf("second abort: %v", err)
	}

	other := mustOpen(t, testOptions(vfs.NewMem()))
	defer mustClose(t, other)
	foreign := mustPending(t, other, KindData, 0, 4, 8)
	if err := e.Commit(t.Context(), Edit{Add: []NewRow{foreign}}); !errors.Is(err, ErrInvalidEdit) {
		t.Errorf("a file of another store is committed: %v", err)
	}
	if err := foreign.File.Abort(); err != nil {
		t.Error(err)
	}
	if _, err := e.NewFile(0); err == nil {
		t.Error("a file of no kind is begun")
	}
	mustCheck(t, e)
}

func TestCommitObeysContext(t *testing.T) {
	e := mustOpen(t, testOptions(vfs.NewMem()))
	defer mustClose(t, e)
	row := mustPending(t, e, KindData, 0, 0, 4)

	if err := e.lockCommit(context.Background()); err != nil { // another commit is running
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- e.Commit(ctx, Edit{Add: []NewRow{row}}) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("waiting commit: got %v", err)
	}
	e.unlockCommit()
	if err := e.Commit(ctx, Edit{Add: []NewRow{row}}); !errors.Is(err, context.Canceled) {
		t.Errorf("commit with an ended context: got %v", err)
	}
	mustCommit(t, e, nil, row)
}

func TestCloseReportsWhatIsInUse(t *testing.T) {
	e := mustOpen(t, testOptions(vfs.NewMem()))
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4))
	s := e.Acquire()
	f, err := s.Open(s.Rows(KindData)[0])
	if err != nil {
		t.Fatal(err)
	}
	p := mustPending(t, e, KindData, 0, 4, 8)
	err = e.Close()
	if err == nil || !strings.Contains(err.Error(), "1 snapshots") || !strings.Contains(err.Error(), "1 files") {
		t.Errorf("close: got %v", err)
	}
	if _, err := readAll(f); err != nil {
		t.Errorf("an open file must stay readable: %v", err)
	}
	_ = f.Close()
	if _, err := s.Open(s.Rows(KindData)[0]); !errors.Is(err, ErrClosed) {
		t.Errorf("open after close: %v", err)
	}
	s.Release()
	if err := p.File.Abort(); err != nil {
		t.Errorf("abort after close: %v", err)
	}
	if err := e.Commit(t.Context(), Edit{Add: []NewRow{p}}); !errors.Is(err, ErrClosed) {
		t.Errorf("commit after close: %v", err)
	}
	if err := e.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("second close: %v", err)
	}
}

func TestLostDatabaseKeepsSegmentFiles(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, testOptions(fs))
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4)) // generation 1, as the next store's first commit
	l := e.layout
	mustClose(t, e)
	if err := fs.RemoveAll(l.database()); err != nil {
		t.Fatal(err)
	}
	var lost *LostCommitsError
	if _, err := Open(testOptions(fs)); !errors.As(err, &lost) || !lost.Empty {
		t.Errorf("open without the database: got %v", err)
	}
	if err := fs.Remove(l.generation()); err != nil { // nothing is left that says there was a store
		t.Fatal(err)
	}
	e = mustOpen(t, testOptions(fs))
	defer mustClose(t, e)
	if names, err := fs.List(l.quarantine()); err != nil || len(names) != 1 {
		t.Errorf("quarantine: got %v, %v want the file of the lost store", names, err)
	}
	mustCheck(t, e)
}

func TestInspect(t *testing.T) {
	e := mustOpen(t, testOptions(vfs.NewMem()))
	defer mustClose(t, e)
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4), mustPending(t, e, KindData, 0, 4, 8), mustPending(t, e, KindIndex, 0, 0, 8))
	held := e.Acquire()
	mustCommit(t, e, []*FileRow{rowAt(t, e, KindIndex, 0, 0)}, mustPending(t, e, KindIndex, 1, 0, 8))
	inv, err := e.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if inv.Generation != 2 || inv.Snapshots != 1 || inv.RetiredFiles != 1 || inv.RetiredBytes == 0 || inv.ChainID != testChain {
		t.Errorf("inventory: %+v", inv)
	}
	families := map[keys.Family]int{}
	for _, f := range inv.Families {
		families[f.Family] = f.Keys
	}
	want := map[keys.Family]int{keys.FamilyMeta: 5, keys.FamilySegment: 3, keys.FamilyRetired: 1, keys.FamilyRawCoverage: 4}
	if fmt.Sprint(families) != fmt.Sprint(want) {
		t.Errorf("families: got %v want %v", families, want)
	}
	if len(inv.Files) != 2 || inv.Files[0].Files != 2 || inv.Files[0].Blocks != 8 || inv.Files[1].Level != 1 {
		t.Errorf("files: %+v", inv.Files)
	}
	held.Release()
	if err := e.reap(); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 8, 9))
	n := 0
	if err := e.ScanKeys(t.Context(), []byte{byte(keys.FamilyRetired)}, func([]byte, int) error { n++; return nil }); err != nil || n != 0 {
		t.Errorf("tombstones after the next commit: got %d, %v want none", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Check(ctx, CheckOptions{File: checkContent}); !errors.Is(err, context.Canceled) {
		t.Errorf("check with an ended context: %v", err)
	}
}

// TestMemoryPerSegment bounds what a segment costs in memory: the row, rounded up to its
// allocation size, and a pointer.
func TestMemoryPerSegment(t *testing.T) {
	const sizeClass = 192 // runtime/sizeclasses.go: the class of 177 to 192 bytes
	if got := reflect.TypeFor[FileRow]().Size(); got > sizeClass {
		t.Errorf("row: got %d bytes want at most %d", got, sizeClass)
	}
	if total := sizeClass + reflect.TypeFor[*FileRow]().Size(); total > 200 {
		t.Errorf("a segment costs %d bytes of memory, the budget is 200", total)
	}
}

// TestRealFileSystem runs a short life on the file system of the machine.
func TestRealFileSystem(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "store")
	opts := Options{Dir: dir, ChainID: testChain}
	e := mustOpen(t, opts)
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4), mustPending(t, e, KindIndex, 0, 0, 4))
	mustCommit(t, e, []*FileRow{rowAt(t, e, KindIndex, 0, 0)}, mustPending(t, e, KindIndex, 1, 0, 4))
	_ = mustPending(t, e, KindData, 0, 4, 8)
	_ = e.Close()
	if err := os.WriteFile(filepath.Join(dir, "segments", "senders", "note"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	e = mustOpen(t, opts)
	if r := e.Recovery(); len(r.Unfinished) != 1 || len(r.Quarantined) != 1 {
		t.Errorf("recovery: %+v", r)
	}
	if report := mustCheck(t, e); report.Files != 2 || len(report.Waiting) > 0 {
		t.Errorf("check: %+v", report)
	}
	mustClose(t, e)
}
