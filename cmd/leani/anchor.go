package main

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest"
	"github.com/leani-go/leani/internal/rlp"
)

// anchoredSink lets only blocks of one chain pass. That a block fits its own header and the blocks
// beside it is proved before; every other chain has such blocks too. What tells them apart is the hash
// of block 0, where it is known, and the chain id that transactions sign.
type anchoredSink struct {
	ingest.Sink
	network *chain.Network
	// signed is set once a transaction of the open run has named the chain.
	signed bool
	// first, if set, is called once, before the first block that passes is added.
	first func() error
}

// Add refuses a block of another chain before the sink sees it.
func (s *anchoredSink) Add(b *chain.Block) error {
	if err := s.checkGenesis(b); err != nil {
		return err
	}
	if s.Pending() == 0 {
		s.signed = false
	}
	if !s.signed {
		if err := s.checkSigned(b); err != nil {
			return err
		}
	}
	if first := s.first; first != nil {
		s.first = nil
		if err := first(); err != nil {
			return err
		}
	}
	return s.Sink.Add(b)
}

// checkGenesis compares block 0, or the parent of block 1, with the genesis block of the chain.
func (s *anchoredSink) checkGenesis(b *chain.Block) error {
	genesis, known := s.network.Genesis()
	if !known || b.Number > 1 {
		return nil
	}
	got, what := b.Hash, "block 0"
	if b.Number == 1 {
		got, what = b.ParentHash, "the parent of block 1"
	}
	if got == genesis.Hash {
		return nil
	}
	return &ingest.RefusedError{Err: fmt.Errorf("%s of the files is %s, the genesis block of the configured chain is %s: check chain.chain_id (%d) and chain.genesis",
		what, got.Hex(), genesis.Hash.Hex(), s.network.ChainID())}
}

// checkSigned compares the first transaction that names a chain with the configured one.
func (s *anchoredSink) checkSigned(b *chain.Block) error {
	for i, envelope := range b.Transactions {
		signed, ok := signedChain(envelope)
		if !ok {
			continue
		}
		if !signed.IsUint64() || signed.Uint64() != s.network.ChainID() {
			return &ingest.RefusedError{Err: fmt.Errorf("transaction %d of block %d is of chain %s, chain.chain_id is %d: the files are of another chain",
				i, b.Number, signed.Dec(), s.network.ChainID())}
		}
		s.signed = true
		return nil
	}
	return nil
}

// The envelopes that name a chain: types 1 to 4 in their first field (EIP-2930, EIP-1559, EIP-4844,
// EIP-7702), lists of legacy transactions in their seventh, which is twice the id plus 35 or 36
// (EIP-155).
const (
	firstChainType, lastChainType = 1, 4
	firstLegacyByte               = 0xc0
	fieldsBeforeV                 = 6
	protectedV                    = 35
)

// signedChain is the chain id that a transaction signs; false when it signs none, or is of a type whose
// fields this build does not know.
func signedChain(envelope []byte) (id uint256.Int, ok bool) {
	switch {
	case len(envelope) == 0:
		return id, false
	case envelope[0] >= firstLegacyByte:
		list := rlp.OpenList(envelope)
		for range fieldsBeforeV {
			list.Next()
		}
		id.SetBytes(list.Integer(common.HashLength))
		if list.Err() != nil || id.LtUint64(protectedV) {
			return id, false
		}
		id.SubUint64(&id, protectedV)
		id.Rsh(&id, 1)
		return id, true
	case envelope[0] >= firstChainType && envelope[0] <= lastChainType:
		list := rlp.OpenList(envelope[1:])
		id.SetBytes(list.Integer(common.HashLength))
		return id, list.Err() == nil
	}
	return id, false
}
