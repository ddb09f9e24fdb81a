package main

import (
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/leani-go/leani/chain"
)

// countingSink counts the blocks that come through; a run has three of them.
type countingSink struct{ blocks int }

func (s *countingSink) Add(*chain.Block) error { s.blocks++; return nil }
func (s *countingSink) Cut() error             { return nil }
func (s *countingSink) Pending() int           { return s.blocks % 3 }
func (s *countingSink) Close(bool) error       { return nil }

func signedEnvelope(t *testing.T, signer types.Signer, data types.TxData) []byte {
	t.Helper()
	key, err := crypto.ToECDSA(common.LeftPadBytes([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := types.MustSignNewTx(key, signer, data).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// The chain id is that which go-ethereum's signers put in, whatever the type.
func TestSignedChain(t *testing.T) {
	for _, id := range []uint64{1, 5, 17000, 424242, 1 << 62} {
		number := new(big.Int).SetUint64(id)
		signer := types.NewLondonSigner(number)
		for _, data := range []types.TxData{
			&types.LegacyTx{Gas: 21000}, &types.AccessListTx{ChainID: number}, &types.DynamicFeeTx{ChainID: number},
		} {
			got, ok := signedChain(signedEnvelope(t, signer, data))
			if !ok || !got.IsUint64() || got.Uint64() != id {
				t.Errorf("%T of chain %d: got %s, %v", data, id, got.Dec(), ok)
			}
		}
	}
	unprotected := signedEnvelope(t, types.HomesteadSigner{}, &types.LegacyTx{Gas: 21000})
	for _, envelope := range [][]byte{nil, {0x7e, 0xc0}, {0x02}, {0xc0}, {0xff}, unprotected} {
		if got, ok := signedChain(envelope); ok {
			t.Errorf("%x: got chain %s", envelope, got.Dec())
		}
	}
}

// Block 0, the parent of block 1, and the first transaction of each run that names a chain decide
// whether a block passes.
func TestAnchoredSink(t *testing.T) {
	genesis, _ := chain.Mainnet().Genesis()
	mainnet := signedEnvelope(t, types.NewLondonSigner(big.NewInt(1)), &types.LegacyTx{})
	other := signedEnvelope(t, types.NewLondonSigner(big.NewInt(424242)), &types.LegacyTx{})
	block := func(number uint64, hash, parent common.Hash, transactions ...[]byte) *chain.Block {
		return &chain.Block{BlockRef: chain.BlockRef{Number: number, Hash: hash, ParentHash: parent}, Transactions: transactions}
	}
	unknown := chain.UnscheduledNetwork("test", 1)
	for _, c := range []struct {
		name    string
		network *chain.Network
		blocks  []*chain.Block
		passed  int
		want    []string
	}{
		{"genesis", chain.Mainnet(), []*chain.Block{block(0, genesis.Hash, common.Hash{}), block(1, common.Hash{1}, genesis.Hash)}, 2, nil},
		{"another genesis", chain.Mainnet(), []*chain.Block{block(0, common.Hash{1}, common.Hash{})}, 0,
			[]string{"block 0", common.Hash{1}.Hex(), genesis.Hash.Hex(), "chain.chain_id", "chain.genesis"}},
		{"another parent of block 1", chain.Mainnet(), []*chain.Block{block(1, common.Hash{2}, common.Hash{1})}, 0,
			[]string{"the parent of block 1", common.Hash{1}.Hex(), genesis.Hash.Hex()}},
		{"a chain known by its id", unknown, []*chain.Block{block(0, common.Hash{1}, common.Hash{})}, 1, nil},
		{"signed", unknown, []*chain.Block{block(7, common.Hash{}, common.Hash{}), block(8, common.Hash{}, common.Hash{}, mainnet)}, 2, nil},
		{"another chain", unknown, []*chain.Block{block(7, common.Hash{}, common.Hash{}), block(8, common.Hash{}, common.Hash{}, other)}, 1,
			[]string{"transaction 0 of block 8 is of chain 424242, chain.chain_id is 1"}},
		{"another chain in the second run", unknown, []*chain.Block{
			block(7, common.Hash{}, common.Hash{}, mainnet), block(8, common.Hash{}, common.Hash{}), block(9, common.Hash{}, common.Hash{}),
			block(10, common.Hash{}, common.Hash{}, other),
		}, 3, []string{"block 10 is of chain 424242"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var inner countingSink
			sink := &anchoredSink{Sink: &inner, network: c.network}
			var err error
			for _, b := range c.blocks {
				if err = sink.Add(b); err != nil {
					break
				}
			}
			if inner.blocks != c.passed || (err != nil) != (c.want != nil) {
				t.Errorf("%d blocks passed, error %v", inner.blocks, err)
			}
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not name %q: %v", want, err)
				}
			}
		})
	}
}
