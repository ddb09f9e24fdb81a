package keccak

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// Empty is the digest of the empty message.
var Empty = common.HexToHash("0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470")

// Hasher hashes one message at a time. The zero value is ready.
type Hasher struct {
	state crypto.KeccakState
}

// Sum writes the Keccak-256 of the concatenated parts to out, which may alias a part.
func (h *Hasher) Sum(out *common.Hash, parts ...[]byte) {
	if h.state == nil {
		h.state = crypto.NewKeccakState()
	}
	h.state.Reset()
	for _, part := range parts {
		h.state.Write(part)
	}
	h.state.Read(out[:])
}
