package ethjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/chainfixture"
)

// Blocks with full transactions equal go-ethereum's answers, from the raw encodings alone, and
// single transactions, headers and blocks with hashes are the same text in parts. RPC-102,
// RPC-103
func TestBlocksEqualGeth(t *testing.T) {
	for _, fixture := range answeredBlocks(t) {
		encoder := NewEncoder(fixture.network)
		transactions := 0
		for _, b := range fixture.blocks {
			subject := fmt.Sprintf("chain %d block %d", b.ChainID, b.Number)
			full, err := encoder.AppendBlock(nil, &b.Block, true)
			if err != nil {
				t.Errorf("%s: %v", subject, err)
				continue
			}
			got, want := full, []byte(b.Answer)
			if !b.Complete {
				missing := []string{"uncles", "withdrawals", "size"}
				got, want = without(t, got, missing...), without(t, want, missing...)
			}
			sameJSON(t, subject, got, want)

			// The hashes take the place of the transactions.
			text := full
			for i := range b.Transactions {
				one, err := encoder.AppendTransaction(nil, &b.Block, i)
				if err != nil {
					t.Errorf("%s transaction %d: %v", subject, i, err)
					continue
				}
				if !bytes.Contains(text, one) {
					t.Errorf("%s transaction %d alone differs from the one in the block: %s", subject, i, one)
				}
				text = bytes.Replace(text, one, fmt.Appendf(nil, "%q", b.TransactionHashes[i].Hex()), 1)
				transactions++
			}
			withHashes, err := encoder.AppendBlock(nil, &b.Block, false)
			if err != nil {
				t.Errorf("%s: %v", subject, err)
			}
			if !bytes.Equal(withHashes, text) {
				t.Errorf("%s with hashes: got %s, want %s", subject, withHashes, text)
			}

			head, err := encoder.AppendHeader(nil, &b.Block)
			if err != nil {
				t.Errorf("%s: header: %v", subject, err)
				continue
			}
			sameJSON(t, subject+" header", head, without(t, b.Answer, "transactions", "uncles", "withdrawals", "size"))
		}
		t.Logf("%d blocks, %d transactions", len(fixture.blocks), transactions)
	}
}

// Receipts of whole blocks equal go-ethereum's answers, and single receipts and logs are the
// same text in parts. RPC-102, RPC-103, RPC-110
func TestReceiptsEqualGeth(t *testing.T) {
	for _, fixture := range answeredBlocks(t) {
		encoder := NewEncoder(fixture.network)
		var kinds [setCodeType + 1]int
		for _, b := range fixture.blocks {
			subject := fmt.Sprintf("chain %d block %d", b.ChainID, b.Number)
			all, err := encoder.AppendReceipts(nil, &b.Block)
			if err != nil {
				t.Errorf("%s: %v", subject, err)
				continue
			}
			sameJSON(t, subject, all, b.AnswerReceipts)
			for i := range b.Receipts {
				one, err := encoder.AppendReceipt(nil, &b.Block, i)
				if err != nil {
					t.Errorf("%s receipt %d: %v", subject, i, err)
				} else if !bytes.Contains(all, one) {
					t.Errorf("%s receipt %d alone differs from the one in the block: %s", subject, i, one)
				}
				kinds[b.Receipts[i].Type]++
			}
			rest := all
			for i, l := range foundLogs(&b.Block) {
				one := encoder.AppendLog(nil, &l)
				at := bytes.Index(rest, one)
				if at < 0 {
					t.Errorf("%s log %d alone differs from the one in its receipt: %s", subject, i, one)
					break
				}
				rest = rest[at+len(one):]
			}
		}
		t.Logf("receipts by type: %v", kinds)
	}
}

// foundLogs are the logs of a block as a query yields them.
func foundLogs(b *chain.Block) []chain.FoundLog {
	found := make([]chain.FoundLog, 0, len(b.Logs))
	for i := range b.Receipts {
		for range b.ReceiptLogs(i) {
			n := len(found)
			found = append(found, chain.FoundLog{
				Log: b.Logs[n], Block: &b.BlockRef, TransactionHash: &b.TransactionHashes[i],
				TransactionIndex: uint32(i), LogIndex: uint32(n),
			})
		}
	}
	return found
}

// Logs that come in any order and share the memory behind their pointers each get their own
// place: what an Encoder remembers never shows up in another log.
func TestAppendLogRemembersByValue(t *testing.T) {
	blocks := []chain.BlockRef{
		{Number: 1, Hash: common.Hash{1}, Timestamp: 10},
		{Number: 1, Hash: common.Hash{2}, Timestamp: 10},
		{Number: 2, Hash: common.Hash{1}, Timestamp: 10},
		{Number: 1, Hash: common.Hash{1}, Timestamp: 11},
		{},
	}
	transactions := []common.Hash{{1}, {2}, {}}
	encoder := NewEncoder(chain.Mainnet())
	var (
		block       chain.BlockRef
		transaction common.Hash
		address     common.Address
	)
	for range 3 {
		for _, b := range blocks {
			for _, x := range transactions {
				for index := range uint32(2) {
					block, transaction = b, x
					l := chain.FoundLog{
						Log:   chain.Log{Address: &address},
						Block: &block, TransactionHash: &transaction, TransactionIndex: index, LogIndex: index + 7,
					}
					got := encoder.AppendLog(nil, &l)
					want := NewEncoder(chain.Mainnet()).AppendLog(nil, &l)
					if string(got) != string(want) {
						t.Fatalf("got %s, want %s", got, want)
					}
					var fields struct{ BlockHash, TransactionHash common.Hash }
					if err := json.Unmarshal(got, &fields); err != nil || fields.BlockHash != b.Hash || fields.TransactionHash != x {
						t.Fatalf("got %s, %v", got, err)
					}
				}
			}
		}
	}
}

