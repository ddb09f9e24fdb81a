package segments

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
)

// A data file names the values of its logs by number. A topic is a word; a shape stands for what
// most logs of one event of one contract share: address, first topic, number of topics and length
// of the data.

const (
	shapeSize     = 32 // address 20, first topic code u32, topic count u8, data length u32, reserved 3
	shortWordSize = common.AddressLength
	// noTopic is the first topic code of a shape without topics.
	noTopic = ^uint32(0)
)

// seed makes the hash tables of a builder unpredictable, so that chosen topics cannot pile up in
// one slot.
type seed [2]uint64

func newSeed() seed { return seed{rand.Uint64() | 1, rand.Uint64() | 1} }

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func (s *seed) word(w *common.Hash) uint64 {
	le := binary.LittleEndian
	return mix(mix(le.Uint64(w[0:])^s[0], le.Uint64(w[8:])^s[1])^le.Uint64(w[16:]), le.Uint64(w[24:])^s[0])
}

func (s *seed) address(a *common.Address) uint64 {
	le := binary.LittleEndian
	return mix(mix(le.Uint64(a[0:])^s[0], le.Uint64(a[8:])^s[1])^s[1], uint64(le.Uint32(a[16:]))^s[0])
}

// slots is an open-addressing table of codes; the owner compares values.
type slots struct {
	table []uint32 // code+1, 0 when empty
	count int
}

// grow makes room for one more code; rehash gives the hash of a code.
func (t *slots) grow(rehash func(code uint32) uint64) {
	if (t.count+1)*2 <= len(t.table) {
		return
	}
	old := t.table
	t.table = make([]uint32, max(1024, 2*len(old)))
	for _, c := range old {
		if c != 0 {
			t.put(rehash(c-1), c-1)
		}
	}
}

func (t *slots) put(hash uint64, code uint32) {
	mask := uint64(len(t.table) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		if t.table[i] == 0 {
			t.table[i] = code + 1
			return
		}
	}
}

// wordTable numbers topics by first appearance. Words of at most 20 significant bytes, which most
// are, are kept apart and stored without their zero bytes. While the table grows a code is the
// position in its list, times two, plus one for a full word; final turns it into what is stored.
type wordTable struct {
	seed  seed
	slots slots
	short []byte // 20 bytes each
	full  []byte // 32 bytes each
}

func isShort(w *common.Hash) bool {
	return binary.LittleEndian.Uint64(w[:])|uint64(binary.LittleEndian.Uint32(w[8:])) == 0
}

func (t *wordTable) equal(code uint32, w *common.Hash) bool {
	i := int(code >> 1)
	if code&1 == 1 {
		return common.Hash(t.full[i*common.HashLength:][:common.HashLength]) == *w
	}
	return isShort(w) && common.Address(t.short[i*shortWordSize:][:shortWordSize]) == common.Address(w[12:])
}

// value writes the word of a code to w.
func (t *wordTable) value(code uint32, w *common.Hash) {
	i := int(code >> 1)
	if code&1 == 1 {
		copy(w[:], t.full[i*common.HashLength:])
		return
	}
	*w = common.Hash{}
	copy(w[12:], t.short[i*shortWordSize:][:shortWordSize])
}

func (t *wordTable) code(w *common.Hash) uint32 {
	t.slots.grow(func(code uint32) uint64 {
		var v common.Hash
		t.value(code, &v)
		return t.seed.word(&v)
	})
	hash := t.seed.word(w)
	mask := uint64(len(t.slots.table) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		c := t.slots.table[i]
		if c == 0 {
			c = t.add(w)
			t.slots.table[i] = c + 1
			t.slots.count++
			return c
		}
		if t.equal(c-1, w) {
			return c - 1
		}
	}
}

func (t *wordTable) add(w *common.Hash) uint32 {
	if isShort(w) {
		t.short = append(t.short, w[12:]...)
		return uint32(len(t.short)/shortWordSize-1) << 1
	}
	t.full = append(t.full, w[:]...)
	return uint32(len(t.full)/common.HashLength-1)<<1 | 1
}

func (t *wordTable) len() int {
	return len(t.short)/shortWordSize + len(t.full)/common.HashLength
}

// final is the stored code: short words come first.
func (t *wordTable) final(code uint32) uint32 {
	if code == noTopic {
		return noTopic
	}
	if code&1 == 1 {
		return uint32(len(t.short)/shortWordSize) + code>>1
	}
	return code >> 1
}

// shape is one entry of the shape dictionary while it is built.
type shape struct {
	address common.Address
	topic   common.Hash // the first topic, zero without topics
	word    uint32      // its unfinished word code, noTopic without topics
	topics  uint8
	length  uint32 // of the data, in bytes
}

// shapeTable numbers shapes by first appearance.
type shapeTable struct {
	seed   seed
	slots  slots
	shapes []shape
}

func (t *shapeTable) hash(address *common.Address, topic *common.Hash, topics uint8, length uint32) uint64 {
	h := t.seed.address(address) ^ uint64(length)<<3 ^ uint64(topics)
	if topics > 0 {
		h = mix(h^t.seed[1], t.seed.word(topic))
	}
	return h
}

// code finds or adds the shape of a log. words numbers its first topic when the shape is new.
func (t *shapeTable) code(l *chain.Log, words *wordTable) uint32 {
	t.slots.grow(func(code uint32) uint64 {
		s := &t.shapes[code]
		return t.hash(&s.address, &s.topic, s.topics, s.length)
	})
	length := uint32(len(l.Data))
	hash := t.hash(l.Address, l.Topics[0], l.NumTopics, length)
	mask := uint64(len(t.slots.table) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		c := t.slots.table[i]
		if c == 0 {
			s := shape{address: *l.Address, word: noTopic, topics: l.NumTopics, length: length}
			if l.NumTopics > 0 {
				s.topic = *l.Topics[0]
				s.word = words.code(l.Topics[0])
			}
			t.shapes = append(t.shapes, s)
			t.slots.table[i] = uint32(len(t.shapes))
			t.slots.count++
			return uint32(len(t.shapes) - 1)
		}
		s := &t.shapes[c-1]
		if s.topics == l.NumTopics && s.length == length && s.address == *l.Address && (s.topics == 0 || s.topic == *l.Topics[0]) {
			return c - 1
		}
	}
}

// appendStored appends a finished shape.
func (s *shape) appendStored(dst []byte, words *wordTable) []byte {
	dst = append(dst, s.address[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, words.final(s.word))
	dst = binary.LittleEndian.AppendUint32(dst, s.length)
	return append(dst, s.topics, 0, 0, 0)
}

// stored is the word of a stored code.
func (t *wordTable) stored(code uint32) (w common.Hash) {
	if short := uint32(len(t.short) / shortWordSize); code >= short {
		t.value((code-short)<<1|1, &w)
	} else {
		t.value(code<<1, &w)
	}
	return w
}
