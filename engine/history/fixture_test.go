package history

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
	"github.com/zeebo/blake3"
	"github.com/zeebo/xxh3"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/internal/chainmodel"
)

// The stores of these tests are small: data files of a few blocks and blocks of a few transactions, so
// that a history of a hundred blocks has everything that one of millions has.

const testDir = "store"

// modelRecoverer takes a digest of the transaction for its sender: the signatures of model blocks
// mean nothing, and recovering real ones would be most of what these tests do.
type modelRecoverer struct{}

func (modelRecoverer) Recover(transaction []byte) (a common.Address, err error) {
	sum := xxh3.Hash128(transaction).Bytes()
	copy(a[:], sum[:])
	return a, nil
}

// sendersOf are the senders that modelRecoverer finds in a block.
func sendersOf(b *chain.Block) []common.Address {
	out := make([]common.Address, len(b.Transactions))
	for i, tx := range b.Transactions {
		out[i], _ = modelRecoverer{}.Recover(tx)
	}
	return out
}

// smallOptions are for a store of small blocks.
func smallOptions(target uint64) Options {
	return Options{
		TargetBlocks: target, CacheBytes: 1 << 20, scanRows: 24, hotGroup: 3,
		newRecoverer: func() senderRecoverer { return modelRecoverer{} },
	}
}

// modelChain is a chain that a test knows.
type modelChain struct {
	model  *chainmodel.Model
	blocks []*chain.Block
	sums   []xxh3.Uint128 // content digests
	first  uint64
}

// newModelChain makes a chain of n small blocks from block first on.
func newModelChain(seed, first uint64, n int) *modelChain {
	c := &modelChain{model: chainmodel.New(seed, first), first: first}
	c.model.Transactions = 5
	var h xxh3.Hasher
	for range n {
		b := c.model.Block()
		c.blocks = append(c.blocks, b)
		c.sums = append(c.sums, blockDigest(&h, b))
	}
	return c
}

// end is the number one past the last block.
func (c *modelChain) end() uint64 { return c.first + uint64(len(c.blocks)) }

// at gives a block by number.
func (c *modelChain) at(n uint64) *chain.Block { return c.blocks[n-c.first] }

// slice gives the blocks of a range.
func (c *modelChain) slice(r chain.Range) []*chain.Block {
	return c.blocks[r.From-c.first : r.To-c.first]
}

// digest is what Store.Digest must say of a store that holds the blocks for which has is set.
func (c *modelChain) digest(has []bool) (d [32]byte) {
	// As the comment of contentDigest says it, with numbers of any size.
	sum := new(big.Int)
	for i, b := range c.blocks {
		if has[i] {
			in := binary.LittleEndian.AppendUint64(nil, b.Number)
			in = binary.LittleEndian.AppendUint64(in, c.sums[i].Lo)
			h := blake3.Sum256(binary.LittleEndian.AppendUint64(in, c.sums[i].Hi))
			slices.Reverse(h[:])
			sum.Add(sum, new(big.Int).SetBytes(h[:]))
		}
	}
	sum.Mod(sum, new(big.Int).Lsh(big.NewInt(1), 256)).FillBytes(d[:])
	return d
}

// coverage is what View.Coverage must say of such a store.
func (c *modelChain) coverage(has []bool) []chain.Range {
	runs := []chain.Range{}
	for i, ok := range has {
		n := c.first + uint64(i)
		switch last := len(runs) - 1; {
		case !ok:
		case last >= 0 && runs[last].To == n:
			runs[last].To++
		default:
			runs = append(runs, chain.Range{From: n, To: n + 1})
		}
	}
	return runs
}

// openSmall opens a store in memory; the caller closes its engine.
func openSmall(fs vfs.FS, openFiles int, opts Options) (*engine.Engine, *Store, error) {
	return openIn(testDir, fs, openFiles, opts)
}

func openIn(dir string, fs vfs.FS, openFiles int, opts Options) (*engine.Engine, *Store, error) {
	e, err := engine.Open(engine.Options{Dir: dir, FS: fs, ChainID: 1, CacheBytes: 1 << 20, OpenFiles: openFiles})
	if err != nil {
		return nil, nil, err
	}
	return e, New(e, opts), nil
}

