package rpc

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/leani-go/leani/chain"
)

// fakeStore holds blocks in memory. Its blocks are valid; which of them it admits to holding is
// up to the test, and so are its failures.
type fakeStore struct {
	blocks    map[uint64]*chain.Block
	coverage  []chain.Range
	finalized *chain.BlockRef
	attested  *chain.BlockRef
	recent    chain.Range
	head      *uint64 // instead of the highest block of the coverage

	// Hooks; nil does nothing.
	onView func() error
	onLoad func(number uint64) error
	onCost func() (uint64, error)
	onLogs func(context.Context) error
	// swapHash makes Logs report another block hash than NumberByHash knew, as after a
	// replacement.
	swapHash bool

	views     atomic.Int64 // opened
	open      atomic.Int64 // not closed yet
	logsCalls atomic.Int64
}

type fakeView struct {
	s      *fakeStore
	closed atomic.Bool
	using  sync.Mutex // held during calls: a view belongs to one goroutine at a time
}

func (s *fakeStore) View() (View, error) {
	if s.onView != nil {
		if err := s.onView(); err != nil {
			return nil, err
		}
	}
	s.views.Add(1)
	s.open.Add(1)
	return &fakeView{s: s}, nil
}

func (v *fakeView) use() func() {
	if v.closed.Load() {
		panic("view used after Close")
	}
	if !v.using.TryLock() {
		panic("view used by two goroutines")
	}
	return v.using.Unlock
}

func (v *fakeView) Close() {
	if v.closed.Swap(true) {
		panic("view closed twice")
	}
	v.s.open.Add(-1)
}

func (v *fakeView) Head() (number uint64, ok bool) {
	defer v.use()()
	if v.s.head != nil {
		return *v.s.head, true
	}
	if len(v.s.coverage) == 0 {
		return 0, false
	}
	return v.s.coverage[len(v.s.coverage)-1].To - 1, true
}

func (v *fakeView) Finalized() (chain.BlockRef, bool) {
	defer v.use()()
	if v.s.finalized == nil {
		return chain.BlockRef{}, false
	}
	return *v.s.finalized, true
}

func (v *fakeView) Attested() (chain.BlockRef, bool) {
	defer v.use()()
	if v.s.attested == nil {
		return chain.BlockRef{}, false
	}
	return *v.s.attested, true
}

func (v *fakeView) Recent() chain.Range {
	defer v.use()()
	return v.s.recent
}

func (v *fakeView) Coverage() []chain.Range {
	defer v.use()()
	return v.s.coverage
}

func (s *fakeStore) holds(number uint64) bool {
	return slices.ContainsFunc(s.coverage, func(r chain.Range) bool { return r.Contains(number) })
}

func (v *fakeView) NumberByHash(hash common.Hash) (uint64, bool, error) {
	defer v.use()()
	for number, b := range v.s.blocks {
		if b.Hash == hash && v.s.holds(number) {
			return number, true, nil
		}
	}
	return 0, false, nil
}

func (v *fakeView) LocateTransaction(hash common.Hash) (uint64, uint32, bool, error) {
	defer v.use()()
	for number, b := range v.s.blocks {
		for i, h := range b.TransactionHashes {
			if h == hash && v.s.holds(number) {
				return number, uint32(i), true, nil
			}
		}
	}
	return 0, 0, false, nil
}

func (v *fakeView) LoadTransaction(ctx context.Context, number uint64, _ uint32, parts chain.Parts, dst *chain.Block) error {
	return v.LoadBlock(ctx, number, parts, dst)
}

func (v *fakeView) LoadBlock(ctx context.Context, number uint64, parts chain.Parts, dst *chain.Block) error {
	defer v.use()()
	if v.s.onLoad != nil {
		if err := v.s.onLoad(number); err != nil {
			return err
		}
	}
	if !v.s.holds(number) {
		return fmt.Errorf("fake store: %w", &chain.NotRetainedError{Range: chain.Range{From: number, To: number + 1}})
	}
	src := v.s.blocks[number]
	dst.Reset()
	dst.BlockRef = src.BlockRef
	if parts&chain.PartHeader != 0 {
		dst.Header = src.Header
	} else if !v.s.recent.Contains(number) { // as files do
		dst.ParentHash = common.Hash{}
	}
	if parts&chain.PartTransactions != 0 {
		dst.Transactions = append(dst.Transactions, src.Transactions...)
	}
	if parts&chain.PartTransactionHashes != 0 {
		dst.TransactionHashes = append(dst.TransactionHashes, src.TransactionHashes...)
	}
	if parts&chain.PartSenders != 0 {
		dst.Senders = append(dst.Senders, src.Senders...)
	}
	if parts&chain.PartOmmers != 0 {
		dst.Ommers = src.Ommers
	}
	if parts&chain.PartWithdrawals != 0 {
		dst.Withdrawals = src.Withdrawals
	}
	if parts&chain.PartReceipts != 0 {
		dst.HasReceipts = src.HasReceipts
		dst.Receipts = append(dst.Receipts, src.Receipts...)
		dst.Logs = append(dst.Logs, src.Logs...)
	}
	return ctx.Err()
}

