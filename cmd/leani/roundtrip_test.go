package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine/history"
	"github.com/leani-go/leani/internal/shareddata"
)

// sameBlock compares a block from the store with the source, byte for byte.
func sameBlock(got *chain.Block, want *sourceBlock) error {
	switch {
	case !bytes.Equal(got.Header, want.header):
		return errors.New("header")
	case got.Number != want.number || got.Timestamp != want.geth.Time || got.ParentHash != want.geth.ParentHash || got.Hash != want.geth.Hash():
		return fmt.Errorf("reference %+v", got.BlockRef)
	case !bytes.Equal(got.Ommers, want.ommers):
		return errors.New("ommers")
	case !bytes.Equal(got.Withdrawals, want.withdrawals) || (got.Withdrawals == nil) != (want.withdrawals == nil):
		return errors.New("withdrawals")
	case len(got.Transactions) != len(want.transactions) || len(got.TransactionHashes) != len(want.transactions):
		return fmt.Errorf("%d transactions, %d hashes, want %d", len(got.Transactions), len(got.TransactionHashes), len(want.transactions))
	case got.HasReceipts != want.hasReceipts || len(got.Receipts) != len(want.receipts):
		return fmt.Errorf("%d receipts, want %d", len(got.Receipts), len(want.receipts))
	}
	for i, t := range want.transactions {
		if !bytes.Equal(got.Transactions[i], t) || got.TransactionHashes[i] != crypto.Keccak256Hash(t) {
			return fmt.Errorf("transaction %d", i)
		}
	}
	for i := range got.Receipts {
		encoded, err := gethReceipt(got, i).MarshalBinary()
		if err != nil || !bytes.Equal(encoded, want.receipts[i]) {
			return fmt.Errorf("receipt %d: %w", i, err)
		}
	}
	return nil
}

// gethReceipt is a receipt of a block as go-ethereum's type.
func gethReceipt(b *chain.Block, i int) *types.Receipt {
	r := &b.Receipts[i]
	out := &types.Receipt{Type: r.Type, Status: uint64(r.Status), PostState: r.PostState, CumulativeGasUsed: r.CumulativeGasUsed}
	for _, l := range b.ReceiptLogs(i) {
		log := &types.Log{Address: *l.Address, Data: l.Data, Topics: []common.Hash{}}
		for _, topic := range l.Topics[:l.NumTopics] {
			log.Topics = append(log.Topics, *topic)
		}
		out.Logs = append(out.Logs, log)
	}
	out.Bloom = types.CreateBloom(out)
	return out
}

// gethRoots has go-ethereum decode a block from the store and recompute all roots of its header.
func gethRoots(b *chain.Block) error {
	var h types.Header
	var transactions types.Transactions
	var receipts types.Receipts
	for i, encoded := range b.Transactions {
		t := new(types.Transaction)
		if err := t.UnmarshalBinary(encoded); err != nil {
			return fmt.Errorf("transaction %d: %w", i, err)
		}
		transactions = append(transactions, t)
		receipts = append(receipts, gethReceipt(b, i))
	}
	if err := rlp.DecodeBytes(b.Header, &h); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	switch {
	case types.DeriveSha(transactions, trie.NewStackTrie(nil)) != h.TxHash:
		return errors.New("transactions root")
	case types.DeriveSha(receipts, trie.NewStackTrie(nil)) != h.ReceiptHash:
		return errors.New("receipts root")
	case types.MergeBloom(receipts) != h.Bloom:
		return errors.New("logs bloom")
	case crypto.Keccak256Hash(b.Ommers) != h.UncleHash:
		return errors.New("ommers hash")
	case (b.Withdrawals == nil) != (h.WithdrawalsHash == nil):
		return errors.New("withdrawals")
	}
	if h.WithdrawalsHash != nil {
		var w types.Withdrawals
		if err := rlp.DecodeBytes(b.Withdrawals, &w); err != nil {
			return fmt.Errorf("withdrawals: %w", err)
		}
		if types.DeriveSha(w, trie.NewStackTrie(nil)) != *h.WithdrawalsHash {
			return errors.New("withdrawals root")
		}
	}
	return nil
}

// gethSenders compares the senders of a block with what go-ethereum recovers.
func (n *storedNode) gethSenders(v *history.View, b *chain.Block) error {
	var got chain.Block
	if err := v.LoadBlock(context.Background(), b.Number, chain.PartSenders, &got); err != nil {
		return err
	}
	if len(got.Senders) != len(b.Transactions) {
		return fmt.Errorf("%d senders, want %d", len(got.Senders), len(b.Transactions))
	}
	signer := types.LatestSignerForChainID(new(big.Int).SetUint64(n.network.ChainID()))
	for i, encoded := range b.Transactions {
		var t types.Transaction
		if err := t.UnmarshalBinary(encoded); err != nil {
			return err
		}
		if sender, err := types.Sender(signer, &t); err != nil || sender != got.Senders[i] {
			return fmt.Errorf("sender of transaction %d: got %v want %v, %v", i, got.Senders[i], sender, err)
		}
	}
	return nil
}