// undisturbed is the digest of a store that is built from blocks in one go, in order.
func undisturbed(t testing.TB, blocks []*chain.Block) [32]byte {
	t.Helper()
	e, s, err := openSmall(vfs.NewMem(), 0, smallOptions(16))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	write(t, s, blocks)
	d, err := s.Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// sameBlock compares all that a block holds, senders excepted.
func sameBlock(got, want *chain.Block) error {
	switch {
	case got.BlockRef != want.BlockRef:
		return fmt.Errorf("reference: got %v want %v", got.BlockRef, want.BlockRef)
	case !bytes.Equal(got.Header, want.Header):
		return errors.New("header")
	case !bytes.Equal(got.Ommers, want.Ommers):
		return errors.New("ommers")
	case (got.Withdrawals == nil) != (want.Withdrawals == nil) || !bytes.Equal(got.Withdrawals, want.Withdrawals):
		return errors.New("withdrawals")
	case !slices.EqualFunc(got.Transactions, want.Transactions, bytes.Equal):
		return errors.New("transactions")
	case !slices.Equal(got.TransactionHashes, want.TransactionHashes):
		return errors.New("transaction hashes")
	case got.HasReceipts != want.HasReceipts || len(got.Receipts) != len(want.Receipts) || len(got.Logs) != len(want.Logs):
		return errors.New("number of receipts or logs")
	}
	for i := range want.Receipts {
		g, w := &got.Receipts[i], &want.Receipts[i]
		if g.Type != w.Type || g.Status != w.Status || (g.PostState == nil) != (w.PostState == nil) || !bytes.Equal(g.PostState, w.PostState) ||
			g.CumulativeGasUsed != w.CumulativeGasUsed || g.LogsEnd != w.LogsEnd {
			return fmt.Errorf("receipt %d", i)
		}
	}
	for i := range want.Logs {
		g, w := &got.Logs[i], &want.Logs[i]
		if *g.Address != *w.Address || g.NumTopics != w.NumTopics || !bytes.Equal(g.Data, w.Data) {
			return fmt.Errorf("log %d", i)
		}
		for k := range int(w.NumTopics) {
			if *g.Topics[k] != *w.Topics[k] {
				return fmt.Errorf("topic %d of log %d", k, i)
			}
		}
	}
	return nil
}

// modelProver proves that a block is, byte for byte, the one of the model.
type modelProver struct{ chain *modelChain }

func (p modelProver) Prove(b *chain.Block, number uint64, parent common.Hash) error {
	if number < p.chain.first || number >= p.chain.end() {
		return fmt.Errorf("block %d is none of the chain's", number)
	}
	want := p.chain.at(number)
	if parent != want.ParentHash {
		return fmt.Errorf("block %d: parent", number)
	}
	if err := sameBlock(b, want); err != nil {
		return fmt.Errorf("block %d: %w", number, err)
	}
	return nil
}

// query compares the logs of one random query over a range with those of the model, and the lookups of
// some of its blocks and transactions.
func (c *modelChain) query(ctx context.Context, v *View, m *chainmodel.Model, r chain.Range) error {
	f := randomFilter(m)
	if m.Rand.IntN(4) == 0 {
		f = &chain.LogFilter{}
	}
	next := logsOf(c.slice(r), f)
	err := v.Logs(ctx, r, f, func(got *chain.FoundLog) error {
		b, i, ok := next()
		if !ok {
			return fmt.Errorf("surplus log %d of block %d", got.LogIndex, got.Block.Number)
		}
		return sameLog(got, b, i)
	})
	if err != nil {
		return fmt.Errorf("logs of %v with %+v: %w", r, f, err)
	}
	if b, i, more := next(); more {
		return fmt.Errorf("logs of %v with %+v: log %d of block %d is missing", r, f, i, b.Number)
	}
	return nil
}

// logsOf gives the matching logs of blocks one after the other.
func logsOf(blocks []*chain.Block, f *chain.LogFilter) func() (*chain.Block, int, bool) {
	at, i := 0, 0
	return func() (*chain.Block, int, bool) {
		for ; at < len(blocks); at, i = at+1, 0 {
			for b := blocks[at]; i < len(b.Logs); i++ {
				if f.Match(&b.Logs[i]) {
					i++
					return b, i - 1, true
				}
			}
		}
		return nil, 0, false
	}
}

// lookUp compares a retained block, found by number, by hash and by one of its transactions.
func (c *modelChain) lookUp(ctx context.Context, v *View, m *chainmodel.Model, number uint64) error {
	want := c.at(number)
	var got chain.Block
	if err := v.LoadBlock(ctx, number, chain.PartsAll|chain.PartSenders, &got); err != nil {
		return fmt.Errorf("block %d: %w", number, err)
	}
	if err := sameBlock(&got, want); err != nil {
		return fmt.Errorf("block %d: %w", number, err)
	}
	if !slices.Equal(got.Senders, sendersOf(want)) {
		return fmt.Errorf("block %d: senders", number)
	}
	if n, ok, err := v.NumberByHash(want.Hash); n != number || !ok || err != nil {
		return fmt.Errorf("block %d by hash: got %d %v: %w", number, n, ok, err)
	}
	if len(want.Transactions) == 0 {
		return nil
	}
	i := m.Rand.IntN(len(want.Transactions))
	if n, at, ok, err := v.LocateTransaction(want.TransactionHashes[i]); n != number || int(at) != i || !ok || err != nil {
		return fmt.Errorf("transaction %d of block %d: got %d of %d, %v: %w", i, number, at, n, ok, err)
	}
	return nil
}

// verifyAgainst proves that a store holds exactly the blocks for which has is set: its two tiers agree,
// every byte is as written, every block is the model's, and every index lists what is there.
func (c *modelChain) verifyAgainst(ctx context.Context, s *Store, has []bool) error {
	report, err := s.Engine().Check(ctx, engine.CheckOptions{})
	if err != nil {
		return err
	}
	for _, p := range report.Problems {
		return fmt.Errorf("check: %s", p)
	}
	r, err := s.Verify(ctx, VerifyOptions{NewProver: func() Prover { return modelProver{c} }, Workers: 1})
	if err != nil {
		return err
	}
	if len(r.Problems) > 0 {
		return fmt.Errorf("verify: %w", errors.Join(r.Problems...))
	}
	v, err := s.View()
	if err != nil {
		return err
	}
	defer v.Close()
	if got, want := v.Coverage(), c.coverage(has); !slices.Equal(got, want) {
		return fmt.Errorf("coverage: got %v want %v", got, want)
	}
	want := c.digest(has)
	if r.Digest != want {
		return errors.New("the digest that Verify gives differs from the model's")
	}
	if got, err := s.Digest(ctx); err != nil || got != want {
		return fmt.Errorf("digest: got %x want %x: %w", got, want, err)
	}
	return nil
}

// check compares some random queries and look-ups of a view with the model, over what is retained and
// over what is not.
func (c *modelChain) check(ctx context.Context, v *View, m *chainmodel.Model, has []bool) error {
	runs := c.coverage(has)
	if head, ok := v.Head(); ok != (len(runs) > 0) || ok && (head != runs[len(runs)-1].To-1 || v.HeadHash() != c.at(head).Hash) {
		return fmt.Errorf("head: got %v %v, retained are %v", head, ok, runs)
	}
	for range 3 {
		from := c.first + uint64(m.Rand.IntN(len(c.blocks)))
		r := chain.Range{From: from, To: from + 1 + uint64(m.Rand.IntN(len(c.blocks)/2))}
		i := slices.IndexFunc(runs, func(run chain.Range) bool { return run.Contains(from) })
		switch {
		case i < 0:
			if err := c.absent(ctx, v, r, from, has); err != nil {
				return err
			}
			continue
		case m.Rand.IntN(2) == 0:
			r.To = min(r.To, runs[i].To)
		}
		if r.To > runs[i].To {
			if err := c.absent(ctx, v, r, runs[i].To, has); err != nil {
				return err
			}
			r.To = runs[i].To
		}
		if err := c.query(ctx, v, m, r); err != nil {
			return err
		}
		if err := c.lookUp(ctx, v, m, from); err != nil {
			return err
		}
	}
	return nil
}

// absent proves that a query over a range is refused with its first run of blocks that are not retained,
// which begins at from, and that from is not found by other means.
func (c *modelChain) absent(ctx context.Context, v *View, r chain.Range, from uint64, has []bool) error {
	want := chain.Range{From: from, To: from + 1}
	for want.To < r.To && (want.To >= c.end() || !has[want.To-c.first]) {
		want.To++
	}
	err := v.Logs(ctx, r, &chain.LogFilter{}, func(*chain.FoundLog) error { return errors.New("it has an answer") })
	var missing *chain.NotRetainedError
	if !errors.As(err, &missing) || missing.Range != want {
		return fmt.Errorf("logs of %v: got %w, want %v to be missing", r, err, want)
	}
	if err := v.LoadBlock(ctx, from, chain.PartHeader, &chain.Block{}); !errors.Is(err, chain.ErrNotRetained) {
		return fmt.Errorf("block %d, which is not retained: %w", from, err)
	}
	if from >= c.end() {
		return nil
	}
	if n, ok, err := v.NumberByHash(c.at(from).Hash); ok || err != nil {
		return fmt.Errorf("block %d, which is not retained, by hash: %d %v: %w", from, n, ok, err)
	}
	if hashes := c.at(from).TransactionHashes; len(hashes) > 0 {
		if n, at, ok, err := v.LocateTransaction(hashes[0]); ok || err != nil {
			return fmt.Errorf("transaction of block %d, which is not retained: %d of %d %v: %w", from, at, n, ok, err)
		}
	}
	return nil
}