func (v *fakeView) LogsCost(_ context.Context, r chain.Range, f *chain.LogFilter) (uint64, error) {
	defer v.use()()
	if v.s.onCost != nil {
		return v.s.onCost()
	}
	return r.Len(), nil
}

func (v *fakeView) Logs(ctx context.Context, r chain.Range, f *chain.LogFilter, yield func(*chain.FoundLog) error) error {
	defer v.use()()
	v.s.logsCalls.Add(1)
	if v.s.onLogs != nil {
		if err := v.s.onLogs(ctx); err != nil {
			return err
		}
	}
	var found chain.FoundLog
	for number := r.From; number < r.To; number++ {
		if !v.s.holds(number) {
			return &chain.NotRetainedError{Range: chain.Range{From: number, To: number + 1}}
		}
		b := v.s.blocks[number]
		ref := b.BlockRef
		if v.s.swapHash {
			ref.Hash[0] ^= 0xff
		}
		for t := range b.Receipts {
			start := 0
			if t > 0 {
				start = int(b.Receipts[t-1].LogsEnd)
			}
			for i := start; i < int(b.Receipts[t].LogsEnd); i++ {
				if !f.Match(&b.Logs[i]) {
					continue
				}
				found = chain.FoundLog{
					Log: b.Logs[i], Block: &ref, TransactionHash: &b.TransactionHashes[t],
					TransactionIndex: uint32(t), LogIndex: uint32(i),
				}
				if err := yield(&found); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Addresses and topics of the test chain.
var (
	tokenAddress = common.HexToAddress("0x00000000000000000000000000000000000000aa")
	quietAddress = common.HexToAddress("0x00000000000000000000000000000000000000bb")
	transferSig  = common.HexToHash("0x1111111111111111111111111111111111111111111111111111111111111111")
	holderTopic  = common.HexToHash("0x000000000000000000000000000000000000000000000000000000000000cafe")
)

// testNetwork is the chain of the tests; it has no fork schedule.
func testNetwork() *chain.Network { return chain.UnscheduledNetwork("test", 1337) }

// newFakeStore makes a valid chain of n blocks. Block b has b%4 transactions with two logs
// each: one transfer of the token with two topics and one log without topics of the quiet
// contract.
func newFakeStore(tb testing.TB, n int) *fakeStore {
	tb.Helper()
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("serve/rpc test key")))
	if err != nil {
		tb.Fatal(err)
	}
	sender := crypto.PubkeyToAddress(key.PublicKey)
	signer := types.LatestSignerForChainID(big.NewInt(1337))
	s := &fakeStore{blocks: make(map[uint64]*chain.Block)}
	var parent common.Hash
	nonce := uint64(0)
	for number := range uint64(n) {
		b := &chain.Block{HasReceipts: true, Ommers: []byte{0xc0}, Withdrawals: []byte{0xc0}}
		gas := uint64(0)
		for range number % 4 {
			tx, err := types.SignNewTx(key, signer, &types.DynamicFeeTx{
				ChainID: big.NewInt(1337), Nonce: nonce, Gas: 50_000, To: &tokenAddress,
				GasFeeCap: big.NewInt(20), GasTipCap: big.NewInt(1), Value: new(big.Int), Data: []byte{1, 2, 3},
			})
			if err != nil {
				tb.Fatal(err)
			}
			nonce++
			gas += 40_000
			envelope, err := tx.MarshalBinary()
			if err != nil {
				tb.Fatal(err)
			}
			b.Transactions = append(b.Transactions, envelope)
			b.TransactionHashes = append(b.TransactionHashes, tx.Hash())
			b.Senders = append(b.Senders, sender)
			b.Logs = append(b.Logs,
				chain.Log{
					Address: &tokenAddress, Topics: [4]*common.Hash{&transferSig, &holderTopic}, NumTopics: 2,
					Data: common.LeftPadBytes([]byte{byte(number)}, 32),
				},
				chain.Log{Address: &quietAddress})
			b.Receipts = append(b.Receipts, chain.Receipt{
				Type: types.DynamicFeeTxType, Status: 1, CumulativeGasUsed: gas, LogsEnd: uint32(len(b.Logs)),
			})
		}
		emptyRoot := types.EmptyWithdrawalsHash
		header := &types.Header{
			ParentHash: parent, Number: new(big.Int).SetUint64(number), Time: 1_700_000_000 + 12*number,
			Difficulty: new(big.Int), GasLimit: 30_000_000, GasUsed: gas, BaseFee: big.NewInt(7),
			UncleHash: types.EmptyUncleHash, TxHash: types.EmptyTxsHash, ReceiptHash: types.EmptyReceiptsHash,
			WithdrawalsHash: &emptyRoot, Extra: []byte("test"),
		}
		if b.Header, err = rlp.EncodeToBytes(header); err != nil {
			tb.Fatal(err)
		}
		b.BlockRef = chain.BlockRef{Number: number, Hash: header.Hash(), ParentHash: parent, Timestamp: header.Time}
		parent = b.Hash
		s.blocks[number] = b
	}
	if n > 0 {
		s.coverage = []chain.Range{{From: 0, To: uint64(n)}}
	}
	return s
}
