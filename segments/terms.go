package segments

import (
	"encoding/binary"

	"github.com/ethereum/go-ethereum/common"
	"github.com/zeebo/xxh3"
)

// TermKind says at which place of a log a value stands.
type TermKind uint8

// The kinds of terms. The numbers are part of the file format.
const (
	TermAddress TermKind = iota
	TermTopic0
	TermTopic1
	TermTopic2
	TermTopic3
)

// termHash is what an index knows of a term: 32 bits of the XXH3 of its value, seeded with its kind.
// Terms that collide share a posting list, so an index proposes positions and never decides.
func termHash(kind TermKind, value []byte) uint32 {
	return uint32(xxh3.HashSeed(value, uint64(kind)+1) >> 32)
}

// AddressTerm is the term of the emitter of a log.
func AddressTerm(a *common.Address) uint32 { return termHash(TermAddress, a[:]) }

// TopicTerm is the term of a topic at position i, 0 to 3.
func TopicTerm(i int, t *common.Hash) uint32 { return termHash(TermTopic0+TermKind(i), t[:]) }

// hashTerm is the term of a transaction or block hash in a locator: its first 32 bits.
func hashTerm(h []byte) uint32 { return binary.BigEndian.Uint32(h) }
