package archive

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/header"
	"github.com/leani-go/leani/internal/receipt"
	"github.com/leani-go/leani/internal/rlp"
)

var (
	emptyList   = []byte{0xc0} // RLP
	emptyOmmers = types.EmptyUncleHash
)

// quantityBytes is the size of a 256-bit integer.
const quantityBytes = 32

var headerShape = shape{names: []string{
	"rlp", "transactions_root", "receipts_root", "withdrawals_root", "gas_limit", "gas_used", "base_fee_per_gas",
	"blob_gas_used", "excess_blob_gas", "size_bytes", "transaction_count", "consensus_size_bytes",
}}

// headerFields are what a frame says about its header beside the RLP.
type headerFields struct {
	set                                        uint32 // bit by position in headerShape
	transactions, receipts, withdrawals        common.Hash
	gasLimit, gasUsed, blobGasUsed, excessBlob uint64
	baseFee                                    [quantityBytes]byte
}

func (p *Parser) header() {
	s, f := &p.s, &p.fields
	for o := s.object(&headerShape); ; {
		i := s.member(&o)
		if i == none {
			break
		}
		if s.null() {
			continue
		}
		f.set |= 1 << i
		switch i {
		case 0:
			p.frame.Header = p.octets()
			p.frame.Details |= chain.DetailHeaderRLP
		case 1:
			f.transactions = p.hashValue()
		case 2:
			f.receipts = p.hashValue()
		case 3:
			f.withdrawals = p.hashValue()
		case 4:
			f.gasLimit = s.integer(math.MaxUint64)
		case 5:
			f.gasUsed = s.integer(math.MaxUint64)
		case 6:
			f.baseFee = p.hashValue()
		case 7:
			f.blobGasUsed = s.integer(math.MaxUint64)
		case 8:
			f.excessBlob = s.integer(math.MaxUint64)
		case 10:
			s.integer(math.MaxUint32)
		default:
			s.integer(math.MaxUint64)
		}
	}
}

// compare refuses fields that the header itself contradicts.
func (f *headerFields) compare(h *header.Header) error {
	var withdrawals common.Hash
	if h.WithdrawalsRoot != nil {
		withdrawals = *h.WithdrawalsRoot
	}
	for i, same := range []bool{
		1: f.transactions == *h.TransactionsRoot,
		2: f.receipts == *h.ReceiptsRoot,
		3: f.withdrawals == withdrawals,
		4: f.gasLimit == h.GasLimit,
		5: f.gasUsed == h.GasUsed,
		6: bytes.Equal(bytes.TrimLeft(f.baseFee[:], "\x00"), h.BaseFee),
		7: f.blobGasUsed == h.BlobGasUsed,
		8: f.excessBlob == h.ExcessBlobGas,
	} {
		if i > 0 && f.set>>i&1 != 0 && !same {
			return fmt.Errorf("%w: %s", ErrHash, headerShape.names[i])
		}
	}
	return nil
}

var transactionShape = shape{names: []string{
	"hash", "transaction_type", "index", "encoded", "from", "to", "nonce", "gas_limit", "value", "max_fee_per_gas",
	"max_priority_fee_per_gas", "max_fee_per_blob_gas", "input", "blob_versioned_hashes", "size_bytes",
}, required: first(3) | 1<<13}

func (p *Parser) transactions(m *chain.Material) {
	s, f := &p.s, p.frame
	envelopes := true
	for more := s.list(); more; more = s.element() {
		index := p.transaction()
		n := len(f.TransactionHashes) - 1
		if s.err != nil {
			return
		}
		envelopes = envelopes && f.Transactions[n] != nil
		if m.State == chain.MaterialFiltered {
			f.TransactionIndexes = append(f.TransactionIndexes, index)
		} else if int(index) != n {
			s.fail("transaction %d has index %d", n, index)
			return
		}
	}
	if envelopes {
		f.Details |= chain.DetailEnvelopes
	}
	if len(f.Senders) == len(f.TransactionHashes) {
		f.Details |= chain.DetailSenders
	} else {
		f.Senders = f.Senders[:0]
	}
}

