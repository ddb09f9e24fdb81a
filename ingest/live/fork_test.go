package live

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/engine/history"
	"github.com/leani-go/leani/internal/chainfixture"
)

// lab is a store and a chain of valid blocks with branches.
type lab struct {
	store *history.Store
	base  []*chain.Block // of the conformance chain
}

// conformance is the chain of all labs, read once: it takes longer than the tests. It is only read, and no test of
// the package is parallel.
var conformance []*chainfixture.Block

func newLab(t *testing.T, recent history.RecentOptions) *lab {
	t.Helper()
	e, err := engine.Open(engine.Options{Dir: "store", FS: vfs.NewMem(), ChainID: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	l := &lab{store: history.New(e, history.Options{TargetBlocks: 8, CacheBytes: 1 << 20, Recent: recent})}
	if conformance == nil {
		conformance = chainfixture.ConformanceChain(t) // or skips the test
	}
	for _, b := range conformance {
		block := b.Block
		l.base = append(l.base, &block)
	}
	return l
}

// material is a block as a source gives it: without what verification fills in.
func material(b *chain.Block) *chain.Block {
	out := *b
	out.BlockRef = chain.BlockRef{}
	out.TransactionHashes, out.Senders = nil, nil
	return &out
}

// fork is a valid block with the content of b, another parent and a name in its extra data.
func fork(t *testing.T, b *chain.Block, parent common.Hash, name string) *chain.Block {
	t.Helper()
	var h types.Header
	if err := rlp.DecodeBytes(b.Header, &h); err != nil {
		t.Fatal(err)
	}
	h.ParentHash, h.Extra = parent, []byte(name)
	raw, err := rlp.EncodeToBytes(&h)
	if err != nil {
		t.Fatal(err)
	}
	out := *b
	out.Header = raw
	out.Hash, out.ParentHash = h.Hash(), parent
	return &out
}

// branch gives blocks from number from on, n of them, over parent.
func (l *lab) branch(t *testing.T, from, n int, parent common.Hash, name string) (out []*chain.Block) {
	for i := range n {
		b := fork(t, l.base[from+i], parent, name)
		out = append(out, b)
		parent = b.Hash
	}
	return out
}

// seal puts blocks into files.
func (l *lab) seal(t *testing.T, blocks []*chain.Block) {
	t.Helper()
	w := l.store.NewWriter(t.Context(), nil)
	for _, b := range blocks {
		if err := w.Add(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(false); err != nil {
		t.Fatal(err)
	}
}

// expect compares the newest blocks with those wanted, byte for byte, and their logs.
func (l *lab) expect(t *testing.T, want ...*chain.Block) {
	t.Helper()
	v, err := l.store.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	tip := want[len(want)-1]
	if head, ok := v.Head(); !ok || head != tip.Number || v.HeadHash() != tip.Hash {
		t.Fatalf("head: got %d %x want %s", head, v.HeadHash(), tip.BlockRef)
	}
	var b chain.Block
	for _, w := range want {
		if err := v.LoadBlock(t.Context(), w.Number, chain.PartsAll, &b); err != nil {
			t.Fatal(err)
		}
		if b.Hash != w.Hash || !bytes.Equal(b.Header, w.Header) || len(b.Logs) != len(w.Logs) || len(b.Transactions) != len(w.Transactions) {
			t.Errorf("block %s: got %s", w.BlockRef, b.BlockRef)
		}
		logs := 0
		err := v.Logs(t.Context(), chain.Range{From: w.Number, To: w.Number + 1}, &chain.LogFilter{}, func(f *chain.FoundLog) error {
			if f.Block.Hash != w.Hash {
				t.Errorf("log of block %s in %s", f.Block, w.BlockRef)
			}
			logs++
			return nil
		})
		if err != nil || logs != len(w.Logs) {
			t.Errorf("logs of block %s: got %d, %v want %d", w.BlockRef, logs, err, len(w.Logs))
		}
	}
}
