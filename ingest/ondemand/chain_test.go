package ondemand

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest"
	"github.com/leani-go/leani/ingest/era"
)

const (
	testBlocks  = 100
	testChainID = 1337
)

// testSender signs all transactions of the test chain.
var testKey = sync.OnceValue(func() *signer {
	key := must(crypto.ToECDSA(crypto.Keccak256([]byte("ingest/ondemand test key"))))
	return &signer{types.LatestSignerForChainID(big.NewInt(testChainID)), crypto.PubkeyToAddress(key.PublicKey), func(tx types.TxData) *types.Transaction {
		return must(types.SignNewTx(key, types.LatestSignerForChainID(big.NewInt(testChainID)), tx))
	}}
})

type signer struct {
	types.Signer
	address common.Address
	sign    func(types.TxData) *types.Transaction
}

// testChain is a chain whose blocks verify: block n has one transaction with one log, but every fifth has none. fork changes
// the blocks from a number on; 0 is the chain itself.
func testChain(fork uint64) []chain.Block {
	blocks := make([]chain.Block, testBlocks)
	var parent common.Hash
	for n := range blocks {
		blocks[n] = makeBlock(uint64(n), parent, fork > 0 && uint64(n) >= fork)
		parent = blocks[n].Hash
	}
	return blocks
}

var mainChain = sync.OnceValue(func() []chain.Block { return testChain(0) })