// transaction reads a transaction and appends what is kept of it.
func (p *Parser) transaction() (index uint32) {
	s, f := &p.s, p.frame
	n := len(f.TransactionHashes)
	f.TransactionHashes = append(f.TransactionHashes, common.Hash{})
	f.Transactions = append(f.Transactions, nil)
	var kind byte
	for o := s.object(&transactionShape); ; {
		i := s.member(&o)
		if i > 2 && i != 13 && s.null() {
			continue
		}
		switch i {
		case none:
			if e := f.Transactions[n]; s.err == nil && e != nil && envelopeType(e) != kind {
				s.failAt(o.start, "transaction %d has type %d, its encoding has %d", n, kind, envelopeType(e))
			}
			return index
		case 0:
			f.TransactionHashes[n] = p.hashValue()
		case 1:
			kind = byte(s.integer(math.MaxUint8))
		case 2:
			index = uint32(s.integer(math.MaxUint32))
		case 3:
			f.Transactions[n] = p.octets()
			if s.err == nil && len(f.Transactions[n]) == 0 {
				s.fail("transaction %d has an empty encoding", n)
			}
		case 4:
			mark := len(p.arena)
			if a := p.address(); a != nil && len(f.Senders) == n {
				f.Senders = append(f.Senders, *a)
			}
			p.arena = p.arena[:mark]
		case 5:
			p.checkFixed(common.AddressLength)
		case 6, 7:
			s.integer(math.MaxUint64)
		case 8, 9, 10, 11:
			p.checkFixed(quantityBytes)
		case 12:
			p.checkOctets()
		case 13:
			for more := s.list(); more; more = s.element() {
				p.checkFixed(common.HashLength)
			}
		case 14:
			s.integer(math.MaxUint32)
		}
	}
}

// envelopeType is the EIP-2718 type of a transaction or receipt: its first byte, unless that begins the list of
// a legacy one.
func envelopeType(encoded []byte) byte {
	if encoded[0] >= 0xc0 {
		return 0
	}
	return encoded[0]
}

var receiptShape = shape{names: []string{
	"transaction_hash", "transaction_type", "transaction_index", "encoded", "success", "gas_used", "effective_gas_price",
	"blob_gas_used", "blob_gas_price", "logs",
}, required: first(3) | 1<<9}

func (p *Parser) receipts(m *chain.Material) {
	s, f := &p.s, p.frame
	details := chain.DetailReceiptEncodings | chain.DetailReceiptGas
	var gas uint64 // cumulative
	for more := s.list(); more; more = s.element() {
		n := len(f.Receipts)
		r := p.receipt(m.State, gas)
		if s.err != nil {
			return
		}
		gas = f.Receipts[n].CumulativeGasUsed
		details &= r.details
		if m.State == chain.MaterialFiltered {
			f.ReceiptIndexes = append(f.ReceiptIndexes, r.index)
		} else if int(r.index) != n {
			s.fail("receipt %d has index %d", n, r.index)
			return
		}
	}
	f.Details |= details
}

// readReceipt is what a receipt says beside what is kept of it.
type readReceipt struct {
	index   uint32
	details chain.Details
}

