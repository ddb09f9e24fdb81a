package bloom

import (
	"encoding/binary"
	"math/bits"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/keccak"
)

const (
	// DefaultEntries is a table size that keeps the popular values of Mainnet and stays
	// within a level 2 cache (about 640 KiB).
	DefaultEntries = 1 << 14
	// maximumPending is the number of unknown values gathered before they are hashed.
	maximumPending = 128
)

// Memo adds values to blooms and remembers the bits of the values it saw in a direct-mapped
// table of fixed size: a value that meets another one in its place replaces it.
//
// The zero value is ready and uses DefaultEntries.
type Memo struct {
	table   []entry
	shift   uint // of the multiplied key, leaves an index into table
	pending [maximumPending]pending
	queued  int
	batch   keccak.Batch
}

// entry holds the bits of one value. Values of 20 and of 32 bytes differ in size even where
// their padded bytes agree.
type entry struct {
	key  [4]uint64
	bits Bits
	size uint8 // bytes of the value, 0 for an empty place
}

// Sizes in memory on a 64-bit machine, in bytes; TestSizes compares.
const (
	entryBytes = 40
	// memoBytes is a Memo without its table: mostly the values that wait to be hashed.
	memoBytes = 10_600
)

// pending is a value that is not in the table and waits to be hashed.
type pending struct {
	value  common.Hash // the first size bytes
	digest common.Hash
	target *types.Bloom
	place  uint32
	size   uint8
}

// NewMemo returns a Memo with a table of at least the given number of entries, rounded up to
// a power of two.
func NewMemo(entries int) *Memo {
	m := new(Memo)
	m.init(entries)
	return m
}

func (m *Memo) init(entries int) {
	length := bits.Len(uint(max(entries, 2) - 1))
	m.table = make([]entry, 1<<length)
	m.shift = uint(64 - length)
}

// Memory is how many bytes the Memo holds on to, itself included.
func (m *Memo) Memory() int64 { return memoBytes + int64(cap(m.table))*entryBytes }

// AddLogs adds the addresses and topics of the logs to b, as Add does.
func (m *Memo) AddLogs(b *types.Bloom, logs []chain.Log) {
	for i := range logs {
		l := &logs[i]
		m.AddAddress(b, l.Address)
		for _, topic := range l.Topics[:l.NumTopics] {
			m.AddTopic(b, topic)
		}
	}
}

// AddAddress sets the bits of an address in b, at the latest when Flush is called. b must stay
// in place until then.
func (m *Memo) AddAddress(b *types.Bloom, v *common.Address) {
	m.add(b, [4]uint64{
		binary.LittleEndian.Uint64(v[0:]),
		binary.LittleEndian.Uint64(v[8:]),
		uint64(binary.LittleEndian.Uint32(v[16:])),
	}, common.AddressLength)
}

// AddTopic sets the bits of a topic in b, at the latest when Flush is called. b must stay in
// place until then.
func (m *Memo) AddTopic(b *types.Bloom, v *common.Hash) {
	m.add(b, [4]uint64{
		binary.LittleEndian.Uint64(v[0:]),
		binary.LittleEndian.Uint64(v[8:]),
		binary.LittleEndian.Uint64(v[16:]),
		binary.LittleEndian.Uint64(v[24:]),
	}, common.HashLength)
}

func (m *Memo) add(b *types.Bloom, key [4]uint64, size uint8) {
	if m.table == nil {
		m.init(DefaultEntries)
	}
	// Multiply-shift (Dietzfelbinger) of the folded value: only the spread of ordinary keys
	// matters, a collision costs one hash. The constant is 2^64 divided by the golden ratio.
	folded := key[0] ^ bits.RotateLeft64(key[1], 17) ^ bits.RotateLeft64(key[2], 31) ^ bits.RotateLeft64(key[3], 47)
	place := uint32(folded * 0x9e3779b97f4a7c15 >> m.shift)
	e := &m.table[place]
	if e.key == key && e.size == size {
		e.bits.AddTo(b)
		return
	}
	if m.queued == maximumPending {
		m.Flush()
	}
	p := &m.pending[m.queued]
	m.queued++
	for i, word := range key {
		binary.LittleEndian.PutUint64(p.value[8*i:], word)
	}
	p.size, p.target, p.place = size, b, place
}

// Flush hashes the values that were unknown so far and completes every Add before it.
func (m *Memo) Flush() {
	queue := m.pending[:m.queued]
	for i := range queue {
		p := &queue[i]
		m.batch.Add(p.value[:p.size], &p.digest)
	}
	m.batch.Flush()
	for i := range queue {
		p := &queue[i]
		e := &m.table[p.place]
		for w := range e.key {
			e.key[w] = binary.LittleEndian.Uint64(p.value[8*w:])
		}
		e.size = p.size
		e.bits = BitsOf(&p.digest)
		e.bits.AddTo(p.target)
		p.target = nil
	}
	m.queued = 0
}