// A block without the parts that an object needs gives ErrMaterial, and the buffer stays as it
// was; it is never answered as if the part were empty.
func TestMissingMaterial(t *testing.T) {
	fixture := conformanceChain(t)
	i := slices.IndexFunc(fixture.blocks, func(b *chainfixture.Block) bool {
		return len(b.Logs) > 1 && len(b.Withdrawals) > 1 && len(b.Transactions) > 1
	})
	if i < 0 {
		i = len(fixture.blocks) - 1
	}
	whole := fixture.blocks[i].Block
	whole.Logs = append(slices.Clip(whole.Logs), chain.Log{})
	type method struct {
		name string
		call func(*Encoder, []byte, *chain.Block) ([]byte, error)
	}
	block := method{"block", func(e *Encoder, dst []byte, b *chain.Block) ([]byte, error) { return e.AppendBlock(dst, b, true) }}
	hashes := method{"block with hashes", func(e *Encoder, dst []byte, b *chain.Block) ([]byte, error) { return e.AppendBlock(dst, b, false) }}
	header := method{"header", (*Encoder).AppendHeader}
	transaction := method{"transaction", func(e *Encoder, dst []byte, b *chain.Block) ([]byte, error) { return e.AppendTransaction(dst, b, 1) }}
	receipt := method{"receipt", func(e *Encoder, dst []byte, b *chain.Block) ([]byte, error) { return e.AppendReceipt(dst, b, 1) }}
	receipts := method{"receipts", (*Encoder).AppendReceipts}
	all := []method{block, hashes, header, transaction, receipt, receipts}
	for _, c := range []struct {
		name    string
		damage  func(*chain.Block)
		methods []method
	}{
		{"no header", func(b *chain.Block) { b.Header = nil }, all},
		{"another header", func(b *chain.Block) { b.Number++ }, all},
		{"another time", func(b *chain.Block) { b.Timestamp++ }, all},
		{"no hashes", func(b *chain.Block) { b.TransactionHashes = nil }, []method{block, hashes, transaction, receipt, receipts}},
		{"no senders", func(b *chain.Block) { b.Senders = nil }, []method{block, transaction, receipt, receipts}},
		{"no withdrawals", func(b *chain.Block) { b.Withdrawals = nil }, []method{block, hashes}},
		{"receipts not loaded", func(b *chain.Block) { b.HasReceipts = false }, []method{receipt, receipts}},
		{"no receipts", func(b *chain.Block) { b.Receipts = nil }, []method{receipt, receipts}},
		{"no logs", func(b *chain.Block) { b.Logs = nil }, []method{receipt, receipts}},
		{"logs out of order", func(b *chain.Block) { b.Receipts[0].LogsEnd = 1 << 30 }, []method{receipt, receipts}},
		{"gas out of order", func(b *chain.Block) { b.Receipts[0].CumulativeGasUsed = 1 << 60 }, []method{receipt, receipts}},
		{"log without address", func(b *chain.Block) { b.Logs[0].Address = nil }, []method{receipt, receipts}},
		{"log without topic", func(b *chain.Block) { b.Logs[0].NumTopics, b.Logs[0].Topics[0] = 1, nil }, []method{receipt, receipts}},
		{"five topics", func(b *chain.Block) { b.Logs[0].NumTopics = 5 }, []method{receipt, receipts}},
	} {
		for _, m := range c.methods {
			b := whole
			b.Receipts, b.Logs = slices.Clone(whole.Receipts), slices.Clone(whole.Logs)
			for i := range b.Receipts {
				b.Receipts[i].LogsEnd = uint32(len(b.Logs))
			}
			b.Logs[len(b.Logs)-1] = whole.Logs[0]
			c.damage(&b)
			got, err := m.call(NewEncoder(fixture.network), []byte("kept"), &b)
			if !errors.Is(err, ErrMaterial) || string(got) != "kept" {
				t.Errorf("%s, %s: got %.100q, %v; want %v", c.name, m.name, got, err, ErrMaterial)
			}
		}
	}
}

func TestIndexBeyondTheBlock(t *testing.T) {
	fixture := conformanceChain(t)
	encoder := NewEncoder(fixture.network)
	b := &fixture.blocks[3].Block
	for _, index := range []int{-1, len(b.Transactions), 1 << 40} {
		if _, err := encoder.AppendTransaction(nil, b, index); !errors.Is(err, ErrIndex) {
			t.Errorf("transaction %d: got error %v, want %v", index, err, ErrIndex)
		}
		if _, err := encoder.AppendReceipt(nil, b, index); !errors.Is(err, ErrIndex) {
			t.Errorf("receipt %d: got error %v, want %v", index, err, ErrIndex)
		}
	}
}
