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
			entries = append(entries, trieEntry{crypto.Keccak256Hash(slot[:]), appendRLPString(nil, significant)})
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
		content := appendRLPString(nil, compactPath(first.key, depth, 2*common.HashLength, leaf))
		return rlpList(appendRLPString(content, first.value))
	}
	fork := depth
	for nibble(first.key, fork) == nibble(last.key, fork) {
		fork++
	}
	if fork > depth {
		const leaf = false
		content := appendRLPString(nil, compactPath(first.key, depth, fork, leaf))
		return rlpList(appendNodeReference(content, trieNode(entries, fork)))
	}
	var content []byte
	for n := range byte(16) {
		end := 0
		for end < len(entries) && nibble(entries[end].key, depth) == n {
			end++
		}
		if end == 0 {
			content = append(content, emptyRLPString)
			continue
		}
		content = appendNodeReference(content, trieNode(entries[:end], depth+1))
		entries = entries[end:]
	}
	return rlpList(append(content, emptyRLPString)) // no value: no key ends inside the trie
}

// appendNodeReference appends how a parent refers to a node: by its hash, or by itself when
// it is shorter than one.
func appendNodeReference(dst, node []byte) []byte {
	if len(node) < common.HashLength {
		return append(dst, node...)
	}
	return appendRLPString(dst, crypto.Keccak256(node))
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

// The tags of RLP (Yellow Paper, appendix B).
const (
	emptyRLPString = 0x80
	emptyRLPList   = 0xc0
	// longRLP is the greatest length whose tag holds it.
	longRLP = 55
)

func appendRLPString(dst, content []byte) []byte {
	if len(content) == 1 && content[0] < emptyRLPString {
		return append(dst, content[0])
	}
	return append(appendRLPTag(dst, emptyRLPString, len(content)), content...)
}

func rlpList(content []byte) []byte {
	return append(appendRLPTag(nil, emptyRLPList, len(content)), content...)
}

func appendRLPTag(dst []byte, kind byte, length int) []byte {
	if length <= longRLP {
		return append(dst, kind+byte(length))
	}
	size := uint256.NewInt(uint64(length)).Bytes()
	return append(append(dst, kind+longRLP+byte(len(size))), size...)
}