// receipt reads a receipt and appends it with its logs. gas is what the receipts before used.
func (p *Parser) receipt(state chain.MaterialState, gas uint64) (r readReceipt) {
	s, f := &p.s, p.frame
	n := len(f.Receipts)
	var (
		hash              *common.Hash
		kind              byte
		encoded           []byte
		success           bool
		used              uint64
		hasGas, hasPrice  bool
		logsAt, logsCount int
	)
	o := s.object(&receiptShape)
	for i := s.member(&o); i != none; i = s.member(&o) {
		if i > 2 && i != 9 && s.null() {
			continue
		}
		switch i {
		case 0:
			hash = p.hash()
		case 1:
			kind = byte(s.integer(math.MaxUint8))
		case 2:
			r.index = uint32(s.integer(math.MaxUint32))
		case 3:
			encoded = p.octets()
			r.details |= chain.DetailReceiptEncodings
		case 4:
			success = s.boolean()
		case 5:
			used, hasGas = s.integer(math.MaxUint64), true
		case 6:
			p.checkFixed(quantityBytes)
			hasPrice = true
		case 7:
			s.integer(math.MaxUint64)
		case 8:
			p.checkFixed(quantityBytes)
		case 9:
			s.peek()
			logsAt = s.pos
			logsCount = p.checkLogs()
		}
	}
	if s.err != nil {
		return r
	}
	if hasGas && hasPrice {
		r.details |= chain.DetailReceiptGas
	}
	first := len(f.Logs)
	if encoded == nil {
		kept := chain.Receipt{Type: kind, CumulativeGasUsed: gas + used}
		if success {
			kept.Status = 1
		}
		p.logsFrom(logsAt)
		kept.LogsEnd = uint32(len(f.Logs))
		f.Receipts = append(f.Receipts, kept)
	} else {
		bloom, err := receipt.DecodeOne(encoded, &f.Block)
		switch {
		case err != nil:
			s.failAt(o.start, "receipt %d: %v", n, err)
			return r
		case f.Receipts[n].Type != kind:
			s.failAt(o.start, "receipt %d has type %d, its encoding has %d", n, kind, f.Receipts[n].Type)
		case hasGas && state == chain.MaterialComplete && f.Receipts[n].CumulativeGasUsed-gas != used:
			s.failAt(o.start, "receipt %d used %d gas, its encoding gives %d", n, used, f.Receipts[n].CumulativeGasUsed-gas)
		case len(f.Logs)-first != logsCount:
			s.failAt(o.start, "receipt %d has %d logs, its encoding has %d", n, logsCount, len(f.Logs)-first)
		}
		p.blooms = append(p.blooms, bloom)
	}
	if state == chain.MaterialFiltered && s.err == nil {
		// Where the logs are in the block follows from what is written beside the encoding alone.
		f.Logs, f.LogPlaces = f.Logs[:first], f.LogPlaces[:first]
		p.logsFrom(logsAt)
		for i := first; i < len(f.LogPlaces); i++ {
			f.LogPlaces[i].TransactionHash, f.LogPlaces[i].TransactionIndex = hash, r.index
		}
	}
	return r
}

var logShape = shape{
	names:    []string{"address", "topics", "data", "transaction_hash", "transaction_index", "log_index"},
	required: first(3) | 1<<4 | 1<<5,
}

// checkLogs reads a list of logs that nobody keeps, or not yet, and counts them.
func (p *Parser) checkLogs() (count int) {
	s := &p.s
	for more := s.list(); more; more = s.element() {
		count++
		var l chain.Log
		mark := len(p.arena)
		p.log(&l)
		p.arena = p.arena[:mark]
	}
	return count
}

// log reads a log into the arena.
func (p *Parser) log(l *chain.Log) (place chain.LogPlace) {
	s := &p.s
	for o := s.object(&logShape); ; {
		switch s.member(&o) {
		case none:
			return place
		case 0:
			l.Address = p.address()
		case 1:
			for more := s.list(); more; more = s.element() {
				if l.NumTopics == chain.MaximumTopics {
					s.fail("a log has more than %d topics", chain.MaximumTopics)
					break
				}
				l.Topics[l.NumTopics] = p.hash()
				l.NumTopics++
			}
		case 2:
			l.Data = p.octets()
		case 3:
			if !s.null() {
				place.TransactionHash = p.hash()
			}
		case 4:
			place.TransactionIndex = uint32(s.integer(math.MaxUint32))
		case 5:
			place.LogIndex = uint32(s.integer(math.MaxUint32))
		}
	}
}

