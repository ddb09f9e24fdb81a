package trieroot

import (
	"math/bits"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/internal/keccak"
	"github.com/leani-go/leani/internal/rlp"
)

// Empty is the root of the empty list: the Keccak-256 of the empty RLP string.
var Empty = common.HexToHash("0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421")

// chunkBytes is how much leaf data is gathered before it is hashed. It fits in a level 2
// cache and holds enough leaves to keep every lane of a batch busy.
const chunkBytes = 128 << 10

// Hasher computes list roots. The zero value is ready.
type Hasher struct {
	batch   keccak.Batch
	arena   []byte // encoded nodes that wait for the next flush
	leaves  []ref  // by index
	bottoms []ref  // branches over sixteen indexes, by index / 16
	scratch ref    // of a node that is hashed at once
}

// Root returns the root of the list of n values, 0 <= n < 2^32. It calls value once for each
// index in ascending order and uses the result only until the next call. Values must not be
// empty: no trie can hold an empty value.
func (h *Hasher) Root(n int, value func(i int) []byte) common.Hash {
	return h.root(n, value, nil)
}

// RootAndDigests is Root for a list of len(digests) values, and sets each digest to the
// Keccak-256 of the value itself. (For transactions that is the transaction hash.)
func (h *Hasher) RootAndDigests(digests []common.Hash, value func(i int) []byte) common.Hash {
	return h.root(len(digests), value, digests)
}

func (h *Hasher) root(n int, value func(i int) []byte, digests []common.Hash) common.Hash {
	if n == 0 {
		return Empty
	}
	h.leaves = resize(h.leaves, n)
	h.arena = h.arena[:0]
	for i := range n {
		h.leaf(i, n, value(i), digests)
	}
	h.batch.Flush()
	if n == 1 {
		return h.hash(h.leaves[0])
	}

	h.arena = h.arena[:0]
	h.bottoms = resize(h.bottoms, (n+15)/16)
	for first := 0; first < n; first += 16 {
		low, high := max(first, 1), min(first+16, n)
		if high-low > 1 {
			h.bottom(first/16, low, high)
		}
	}
	h.batch.Flush()

	var children [16]ref
	for low := 1; low < min(n, 128); low = low&^15 + 16 {
		children[low>>4] = h.build(low, min(low&^15+16, n), 1)
	}
	children[8] = h.multiByte(n)
	return h.hash(h.branch(&children))
}

// multiByte is the subtree of the keys that start with nibble 8: index 0 and all from 128 on.
func (h *Hasher) multiByte(n int) ref {
	if n <= 128 {
		return h.leaves[0]
	}
	var children [16]ref
	children[0] = h.leaves[0]
	for low, width := 128, 2; low < n; width += 2 {
		end := 1 << (4 * width)
		children[width/2] = h.build(low, min(end, n), width)
		low = end
	}
	return h.branch(&children)
}

// build is the subtree over the indexes [low, high), which agree in all but their last width
// nibbles. Leaves and bottom branches exist already.
func (h *Hasher) build(low, high, width int) ref {
	if high-low == 1 {
		return h.leaves[low]
	}
	shared := 0
	for width > 1 && nibble(low, width-1) == nibble(high-1, width-1) {
		width--
		shared++
	}
	var node ref
	if width == 1 {
		node = h.bottoms[low>>4]
	} else {
		var children [16]ref
		step := 1 << (4 * (width - 1))
		for from := low; from < high; {
			to := min(from&^(step-1)+step, high)
			children[nibble(from, width-1)] = h.build(from, to, width-1)
			from = to
		}
		node = h.branch(&children)
	}
	if shared > 0 {
		node = h.extension(low>>(4*width), shared, &node)
	}
	return node
}

// nibble is the nibble of v at a position counted from the lowest.
func nibble(v, position int) int { return v >> (4 * position) & 15 }