func makeBlock(number uint64, parent common.Hash, other bool) chain.Block {
	var b chain.Block
	var body types.Body
	var receipts types.Receipts
	header := &types.Header{ParentHash: parent, Number: new(big.Int).SetUint64(number), Time: 12 * number, Difficulty: big.NewInt(1)}
	if other {
		header.Extra = []byte("fork")
	}
	if number%5 != 0 {
		tx := testKey().sign(&types.LegacyTx{Nonce: number, Data: bytes.Repeat([]byte{byte(number)}, 100)})
		log := &types.Log{Address: common.Address{1}, Topics: []common.Hash{{2}}, Data: []byte{byte(number)}}
		receipt := &types.Receipt{Status: 1, CumulativeGasUsed: 21_000, Logs: []*types.Log{log}}
		receipt.Bloom = types.CreateBloom(receipt)
		body.Transactions, receipts, header.GasUsed = types.Transactions{tx}, types.Receipts{receipt}, 21_000
		b.Transactions = [][]byte{must(tx.MarshalBinary())}
		b.Receipts = []chain.Receipt{{Status: 1, CumulativeGasUsed: 21_000, LogsEnd: 1}}
		b.Logs = []chain.Log{{Address: &log.Address, Topics: [4]*common.Hash{&log.Topics[0]}, NumTopics: 1, Data: log.Data}}
	}
	made := types.NewBlock(header, &body, receipts, trie.NewStackTrie(nil)).Header()
	b.BlockRef = chain.BlockRef{Number: number, Hash: made.Hash(), ParentHash: parent, Timestamp: made.Time}
	b.Header, b.Ommers, b.HasReceipts = must(rlp.EncodeToBytes(made)), []byte{0xc0}, true
	return b
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// storedBytes is what fake files say that a block takes.
const storedBytes = 1000

// fakeSource has the blocks of a chain in files of ten, which exist on disk, empty, so that they have an identity.
type fakeSource struct {
	t      *testing.T
	dir    string
	blocks []chain.Block
	holds  chain.Range

	// What goes wrong; zero nothing.
	openError error
	planError error
	proof     map[uint64]error // of the file with the block
	read      func(ctx context.Context, n uint64) error
	change    func(b *chain.Block)
	// digest is what the list says of all files.
	digest [32]byte
	// opening, if set, is called while a file is opened.
	opening func(ctx context.Context) error

	mu                         sync.Mutex
	opens, plans, proofs, open int // guarded by mu
	running, most              int // reads at a time; guarded by mu
	ctx                        context.Context
}

func newFakeSource(t *testing.T, blocks []chain.Block) *fakeSource {
	s := &fakeSource{t: t, dir: t.TempDir(), blocks: blocks, holds: chain.Range{From: 0, To: testBlocks}, proof: make(map[uint64]error), ctx: context.Background()}
	t.Cleanup(func() { // after those who use it have been closed
		if s.open != 0 {
			t.Errorf("%d files are open", s.open)
		}
	})
	for from := uint64(0); from < testBlocks; from += 10 {
		if err := os.WriteFile(s.name(from), []byte("as proved"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *fakeSource) name(n uint64) string { return filepath.Join(s.dir, fmt.Sprintf("file-%d", n/10)) }

func (s *fakeSource) candidate(id string, priority int) ingest.Candidate {
	return ingest.Candidate{ID: id, Priority: priority, Open: func(ctx context.Context) (ingest.Source, error) {
		if s.openError != nil {
			return nil, s.openError
		}
		return s, nil
	}}
}

func (s *fakeSource) counts() (opens, proofs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opens, s.proofs
}

func (s *fakeSource) Plan(_ context.Context, r chain.Range) ([]ingest.Extent, error) {
	s.mu.Lock()
	s.plans++
	s.mu.Unlock()
	if s.planError != nil {
		return nil, s.planError
	}
	if !s.holds.Covers(r) {
		return nil, &era.HoleError{Folder: s.dir, Missing: []chain.Range{r}}
	}
	var extents []ingest.Extent
	for n := r.From; n < r.To; {
		to := min(r.To, n/10*10+10)
		extents = append(extents, ingest.Extent{File: s.name(n), Range: chain.Range{From: n, To: to}, Digest: s.digest})
		n = to
	}
	return extents, nil
}

func (s *fakeSource) Open(ctx context.Context, name string, _ ingest.Limits) (ingest.File, error) {
	if s.opening != nil {
		if err := s.opening(ctx); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opens++
	s.open++
	var number uint64
	if _, err := fmt.Sscanf(filepath.Base(name), "file-%d", &number); err != nil {
		return nil, err
	}
	return &fakeFile{source: s, blocks: chain.Range{From: number * 10, To: number*10 + 10}}, nil
}

type fakeFile struct {
	source *fakeSource
	blocks chain.Range
}

func (f *fakeFile) Range() chain.Range { return f.blocks }

func (f *fakeFile) Prove(context.Context) error {
	f.source.mu.Lock()
	defer f.source.mu.Unlock()
	f.source.proofs++
	for n, err := range f.source.proof {
		if f.blocks.Contains(n) {
			return err
		}
	}
	return nil
}

func (f *fakeFile) Size(uint64) (stored, decoded int64)  { return storedBytes, 2 * storedBytes }
func (f *fakeFile) Offset(n uint64, _ chain.Parts) int64 { return int64(n) }

func (f *fakeFile) Close() error {
	f.source.mu.Lock()
	defer f.source.mu.Unlock()
	f.source.open--
	return nil
}

func (f *fakeFile) ReadBlocks(r chain.Range, _ *era.Buffer, dst []chain.Block) (int, error) {
	s := f.source
	s.mu.Lock()
	s.running++
	s.most = max(s.most, s.running)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
	}()
	for i := range dst {
		n := r.From + uint64(i)
		if n >= r.To {
			return i, nil
		}
		if s.read != nil {
			if err := s.read(s.ctx, n); err != nil {
				return i, err
			}
		}
		b := s.blocks[n]
		b.Logs, b.Header, b.Transactions = slices.Clone(b.Logs), slices.Clone(b.Header), slices.Clone(b.Transactions)
		b.BlockRef, b.TransactionHashes = chain.BlockRef{Number: n}, nil
		if s.change != nil {
			s.change(&b)
		}
		dst[i] = b
	}
	return min(len(dst), int(r.Len())), nil
}

// collector is a Reader that keeps the names of blocks.
type collector struct {
	sources []string
	blocks  []chain.BlockRef
	senders int
	// take, if set, decides what becomes of a block.
	take func(b *chain.Block) error
}

func (c *collector) Begin(id string) {
	c.sources, c.blocks, c.senders = append(c.sources, id), nil, 0
}

func (c *collector) Block(b *chain.Block) error {
	if c.take != nil {
		if err := c.take(b); err != nil {
			return err
		}
	}
	c.blocks, c.senders = append(c.blocks, b.BlockRef), c.senders+len(b.Senders)
	for _, s := range b.Senders {
		if s != testKey().address {
			return errors.New("wrong sender")
		}
	}
	return nil
}

// is requires exactly the blocks of runs, of a chain.
func (c *collector) is(t *testing.T, blocks []chain.Block, runs ...chain.Range) {
	t.Helper()
	var want []chain.BlockRef
	for _, r := range runs {
		for n := r.From; n < r.To; n++ {
			want = append(want, blocks[n].BlockRef)
		}
	}
	if !slices.Equal(c.blocks, want) {
		t.Errorf("got %v\nwant %v", c.blocks, want)
	}
}