// logsFrom reads a list of logs that was checked before, keeps them, and goes back to where the scanner was.
func (p *Parser) logsFrom(at int) {
	s, f := &p.s, p.frame
	back := s.pos
	s.pos = at
	for more := s.list(); more; more = s.element() {
		var l chain.Log
		place := p.log(&l)
		f.Logs, f.LogPlaces = append(f.Logs, l), append(f.LogPlaces, place)
	}
	s.pos = back
}

// joinLogs decides which logs the frame has. Those of complete receipts are all of the block; without them,
// the logs material counts.
func (p *Parser) joinLogs() error {
	f := p.frame
	receipts, logs := f.Material(chain.CapabilityReceipts), f.Material(chain.CapabilityLogs)
	if receipts.Complete() {
		f.HasReceipts = true
		f.LogPlaces = f.LogPlaces[:0]
		if logs.Complete() {
			if p.logs != len(f.Logs) {
				return fmt.Errorf("%d logs, the receipts have %d", p.logs, len(f.Logs))
			}
		}
		return nil
	}
	if logs.Present() {
		f.Logs, f.LogPlaces = f.Logs[:0], f.LogPlaces[:0]
		for i := range f.Receipts {
			f.Receipts[i].LogsEnd = 0
		}
		p.logsFrom(p.logsAt)
	}
	return p.s.err
}

var withdrawalShape = shape{names: []string{"index", "validator_index", "amount_gwei", "address"}, required: first(4)}

// withdrawals reads a list of withdrawals and keeps it as RLP (EIP-4895).
func (p *Parser) withdrawals() {
	s, f := &p.s, p.frame
	type withdrawal struct{ index, validator, amount uint64 }
	mark := len(p.arena)
	for more := s.list(); more; more = s.element() {
		var (
			w       withdrawal
			address common.Address
		)
		for o := s.object(&withdrawalShape); ; {
			i := s.member(&o)
			if i == none {
				break
			}
			switch i {
			case 0:
				w.index = s.integer(math.MaxUint64)
			case 1:
				w.validator = s.integer(math.MaxUint64)
			case 2:
				w.amount = s.integer(math.MaxUint64)
			case 3:
				n := len(p.arena)
				if a := p.address(); a != nil {
					address = *a
				}
				p.arena = p.arena[:n]
			}
		}
		content := rlp.SizeUint64(w.index) + rlp.SizeUint64(w.validator) + 1 + common.AddressLength + rlp.SizeUint64(w.amount)
		p.arena = rlp.AppendListHeader(p.arena, content)
		p.arena = rlp.AppendUint64(p.arena, w.index)
		p.arena = rlp.AppendUint64(p.arena, w.validator)
		p.arena = rlp.AppendString(p.arena, address[:])
		p.arena = rlp.AppendUint64(p.arena, w.amount)
	}
	// The header of the list goes before its items.
	var header [9]byte
	head := rlp.AppendListHeader(header[:0], len(p.arena)-mark)
	p.arena = slices.Insert(p.arena, mark, head...)
	f.Withdrawals = p.arena[mark:len(p.arena):len(p.arena)]
}

// ommers reads our own member with the RLP list of ommers, and tells whether it is there.
func (p *Parser) ommers() bool {
	if p.s.null() {
		return false
	}
	there := false
	m := p.form(func(*chain.Material) {
		p.frame.Ommers = p.octets()
		there = true
	})
	return there && m.Complete()
}

var (
	sidecarShape   = shape{names: []string{"transaction_hash", "index", "versioned_hash", "blob", "commitment", "proof"}, required: first(6)}
	traceShape     = shape{names: []string{"transaction_hash", "schema", "encoded"}, required: first(3)}
	stateDiffShape = shape{names: []string{"address", "schema", "encoded"}, required: first(3)}
)

// checkList reads a list of objects that nobody keeps.
func (p *Parser) checkList(sh *shape) {
	s := &p.s
	for more := s.list(); more; more = s.element() {
		for o := s.object(sh); s.member(&o) != none; {
			if s.peek() == '[' {
				p.checkOctets()
			} else {
				s.skip()
			}
		}
	}
}
