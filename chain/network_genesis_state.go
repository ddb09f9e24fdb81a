package chain

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"
)

// This file computes the state root of a genesis allocation: a Merkle-Patricia trie (Yellow
// Paper, appendix D) over keys of one length that are all known beforehand. That needs neither
// a store of nodes nor removal, so a recursion over the sorted keys is enough, and
// go-ethereum's trie, which brings a database, metrics and file formats along, stays out of
// this package.

// trieEntry is a value under its hashed key.
type trieEntry struct {
	key   common.Hash
	value []byte // RLP
}

// allocationRoot is the state root of the accounts.
func allocationRoot(alloc types.GenesisAlloc) (common.Hash, error) {
	entries := make([]trieEntry, 0, len(alloc))
	for address, account := range alloc {
		balance, overflow := uint256.FromBig(account.Balance)
		if overflow || account.Balance.Sign() < 0 {
			return common.Hash{}, fmt.Errorf("balance of %s does not fit 256 bits", address)
		}
		value, err := rlp.EncodeToBytes(&types.StateAccount{
			Nonce:    account.Nonce,
			Balance:  balance,
			Root:     storageRoot(account.Storage),
			CodeHash: crypto.Keccak256(account.Code),
		})
		if err != nil {
			return common.Hash{}, fmt.Errorf("encode account %s: %w", address, err)
		}
		entries = append(entries, trieEntry{crypto.Keccak256Hash(address[:]), value})
	}
	return trieRoot(entries), nil
}

// storageRoot is the root of an account's storage; zero values are not stored.
func storageRoot(storage map[common.Hash]common.Hash) common.Hash {
	entries := make([]trieEntry, 0, len(storage))
	for slot, word := range storage {
		if significant := bytes.TrimLeft(word[:], "\x00"); len(significant) > 0 {
			entries = append(entries, trieEntry{crypto.Keccak256Hash(slot[:]), encodeRLP(significant)})
		}
	}
	return trieRoot(entries)
}

// trieRoot sorts the entries, whose keys must differ, and hashes the trie over them.
func trieRoot(entries []trieEntry) common.Hash {
	if len(entries) == 0 {
		return types.EmptyRootHash
	}
	slices.SortFunc(entries, func(a, b trieEntry) int { return bytes.Compare(a.key[:], b.key[:]) })
	return crypto.Keccak256Hash(trieNode(entries, 0))
}

// trieNode is the RLP of the node that holds the entries, which are sorted, not empty, and
// share the first depth nibbles of their keys.
func trieNode(entries []trieEntry, depth int) []byte {
	first, last := &entries[0], &entries[len(entries)-1]
	if len(entries) == 1 {
		const leaf = true
		path := compactPath(first.key, depth, 2*common.HashLength, leaf)
		return encodeRLP([]rlp.RawValue{encodeRLP(path), encodeRLP(first.value)})
	}
	fork := depth
	for nibble(first.key, fork) == nibble(last.key, fork) {
		fork++
	}
	if fork > depth {
		const leaf = false
		path := compactPath(first.key, depth, fork, leaf)
		return encodeRLP([]rlp.RawValue{encodeRLP(path), nodeReference(trieNode(entries, fork))})
	}
	branch := slices.Repeat([]rlp.RawValue{rlp.EmptyString}, 17) // a child per nibble, and no value
	for len(entries) > 0 {
		n, end := nibble(entries[0].key, depth), 1
		for end < len(entries) && nibble(entries[end].key, depth) == n {
			end++
		}
		branch[n] = nodeReference(trieNode(entries[:end], depth+1))
		entries = entries[end:]
	}
	return encodeRLP(branch)
}

// nodeReference is how a parent refers to a node: by its hash, or by itself when it is shorter
// than one.
func nodeReference(node []byte) rlp.RawValue {
	if len(node) < common.HashLength {
		return node
	}
	return encodeRLP(crypto.Keccak256(node))
}

// encodeRLP encodes a string or a list of encoded items, which cannot fail.
func encodeRLP[T []byte | []rlp.RawValue](v T) []byte {
	encoded, err := rlp.EncodeToBytes(v)
	if err != nil {
		panic("encode trie node: " + err.Error())
	}
	return encoded
}

// compactPath is the hex-prefix encoding of the nibbles [from, to) of a key.
func compactPath(key common.Hash, from, to int, leaf bool) []byte {
	const oddFlag, leafFlag = 0x10, 0x20
	var flags byte
	if leaf {
		flags = leafFlag
	}
	if (to-from)%2 == 1 {
		flags |= oddFlag | nibble(key, from)
		from++
	}
	path := []byte{flags}
	for ; from < to; from += 2 {
		path = append(path, nibble(key, from)<<4|nibble(key, from+1))
	}
	return path
}

func nibble(key common.Hash, i int) byte {
	if i%2 == 0 {
		return key[i/2] >> 4
	}
	return key[i/2] & 0x0f
}
