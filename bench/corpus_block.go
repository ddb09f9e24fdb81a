package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/leani-go/leani/chain"
)

// transactionBytes is the size of the placeholders for transactions.
const transactionBytes = 8

// corpusBlock is a block with the memory that it points into.
type corpusBlock struct {
	chain.Block
	sketch    blockSketch
	random    rand.PCG
	addresses []common.Address
	topics    []common.Hash
	bytes     []byte
}

// header makes the header of block n.
func (c *Corpus) header(n uint64, parent common.Hash) ([]byte, chain.BlockRef, error) {
	x := scramble(c.Seed ^ n<<8)
	root := func(i uint64) (h common.Hash) {
		for k := range uint64(4) {
			binary.BigEndian.PutUint64(h[8*k:], scramble(x+4*i+k))
		}
		return h
	}
	zero, beacon, requests, withdrawals := uint64(0), root(4), root(5), types.EmptyWithdrawalsHash
	h := types.Header{
		ParentHash: parent, UncleHash: types.EmptyUncleHash, Coinbase: c.address(uint64(wordHolder), n%300),
		Root: root(0), TxHash: root(1), ReceiptHash: root(2), Difficulty: new(big.Int), Number: new(big.Int).SetUint64(n),
		GasLimit: 36_000_000, GasUsed: 18_000_000, Time: 1_700_000_000 + 12*n, Extra: []byte("corpus"), MixDigest: root(3),
		BaseFee: big.NewInt(1_000_000_000), WithdrawalsHash: &withdrawals, BlobGasUsed: &zero, ExcessBlobGas: &zero,
		ParentBeaconRoot: &beacon, RequestsHash: &requests,
	}
	text, err := rlp.EncodeToBytes(&h)
	if err != nil {
		return nil, chain.BlockRef{}, fmt.Errorf("header of block %d: %w", n, err)
	}
	return text, chain.BlockRef{Number: n, Hash: crypto.Keccak256Hash(text), ParentHash: parent, Timestamp: h.Time}, nil
}

var emptyList = []byte{0xc0}

// block makes block n after its parent in b, whose memory it reuses.
func (c *Corpus) block(n uint64, parent common.Hash, b *corpusBlock) error {
	b.Reset()
	var err error
	if b.Header, b.BlockRef, err = c.header(n, parent); err != nil {
		return err
	}
	b.Ommers, b.Withdrawals, b.HasReceipts = emptyList, emptyList, true
	c.sketch(n, &b.sketch)
	b.random.Seed(c.Seed, 2*n+1)
	logs := b.sketch.logs
	b.reserve(len(logs), len(b.sketch.failed))
	at, gas := 0, uint64(0)
	for i, failed := range b.sketch.failed {
		for ; at < len(logs) && int(logs[at].transaction) == i; at++ {
			b.Logs = append(b.Logs, c.log(&logs[at], b))
		}
		b.bytes = binary.BigEndian.AppendUint64(b.bytes, b.random.Uint64()|1<<63)
		b.Transactions = append(b.Transactions, b.bytes[len(b.bytes)-transactionBytes:len(b.bytes):len(b.bytes)])
		var hash common.Hash
		for k := 0; k < len(hash); k += 8 {
			binary.LittleEndian.PutUint64(hash[k:], b.random.Uint64())
		}
		b.TransactionHashes = append(b.TransactionHashes, hash)
		gas += 21_000 + b.random.Uint64()>>47
		r := chain.Receipt{Type: types.DynamicFeeTxType, Status: 1, CumulativeGasUsed: gas, LogsEnd: uint32(at)}
		if failed {
			r.Status = 0
		}
		b.Receipts = append(b.Receipts, r)
	}
	return nil
}

// reserve makes room, so that what is pointed to does not move.
func (b *corpusBlock) reserve(logs, transactions int) {
	if cap(b.addresses) < logs {
		b.addresses = make([]common.Address, 0, 2*logs)
		b.topics = make([]common.Hash, 0, 2*logs*(chain.MaximumTopics-1))
	}
	if size := logs*dataBytes[eventSwap] + transactions*transactionBytes; cap(b.bytes) < size {
		b.bytes = make([]byte, 0, 2*size)
	}
	b.addresses, b.topics, b.bytes = b.addresses[:0], b.topics[:0], b.bytes[:0]
}

