package history

import (
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
