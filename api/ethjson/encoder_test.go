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

// TestAnswersEqualGeth encodes every block that go-ethereum's answers are known for, from the
// raw encodings alone; with -short every third. RPC-102, RPC-103, RPC-110
func TestAnswersEqualGeth(t *testing.T) {
	for _, fixture := range []answered{realBlocks(t), conformanceChain(t)} {
		encoder := NewEncoder(fixture.network)
		var kinds [setCodeType + 1]int
		for i, b := range fixture.blocks {
			if testing.Short() && i%3 != 0 {
				continue
			}
			subject := fmt.Sprintf("chain %d block %d", b.ChainID, b.Number)
			checkBlock(t, encoder, b, subject)
			checkReceiptAnswers(t, encoder, b, subject)
			for i := range b.Receipts {
				kinds[b.Receipts[i].Type]++
			}
		}
		t.Logf("%d blocks, receipts by type %v", len(fixture.blocks), kinds)
	}
}

// checkBlock compares a block with full transactions and its header with the answer. Single
// transactions and the block with hashes have to be parts of the same text.
func checkBlock(t *testing.T, encoder *Encoder, b *chainfixture.Block, subject string) {
	full, err := encoder.AppendBlock(nil, &b.Block, true)
	if err != nil {
		t.Errorf("%s: %v", subject, err)
		return
	}
	got, want := full, []byte(b.Answer)
	if !b.Complete {
		missing := []string{"uncles", "withdrawals", "size"}
		got, want = without(t, got, missing...), without(t, want, missing...)
	}
	sameJSON(t, subject, got, want)

	head, err := encoder.AppendHeader(nil, &b.Block)
	if before, _, ok := bytes.Cut(full, []byte(`,"transactions":[`)); err != nil || !ok || string(head) != string(before)+"}" {
		t.Errorf("%s: header alone: %s, %v; in the block: %.500s", subject, head, err, full)
	}

	var text []byte
	rest := full
	for i := range b.Transactions {
		one, err := encoder.AppendTransaction(nil, &b.Block, i)
		at := bytes.Index(rest, one)
		if err != nil || at < 0 {
			t.Errorf("%s: transaction %d alone: %s, %v; in the block: %.500s", subject, i, one, err, rest)
			return
		}
		text = fmt.Appendf(append(text, rest[:at]...), "%q", b.TransactionHashes[i].Hex())
		rest = rest[at+len(one):]
	}
	text = append(text, rest...)
	hashes, err := encoder.AppendBlock(nil, &b.Block, false)
	if err != nil || !bytes.Equal(hashes, text) {
		t.Errorf("%s: with hashes: got %s, %v; want %s", subject, hashes, err, text)
	}
}

// checkReceiptAnswers compares the receipts of a block with the answer. Single receipts and
// logs have to be parts of the same text.
func checkReceiptAnswers(t *testing.T, encoder *Encoder, b *chainfixture.Block, subject string) {
	all, err := encoder.AppendReceipts(nil, &b.Block)
	if err != nil {
		t.Errorf("%s: receipts: %v", subject, err)
		return
	}
	sameJSON(t, subject+" receipts", all, b.AnswerReceipts)
	rest := all
	for i := range b.Receipts {
		one, err := encoder.AppendReceipt(nil, &b.Block, i)
		at := bytes.Index(rest, one)
		if err != nil || at < 0 {
			t.Errorf("%s: receipt %d alone: %s, %v; in the block: %.500s", subject, i, one, err, rest)
			return
		}
		rest = rest[at+len(one):]
	}
	rest = all
	for i, l := range foundLogs(&b.Block) {
		one := encoder.AppendLog(nil, &l)
		at := bytes.Index(rest, one)
		if at < 0 {
			t.Errorf("%s: log %d alone: %s; in its receipt: %.500s", subject, i, one, rest)
			return
		}
		rest = rest[at+len(one):]
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
	transaction := method{"transaction", func(e *Encoder, dst []byte, b *chain.Block) ([]byte, error) { return e.AppendTransaction(dst, b, 1) }}
	receipt := method{"receipt", func(e *Encoder, dst []byte, b *chain.Block) ([]byte, error) { return e.AppendReceipt(dst, b, 1) }}
	// All logs of the block belong to the first receipt: the second does not need them.
	first := method{"first receipt", func(e *Encoder, dst []byte, b *chain.Block) ([]byte, error) { return e.AppendReceipt(dst, b, 0) }}
	receipts := method{"receipts", (*Encoder).AppendReceipts}
	all := []method{block, hashes, transaction, receipt, receipts}
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
		{"log without address", func(b *chain.Block) { b.Logs[0].Address = nil }, []method{first, receipts}},
		{"log without topic", func(b *chain.Block) { b.Logs[0].NumTopics, b.Logs[0].Topics[0] = 1, nil }, []method{first, receipts}},
		{"five topics", func(b *chain.Block) { b.Logs[0].NumTopics = 5 }, []method{first, receipts}},
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

// Once Encoder and buffer are warm nothing is allocated, whatever the types of transactions.
func TestAllocatesNothing(t *testing.T) {
	b := newBlock(t, newHeader(cancunTime, new(uint64)), seedEnvelopes(t)...)
	address, topic := common.Address{3}, common.Hash{4}
	for i := range b.Receipts {
		b.Logs = append(b.Logs, chain.Log{Address: &address, NumTopics: 1, Topics: [4]*common.Hash{&topic}, Data: make([]byte, i)})
		b.Receipts[i].LogsEnd = uint32(len(b.Logs))
	}
	logs := foundLogs(b)
	encoder := NewEncoder(chain.Mainnet())
	dst := make([]byte, 0, 1<<20)
	if n := testing.AllocsPerRun(5, func() {
		block, err := encoder.AppendBlock(dst, b, true)
		if err != nil {
			t.Fatal(err)
		}
		receipts, err := encoder.AppendReceipts(block, b)
		if err != nil {
			t.Fatal(err)
		}
		for i := range logs {
			receipts = encoder.AppendLog(receipts, &logs[i])
		}
	}); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}