// log makes the log of a sketch.
func (c *Corpus) log(s *sketch, b *corpusBlock) (l chain.Log) {
	if s.contract < firstRare {
		l.Address = &c.fixed[s.contract]
	} else {
		b.addresses = append(b.addresses, c.contractAddress(s.contract))
		l.Address = &b.addresses[len(b.addresses)-1]
	}
	if s.event != eventAnonymous {
		l.Topics[0], l.NumTopics = &c.signatures[s.event], 1
	}
	for _, w := range s.words {
		if w == wordAbsent {
			break
		}
		b.topics = append(b.topics, c.topic(w))
		l.Topics[l.NumTopics] = &b.topics[len(b.topics)-1]
		l.NumTopics++
	}
	start := len(b.bytes)
	for range dataBytes[s.event] / 32 {
		b.amount()
	}
	if s.event == eventAnonymous {
		b.bytes = b.bytes[:len(b.bytes)-int(b.random.Uint64()%33)]
	}
	l.Data = b.bytes[start:len(b.bytes):len(b.bytes)]
	return l
}

var powersOfTen = [12]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11}

// amount appends a word that is a round number of 9 to 20 decimal digits, as amounts of tokens are.
func (b *corpusBlock) amount() {
	r := b.random.Uint64()
	hi, lo := bits.Mul64(1+r>>34, powersOfTen[r%uint64(len(powersOfTen))])
	b.bytes = append(b.bytes, make([]byte, 16)...)
	b.bytes = binary.BigEndian.AppendUint64(b.bytes, hi)
	b.bytes = binary.BigEndian.AppendUint64(b.bytes, lo)
}

// corpusAhead is the number of blocks in memory: one with the caller, the others made meanwhile.
const corpusAhead = 8

// Each makes all blocks in order and hands them over. A block is valid until yield returns. It ends
// with the first error of yield, or with the context's.
func (c *Corpus) Each(ctx context.Context, yield func(*chain.Block) error) error {
	ctx, stop := context.WithCancel(ctx)
	free := make(chan *corpusBlock, corpusAhead)
	ready := make(chan *corpusBlock, corpusAhead)
	for range corpusAhead {
		free <- new(corpusBlock)
	}
	var maker sync.WaitGroup
	var failure error
	maker.Go(func() {
		defer close(ready)
		var parent common.Hash
		for n := range c.Blocks {
			var b *corpusBlock
			select {
			case b = <-free:
			case <-ctx.Done():
				failure = ctx.Err()
				return
			}
			if failure = c.block(n, parent, b); failure != nil {
				return
			}
			parent = b.Hash
			ready <- b // has room for all
		}
	})
	defer maker.Wait()
	defer stop()
	for b := range ready {
		if err := yield(&b.Block); err != nil {
			return err
		}
		free <- b
	}
	return failure
}

// Hashes gives the hashes of the wanted blocks, which must ascend.
func (c *Corpus) Hashes(wanted []uint64) ([]common.Hash, error) {
	var parent common.Hash
	var out []common.Hash
	for n := uint64(0); len(out) < len(wanted); n++ {
		_, ref, err := c.header(n, parent)
		if err != nil {
			return nil, err
		}
		if n == wanted[len(out)] {
			out = append(out, ref.Hash)
		}
		parent = ref.Hash
	}
	return out, nil
}

// WriteTo writes the corpus to a store that does not hold it yet.
func (c *Corpus) WriteTo(ctx context.Context, s *Store, progress func(blocks uint64)) error {
	w := s.History.NewWriter(ctx, nil)
	err := c.Each(ctx, func(b *chain.Block) error {
		if err := w.Add(b); err != nil {
			return err
		}
		if progress != nil {
			progress(b.Number + 1)
		}
		return nil
	})
	if closeErr := w.Close(err != nil); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("write corpus: %w", err)
	}
	return nil
}