// leafPath is the number of trailing nibbles of its key that leaf i of n carries itself; the
// branches above it consume the others.
func leafPath(i, n int) int {
	if i == 0 {
		switch {
		case n == 1:
			return 2
		case n <= 128:
			return 1
		}
		return 0
	}
	low, width := 1, 1 // for 1 to 127 the root consumes the first of two nibbles
	if i >= 128 {
		width = 2 * ((bits.Len(uint(i)) + 7) / 8)
		low = max(128, 1<<(4*(width-2)))
	}
	switch {
	case i == low && n == low+1:
		return width
	case i == low || i != n-1:
		return 0
	}
	return bits.TrailingZeros(uint(i)) / 4
}

// leaf encodes leaf i of n and queues it, and its value, for hashing.
func (h *Hasher) leaf(i, n int, value []byte, digests []common.Hash) {
	var compact [6]byte
	path := uint64(i)
	if i == 0 {
		path = 0x80
	}
	key := appendPath(compact[:0], path, leafPath(i, n), pathLeaf)
	content := rlp.SizeString(key) + rlp.SizeString(value)
	size := rlp.SizeList(content)
	if cap(h.arena)-len(h.arena) < size {
		h.batch.Flush()
		h.arena = reserve(h.arena, max(size, chunkBytes))
	}
	start := len(h.arena)
	h.arena = rlp.AppendListHeader(h.arena, content)
	h.arena = rlp.AppendString(h.arena, key)
	h.arena = rlp.AppendString(h.arena, value)
	if digests != nil {
		h.batch.Add(h.arena[len(h.arena)-len(value):], &digests[i])
	}
	h.settle(&h.leaves[i], h.arena[start:])
}

// bottom encodes the branch over the leaves [low, high) of one group of sixteen and queues it.
func (h *Hasher) bottom(group, low, high int) {
	if cap(h.arena)-len(h.arena) < maximumBranch {
		h.batch.Flush()
		h.arena = reserve(h.arena, chunkBytes)
	}
	start := len(h.arena)
	var children [16]*ref
	for i := low; i < high; i++ {
		children[i&15] = &h.leaves[i]
	}
	h.arena = appendBranch(h.arena, &children)
	h.settle(&h.bottoms[group], h.arena[start:])
}

// settle fills the reference to an encoded node of the arena: embedded, or hashed with the
// next flush.
func (h *Hasher) settle(r *ref, node []byte) {
	if len(node) < len(r.data) {
		r.n = uint8(copy(r.data[:], node))
		return
	}
	r.n = uint8(len(r.data))
	h.batch.Add(node, &r.data)
}

// branch makes the node of up to sixteen children and hashes it at once.
func (h *Hasher) branch(children *[16]ref) ref {
	var pointers [16]*ref
	for i := range children {
		if children[i].n > 0 {
			pointers[i] = &children[i]
		}
	}
	h.arena = appendBranch(h.arena[:0], &pointers)
	return h.now()
}

// extension makes the node that leads over count nibbles, the last ones of path, to child.
func (h *Hasher) extension(path, count int, child *ref) ref {
	var compact [6]byte
	key := appendPath(compact[:0], uint64(path), count, pathExtension)
	h.arena = rlp.AppendListHeader(h.arena[:0], rlp.SizeString(key)+child.size())
	h.arena = rlp.AppendString(h.arena, key)
	h.arena = child.append(h.arena)
	return h.now()
}

// now settles the node that is the whole arena at once.
func (h *Hasher) now() ref {
	h.settle(&h.scratch, h.arena)
	h.batch.Flush()
	return h.scratch
}

// hash is the hash of the root node, which nothing embeds however short it is.
func (h *Hasher) hash(root ref) common.Hash {
	if int(root.n) == len(root.data) {
		return root.data
	}
	h.arena = append(h.arena[:0], root.data[:root.n]...)
	h.batch.Add(h.arena, &h.scratch.data)
	h.batch.Flush()
	return h.scratch.data
}
