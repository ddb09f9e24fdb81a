// Package chainmodel makes random blocks for tests: popular and rare addresses and topics, empty blocks,
// blocks without logs, long gaps between logging transactions, data of all lengths. The blocks link by
// hash, but their roots, signatures and headers mean nothing: use real chains to test verification.
package chainmodel

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/leani-go/leani/chain"
)

// Model makes the blocks of one random chain. One goroutine.
type Model struct {
	// Rand is the source of randomness.
	Rand *rand.Rand
	// Next is the number of the next block, Parent its parent hash. Set both to go back.
	Next   uint64
	Parent common.Hash
	// Addresses and Topics are the values that logs repeat, the most popular first.
	Addresses []common.Address
	Topics    []common.Hash
	// Transactions bounds the transactions of a block; 0 stands for a mix of up to some 500.
	Transactions int
}

// New starts a chain at block from.
func New(seed uint64, from uint64) *Model {
	m := &Model{Rand: rand.New(rand.NewPCG(seed, 7)), Next: from}
	for i := range 60 {
		h := m.Hash()
		m.Addresses = append(m.Addresses, common.Address(h[:20]))
		switch i % 4 {
		case 0:
			clear(h[:12])
		case 1:
			clear(h[:31])
		}
		m.Topics = append(m.Topics, h)
	}
	return m
}

// Hash is a random hash.
func (m *Model) Hash() (h common.Hash) {
	for i := 0; i < 32; i += 8 {
		binary.LittleEndian.PutUint64(h[i:], m.Rand.Uint64())
	}
	return h
}

// popular picks small numbers often.
func (m *Model) popular(n int) int { return min(n-1, int(m.Rand.ExpFloat64()*float64(n)/8)) }

func (m *Model) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		if m.Rand.IntN(3) == 0 {
			b[i] = byte(m.Rand.Uint32())
		}
	}
	return b
}

func (m *Model) log() chain.Log {
	l := chain.Log{Address: &m.Addresses[m.popular(len(m.Addresses))], NumTopics: uint8(m.Rand.IntN(5))}
	for k := range int(l.NumTopics) {
		t := m.Topics[m.popular(len(m.Topics))]
		if k > 0 && m.Rand.IntN(4) == 0 {
			t = m.Hash() // seen once
		}
		l.Topics[k] = &t
	}
	switch m.Rand.IntN(10) {
	case 0:
	case 1:
		l.Data = m.bytes(m.Rand.IntN(9000))
	case 2:
		l.Data = m.bytes(m.Rand.IntN(100))
	default:
		l.Data = make([]byte, 32*(1+m.Rand.IntN(4)))
		copy(l.Data[24:], m.bytes(8))
	}
	return l
}

// Block is the next block of the chain.
func (m *Model) Block() *chain.Block {
	b := &chain.Block{HasReceipts: true, Ommers: []byte{0xc0}}
	// A header that starts as real ones do: a list of more than 255 bytes, the parent hash first.
	b.Header = append([]byte{0xf9, 0x02, 0x00, 0xa0}, m.Parent[:]...)
	b.Header = append(b.Header, m.bytes(0x200-33)...)
	b.BlockRef = chain.BlockRef{Number: m.Next, Hash: crypto.Keccak256Hash(b.Header), ParentHash: m.Parent, Timestamp: 1700000000 + 12*m.Next}
	m.Next, m.Parent = m.Next+1, b.Hash
	if m.Rand.IntN(2) == 0 {
		b.Withdrawals = append([]byte{0xc0}, m.bytes(m.Rand.IntN(50))...)
	}
	if m.Rand.IntN(5) == 0 {
		return b
	}
	gas := uint64(0)
	quiet := m.Rand.IntN(4) == 0
	transactions := m.Rand.IntN(60) + m.Rand.IntN(2)*m.Rand.IntN(500)
	if m.Transactions > 0 {
		transactions = m.Rand.IntN(m.Transactions + 1)
	}
	for i := range transactions {
		b.Transactions = append(b.Transactions, m.bytes(1+m.Rand.IntN(400)))
		b.TransactionHashes = append(b.TransactionHashes, m.Hash())
		gas += uint64(m.Rand.IntN(1 << 20))
		r := chain.Receipt{Type: byte(i % 5), Status: byte(m.Rand.IntN(2)), CumulativeGasUsed: gas}
		if m.Rand.IntN(50) == 0 {
			h := m.Hash()
			r.PostState, r.Status = h[:], 0
		}
		if !quiet && m.Rand.IntN(3) == 0 || m.Rand.IntN(300) == 0 {
			for range m.Rand.IntN(6) {
				b.Logs = append(b.Logs, m.log())
			}
		}
		r.LogsEnd = uint32(len(b.Logs))
		b.Receipts = append(b.Receipts, r)
	}
	return b
}