// fillSenders stores the senders of all transactions.
func (l *lab) fillSenders() {
	l.tb.Helper()
	n, err := l.tryOpen(false)
	if err != nil {
		l.tb.Fatal(err)
	}
	if err := errors.Join(n.history.FillSenders(l.tb.Context(), nil), n.close()); err != nil {
		l.tb.Fatal(err)
	}
}

// checkBlocks compares what the store holds of a run of blocks with the source. go-ethereum proves every
// sample-th block.
func (l *lab) checkBlocks(source []sourceBlock, want chain.Range, sample int) {
	l.tb.Helper()
	n, err := l.tryOpen(true)
	if err != nil {
		l.tb.Fatal(err)
	}
	defer func() {
		if err := n.close(); err != nil {
			l.tb.Error(err)
		}
	}()
	v, err := n.history.View()
	if err != nil {
		l.tb.Fatal(err)
	}
	defer v.Close()
	compared := uint64(0)
	var b chain.Block
	for i := range source {
		if s := &source[i]; want.Contains(s.number) {
			compared++
			if err := v.LoadBlock(l.tb.Context(), s.number, chain.PartsAll, &b); err != nil {
				l.tb.Fatal(err)
			}
			if err := sameBlock(&b, s); err != nil {
				l.tb.Fatalf("block %d differs from the source: %v", s.number, err)
			}
			if i%sample == 0 {
				if err := errors.Join(gethRoots(&b), n.gethSenders(v, &b)); err != nil {
					l.tb.Fatalf("block %d: go-ethereum disagrees: %v", s.number, err)
				}
			}
		}
	}
	if compared != want.Len() {
		l.tb.Fatalf("the source has %d blocks of %v", compared, want)
	}
}

// Every block of every era file (that of chainlab: TestChainlab) comes back byte for byte: header, transactions, ommers, withdrawals, and
// canonical receipts, both after the fill and after a restart that wrote senders; go-ethereum finds the
// roots of the headers in them. (SRC-030)
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	type file struct {
		testChain
		sample int
	}
	var files []file
	for i, s := range bundledSpans {
		c := bundled(t)
		c.files, c.blocks = c.files[i:i+1], s
		files = append(files, file{testChain: c, sample: 1})
	}
	if !testing.Short() && !raceEnabled {
		era := func(elem ...string) []string {
			return []string{shareddata.Path(t, append([]string{"era"}, elem...)...)}
		}
		for _, c := range []struct {
			name, file string
			blocks     chain.Range
		}{
			{"blocks0-35-", "blocks0-35--unknown-00000-7c27d1f9.era1", chain.Range{From: 0, To: 36}},
			{"blocks0-35-", "blocks0-35--unknown-00000-953f35de-noproofs.ere", chain.Range{From: 0, To: 36}},
			{"blocks0-54--unknown", "blocks0-54--unknown-00000-d226371d-noproofs.ere", chain.Range{From: 0, To: 55}},
			{"blocks36-54-", "blocks36-54--unknown-00000-d226371d-noproofs.ere", chain.Range{From: 36, To: 55}},
		} {
			files = append(files, file{testChain: conformance(t, c.name, c.file, c.blocks), sample: 1})
		}
		mainnet := testChain{name: "mainnet", id: 1, blocks: chain.Range{From: 0, To: 8192}}
		era1, ere := mainnet, mainnet
		era1.files, ere.files = era("mainnet", "mainnet-00000-5ec1ffb8.era1"), era("mainnet", "mainnet-00000-a6860fef-noproofs.ere")
		sepolia := testChain{name: "sepolia", id: 11155111, blocks: chain.Range{From: 172032, To: 180224},
			files: era("sepolia", "sepolia-00021-af105ff1-noproofs.ere")}
		files = append(files, file{era1, 64}, file{ere, 64}, file{sepolia, 64})
	}
	for _, f := range files {
		t.Run(fmt.Sprintf("%s/%d", f.name, f.blocks.From), func(t *testing.T) {
			l := newLab(t, f.testChain)
			l.must(fillArgs(f.blocks)...)
			source := readSource(t, f.files[0])
			l.checkBlocks(source, f.blocks, f.sample)
			before := l.verify()
			if before.Blocks != f.blocks.Len() {
				t.Fatalf("%d blocks, want %d", before.Blocks, f.blocks.Len())
			}
			l.fillSenders()
			l.checkBlocks(source, f.blocks, f.sample)
			if after := l.verify(); after.Digest != before.Digest {
				t.Errorf("digest %s, was %s", after.Digest, before.Digest)
			}
			l.clean()
		})
	}
}
