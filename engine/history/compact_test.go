package history

import (
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
)

// rangesOf lists the ranges of the files of a kind.
func rangesOf(s *Store, kind engine.Kind) (out []chain.Range) {
	snap := s.Engine().Acquire()
	defer snap.Release()
	for _, r := range snap.Rows(kind) {
		out = append(out, r.Range())
	}
	return out
}

// A merge of crowded index files may end inside the window of a data file. Data files there are not
// packed until the index of a higher tier covers them, and then they are.
func TestRepackBesideACrowdedIndex(t *testing.T) {
	c := newModelChain(1, 0, 32)
	s := openStore(t, vfs.NewMem(), smallOptions(4))
	write(t, s, c.blocks[2:3])
	write(t, s, c.blocks[3:])
	st, err := s.Compact(t.Context())
	if err != nil || st.IndexMerges != 1 || st.Repacks != 0 {
		t.Fatalf("%+v %v", st, err)
	}
	if got := rangesOf(s, engine.KindIndex); len(got) != 1 || got[0] != (chain.Range{From: 2, To: 32}) {
		t.Fatalf("index files %v", got)
	}
	write(t, s, c.blocks[:2]) // completes the window of a data file, across the start of the index
	st, err = s.Compact(t.Context())
	if err != nil || st.IndexMerges != 1 || st.Repacks != 1 {
		t.Fatalf("%+v %v", st, err)
	}
	if got := rangesOf(s, engine.KindIndex); len(got) != 1 || got[0] != (chain.Range{From: 0, To: 32}) {
		t.Errorf("index files %v", got)
	}
	if got := rangesOf(s, engine.KindData); len(got) != 8 || got[0] != (chain.Range{From: 0, To: 4}) {
		t.Errorf("data files %v", got)
	}
	has := make([]bool, len(c.blocks))
	for i := range has {
		has[i] = true
	}
	if err := c.verifyAgainst(t.Context(), s, has); err != nil {
		t.Error(err)
	}
}

// Four index files over complete windows of data files are merged before their own window is full; the
// file of an incomplete window, whose data will be packed with what comes, is left alone.
func TestSettledIndexFilesAreMergedEarly(t *testing.T) {
	c := newModelChain(1, 0, 32)
	for _, k := range []struct {
		from, to int
		want     []chain.Range
	}{
		{0, 14, []chain.Range{{From: 0, To: 4}, {From: 4, To: 8}, {From: 8, To: 12}, {From: 12, To: 14}}},
		{0, 18, []chain.Range{{From: 0, To: 16}, {From: 16, To: 18}}},
		{2, 20, []chain.Range{{From: 2, To: 4}, {From: 4, To: 20}}},
		{0, 28, []chain.Range{{From: 0, To: 28}}},
		{0, 32, []chain.Range{{From: 0, To: 32}}},
	} {
		s := openStore(t, vfs.NewMem(), smallOptions(4))
		write(t, s, c.blocks[k.from:k.to])
		if _, err := s.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := rangesOf(s, engine.KindIndex); !slices.Equal(got, k.want) {
			t.Errorf("blocks [%d, %d): index files %v, want %v", k.from, k.to, got, k.want)
		}
		// Block by block it ends with no more files.
		s = openStore(t, vfs.NewMem(), smallOptions(4))
		for n := k.from; n < k.to; n += 4 - n%4 {
			write(t, s, c.blocks[n:min(n+4-n%4, k.to)])
			if _, err := s.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := rangesOf(s, engine.KindIndex); len(got) > 4 {
			t.Errorf("blocks [%d, %d), merged as they came: index files %v", k.from, k.to, got)
		}
	}
}
