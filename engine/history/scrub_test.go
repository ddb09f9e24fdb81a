package history

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/internal/corrupt"
)

// scrubOnce runs Scrub until it pauses after a pass and gives the time that it waited between pages.
func scrubOnce(t *testing.T, s *Store, opts ScrubOptions) (waited time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	opts.Pause = 1000 * time.Hour
	opts.sleep = func(_ context.Context, d time.Duration) {
		if d == opts.Pause {
			cancel()
			return
		}
		waited += d
	}
	if err := s.Scrub(ctx, opts); err != nil {
		t.Fatal(err)
	}
	return waited
}

// flip changes a byte in the middle of a file.
func flip(t *testing.T, fs *vfs.MemFS, row *engine.FileRow) {
	t.Helper()
	content, err := fs.UnsafeGetFileDataBuffer(fs.PathJoin("d", "segments", row.String()))
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
}

// A pass reads every byte of every file at the rate that it is given, and finds each damaged file once.
func TestScrub(t *testing.T) {
	c := newModelChain(12, 0, 64)
	fs := vfs.NewMem()
	s := openStore(t, fs, smallOptions(8))
	write(t, s, c.blocks)
	if err := s.FillSenders(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	found := map[*engine.FileRow]int{}
	opts := ScrubOptions{BytesPerSecond: 1000, OnFinding: func(row *engine.FileRow, err error) {
		if !corrupt.Is(err) {
			t.Errorf("%s: %v", row, err)
		}
		found[row]++
	}}
	waited := scrubOnce(t, s, opts)
	st := s.ScrubStatus()
	if st.Passes != 1 || st.Files != 24 || st.Findings != 0 || len(found) != 0 {
		t.Errorf("%+v", st)
	}
	if size := uint64(s.Bytes()); st.Bytes > size || st.Bytes < size*9/10 {
		t.Errorf("%d bytes of %d were read", st.Bytes, size)
	}
	if want := time.Duration(st.Bytes) * time.Millisecond; (waited - want).Abs() > 10*time.Millisecond {
		t.Errorf("waited %v for %d bytes", waited, st.Bytes)
	}
	snap := s.Engine().Acquire()
	damaged := []*engine.FileRow{snap.Rows(engine.KindData)[3], snap.Rows(engine.KindIndex)[5], snap.Rows(engine.KindSenders)[0]}
	snap.Release()
	for _, row := range damaged {
		flip(t, fs, row)
	}
	scrubOnce(t, s, opts)
	if st := s.ScrubStatus(); st.Passes != 2 || st.Files != 48 || st.Findings != 3 || len(found) != 3 {
		t.Errorf("%+v, found %v", st, found)
	}
	for _, row := range damaged {
		if found[row] != 1 {
			t.Errorf("%s was not found", row)
		}
	}
	// What was found is left out of merges, which would fail on it.
	if st, err := s.Compact(t.Context()); err != nil || len(st.Problems) > 0 {
		t.Errorf("compact: %+v %v", st, err)
	}
}

// A range is verified by itself, and stored senders are compared with recovered ones.
func TestVerifyRangeAndSenders(t *testing.T) {
	c := newModelChain(13, 0, 64)
	fs := vfs.NewMem()
	s := openStore(t, fs, smallOptions(8))
	write(t, s, c.blocks)
	if err := s.FillSenders(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	snap := s.Engine().Acquire()
	defer snap.Release()
	verify := func(from, to uint64) VerifyReport {
		t.Helper()
		r, err := s.Verify(t.Context(), VerifyOptions{
			NewProver: func() Prover { return modelProver{c} }, Blocks: chain.Range{From: from, To: to}, Senders: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, r := range [][2]uint64{{0, 64}, {3, 5}, {7, 9}, {63, 64}, {8, 16}, {10, 200}} {
		got := verify(r[0], r[1])
		want := min(r[1], 64) - r[0]
		if len(got.Problems) > 0 || got.Blocks != want || got.DataFiles != int((min(r[1], 64)-1)/8-r[0]/8+1) {
			t.Errorf("%v: %+v", r, got)
		}
		has := make([]bool, 64)
		for i := range has {
			has[i] = uint64(i) >= r[0] && uint64(i) < r[1]
		}
		if got.Digest != c.digest(has) {
			t.Errorf("%v: digest", r)
		}
	}
	// Damage outside of the range is not its matter.
	flip(t, fs, snap.Rows(engine.KindData)[3])
	if got := verify(0, 24); len(got.Problems) > 0 {
		t.Errorf("%v", got.Problems)
	}
	if got := verify(24, 25); len(got.Problems) != 1 || !corrupt.Is(got.Problems[0]) {
		t.Errorf("%v", got.Problems)
	}
	// Another recovery: every file with transactions has a wrong sender.
	other := smallOptions(8)
	other.newRecoverer = func() senderRecoverer { return otherRecoverer{} }
	r, err := New(s.Engine(), other).Verify(t.Context(), VerifyOptions{Blocks: chain.Range{From: 32, To: 64}, Senders: true})
	if err != nil || len(r.Problems) != 4 || !slices.ContainsFunc(r.Problems, corrupt.Is) {
		t.Errorf("%v %v", r.Problems, err)
	}
}

// otherRecoverer finds senders that nobody else finds.
type otherRecoverer struct{ modelRecoverer }

func (o otherRecoverer) Recover(transaction []byte) (common.Address, error) {
	a, err := o.modelRecoverer.Recover(transaction)
	a[0] ^= 1
	return a, err
}
