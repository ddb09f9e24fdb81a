package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/bloom"
	"github.com/leani-go/leani/internal/header"
	"github.com/leani-go/leani/internal/receipt"
	"github.com/leani-go/leani/internal/rlp"
)

// encoder writes frames as lines. Equal frames give equal lines. It belongs to one goroutine.
type encoder struct {
	network *chain.Network // for blob gas prices; nil leaves them out

	dst     []byte
	header  header.Header
	bits    bloom.Memo
	scratch []byte
	gas     []transactionGas // by transaction
}

// transactionGas is what receipts say about the gas of their transaction.
type transactionGas struct {
	price    *big.Int // effective
	blobGas  uint64   // 0: no blobs
	envelope bool     // the transaction was decoded
}

// ErrNotEncoded means that a frame cannot be written because it holds transactions without their encoding.
var ErrNotEncoded = errors.New("a transaction without its encoding cannot be written")

var errScope = errors.New("a selection by no scope, or of no block, cannot be written")

// line appends the line of a frame, with its newline.
func (e *encoder) line(dst []byte, f *chain.Frame) ([]byte, error) {
	e.dst = dst
	var h *header.Header
	if f.Material(chain.CapabilityHeader).Present() && f.Header != nil {
		h = &e.header
		if err := header.Parse(f.Header, h); err != nil {
			return nil, fmt.Errorf("header: %w", err)
		}
	}
	for _, c := range frameMaterials {
		if m := f.Material(c); m.State == chain.MaterialFiltered && (m.Scope == nil || m.Scope.Blocks != nil && m.Scope.Blocks.Empty()) {
			return nil, fmt.Errorf("%s: %w", c, errScope)
		}
	}
	e.text(`{"chain_id":`)
	e.number(f.ChainID)
	e.text(`,"block":{"number":`)
	e.number(f.Number)
	e.octets(`,"hash":`, f.Hash[:])
	e.octets(`,"parent_hash":`, f.ParentHash[:])
	e.text(`,"timestamp":`)
	e.number(f.Timestamp)
	e.text(`},"finality":"`)
	e.text(f.Finality.Name())
	e.text(`"`)
	var failure error
	for i, c := range frameMaterials {
		e.text(`,"`)
		e.text(frameShape.names[firstMaterial+i])
		e.text(`":`)
		e.material(f.Material(c), func() {
			failure = errors.Join(failure, e.value(c, f, h))
		})
	}
	e.text(`,"provenance":[`)
	for i := range f.Provenance {
		e.comma(i)
		e.provenance(&f.Provenance[i])
	}
	e.text(`],"verification":`)
	e.verification(&f.Verification)
	if len(f.Ommers) > 0 && string(f.Ommers) != string(emptyList) {
		e.octets(`,"ommers":{"Complete":`, f.Ommers)
		e.text(`}`)
	}
	e.text("}\n")
	return e.dst, failure
}

func (e *encoder) value(c chain.Capability, f *chain.Frame, h *header.Header) error {
	switch c {
	case chain.CapabilityHeader:
		e.headerEnvelope(f, h)
	case chain.CapabilityTransactions:
		return e.transactions(f, h)
	case chain.CapabilityReceipts:
		e.receipts(f, h)
	case chain.CapabilityLogs:
		e.logs(f)
	case chain.CapabilityWithdrawals:
		return e.withdrawals(f)
	default: // frames hold nothing of these
		e.text("[]")
	}
	return nil
}

func (e *encoder) text(s string)   { e.dst = append(e.dst, s...) }
func (e *encoder) number(n uint64) { e.dst = strconv.AppendUint(e.dst, n, 10) }
func (e *encoder) octets(prefix string, b []byte) {
	e.text(prefix)
	e.dst = appendOctets(e.dst, b)
}

func (e *encoder) comma(i int) {
	if i > 0 {
		e.text(",")
	}
}

// quote writes a string; quotes, backslashes and control characters are escaped.
func (e *encoder) quote(s string) {
	e.text(`"`)
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			e.dst = append(e.dst, '\\', byte(r))
		case r < ' ':
			e.dst = fmt.Appendf(e.dst, `\u%04x`, r)
		default:
			e.dst = append(e.dst, string(r)...)
		}
	}
	e.text(`"`)
}

// octetText is each byte as decimal text with a comma, and its length.
var octetText = func() (table [256]struct {
	text   uint32 // little endian
	length int
}) {
	for v := range table {
		var b [4]byte
		table[v].length = copy(b[:], strconv.Itoa(v)+",")
		table[v].text = binary.LittleEndian.Uint32(b[:])
	}
	return table
}()

// appendOctets appends bytes as an array of numbers.
func appendOctets(dst, b []byte) []byte {
	dst = append(slices.Grow(dst, 4*len(b)+8), '[')
	n := len(dst)
	out := dst[:cap(dst)]
	for _, v := range b {
		t := &octetText[v]
		binary.LittleEndian.PutUint32(out[n:], t.text)
		n += t.length
	}
	if len(b) > 0 {
		n-- // the last comma
	}
	return append(out[:n], ']')
}

// material writes the form of a material with its value.
func (e *encoder) material(m *chain.Material, value func()) {
	switch m.State {
	case chain.MaterialComplete:
		e.text(`{"Complete":`)
		value()
		e.text(`}`)
	case chain.MaterialFiltered:
		e.text(`{"Filtered":{"value":`)
		value()
		e.text(`,"scope":`)
		e.scope(m.Scope)
		e.text(`,"completeness":"`)
		e.text(m.Completeness.String())
		e.text(`"}}`)
	default:
		e.text(`{"Missing":"`)
		e.text(m.Reason.String())
		e.text(`"}`)
	}
}

func (e *encoder) headerEnvelope(f *chain.Frame, h *header.Header) {
	if h == nil {
		e.text(`{"rlp":null}`)
		return
	}
	e.octets(`{"rlp":`, f.Header)
	e.octets(`,"transactions_root":`, h.TransactionsRoot[:])
	e.octets(`,"receipts_root":`, h.ReceiptsRoot[:])
	e.text(`,"withdrawals_root":`)
	if h.WithdrawalsRoot != nil {
		e.octets("", h.WithdrawalsRoot[:])
	} else {
		e.text("null")
	}
	e.text(`,"gas_limit":`)
	e.number(h.GasLimit)
	e.text(`,"gas_used":`)
	e.number(h.GasUsed)
	e.text(`,"base_fee_per_gas":`)
	if h.Fields >= header.FieldsLondon {
		e.octets("", common.LeftPadBytes(h.BaseFee, quantityBytes))
	} else {
		e.text("null")
	}
	e.text(`,"blob_gas_used":`)
	e.optional(h.BlobGasUsed, h.Fields >= header.FieldsCancun)
	e.text(`,"excess_blob_gas":`)
	e.optional(h.ExcessBlobGas, h.Fields >= header.FieldsCancun)
	whole := f.Material(chain.CapabilityTransactions).Complete()
	e.text(`,"size_bytes":`)
	e.optional(blockSize(&f.Block), whole && f.Ommers != nil && (h.WithdrawalsRoot == nil || f.Material(chain.CapabilityWithdrawals).Complete()))
	e.text(`,"transaction_count":`)
	e.optional(uint64(len(f.TransactionHashes)), whole)
	e.text(`,"consensus_size_bytes":null}`)
}

func (e *encoder) optional(n uint64, known bool) {
	if known {
		e.number(n)
	} else {
		e.text("null")
	}
}

// blockSize is the length of the RLP of a block.
func blockSize(b *chain.Block) uint64 {
	transactions := 0
	for _, envelope := range b.Transactions {
		if len(envelope) > 0 && envelopeType(envelope) == 0 {
			transactions += len(envelope)
		} else {
			transactions += rlp.SizeString(envelope)
		}
	}
	return uint64(rlp.SizeList(len(b.Header) + rlp.SizeList(transactions) + len(b.Ommers) + len(b.Withdrawals)))
}

func (e *encoder) transactions(f *chain.Frame, h *header.Header) error {
	e.gas = e.gas[:0]
	e.text("[")
	for i := range f.TransactionHashes {
		envelope := f.Transactions[i]
		if len(envelope) == 0 {
			return fmt.Errorf("transaction %d: %w", i, ErrNotEncoded)
		}
		e.comma(i)
		index := uint64(i)
		if len(f.TransactionIndexes) > 0 {
			index = uint64(f.TransactionIndexes[i])
		}
		e.octets(`{"hash":`, f.TransactionHashes[i][:])
		e.text(`,"transaction_type":`)
		e.number(uint64(envelopeType(envelope)))
		e.text(`,"index":`)
		e.number(index)
		e.octets(`,"encoded":`, envelope)
		e.text(`,"from":`)
		if len(f.Senders) == len(f.TransactionHashes) {
			e.octets("", f.Senders[i][:])
		} else {
			e.text("null")
		}
		var tx types.Transaction
		if err := tx.UnmarshalBinary(envelope); err != nil { // of a type that this build does not know
			e.gas = append(e.gas, transactionGas{})
			e.text(`,"blob_versioned_hashes":[]`)
		} else {
			e.gas = append(e.gas, e.transactionFields(&tx, h))
		}
		e.text(`,"size_bytes":`)
		e.number(uint64(len(envelope)))
		e.text("}")
	}
	e.text("]")
	return nil
}

// transactionFields writes what a transaction says, and gives what its receipt says about gas.
func (e *encoder) transactionFields(tx *types.Transaction, h *header.Header) transactionGas {
	e.text(`,"to":`)
	if to := tx.To(); to != nil {
		e.octets("", to[:])
	} else {
		e.text("null")
	}
	e.text(`,"nonce":`)
	e.number(tx.Nonce())
	e.text(`,"gas_limit":`)
	e.number(tx.Gas())
	e.quantity(`,"value":`, tx.Value())
	e.quantity(`,"max_fee_per_gas":`, tx.GasFeeCap())
	e.text(`,"max_priority_fee_per_gas":`)
	if tx.Type() >= types.DynamicFeeTxType {
		e.quantity("", tx.GasTipCap())
	} else {
		e.text("null")
	}
	e.text(`,"max_fee_per_blob_gas":`)
	if cap := tx.BlobGasFeeCap(); cap != nil {
		e.quantity("", cap)
	} else {
		e.text("null")
	}
	e.octets(`,"input":`, tx.Data())
	e.text(`,"blob_versioned_hashes":[`)
	for i, hash := range tx.BlobHashes() {
		e.comma(i)
		e.octets("", hash[:])
	}
	e.text("]")
	price := tx.GasFeeCap()
	if h != nil && h.Fields >= header.FieldsLondon {
		if sum := new(big.Int).Add(new(big.Int).SetBytes(h.BaseFee), tx.GasTipCap()); sum.Cmp(price) < 0 {
			price = sum
		}
	}
	return transactionGas{price: price, blobGas: uint64(len(tx.BlobHashes())) * params.BlobTxBlobGasPerBlob, envelope: true}
}

// quantity writes an integer of 256 bits; a larger one, which no valid transaction has, loses its upper bits.
func (e *encoder) quantity(prefix string, v *big.Int) {
	var b [quantityBytes]byte
	if v.BitLen() <= 8*quantityBytes {
		v.FillBytes(b[:])
	}
	e.octets(prefix, b[:])
}

func (e *encoder) receipts(f *chain.Frame, h *header.Header) {
	// The transactions of receipts are known when all are there, or the same ones.
	matched := len(e.gas) == len(f.Receipts) && slices.Equal(f.TransactionIndexes, f.ReceiptIndexes)
	blobPrice := e.blobPrice(f, h)
	var before uint64
	e.text("[")
	for i := range f.Receipts {
		r, logs := &f.Receipts[i], f.ReceiptLogs(i)
		e.comma(i)
		index := uint64(i)
		if len(f.ReceiptIndexes) > 0 {
			index = uint64(f.ReceiptIndexes[i])
		}
		var hash common.Hash
		if i < len(f.TransactionHashes) {
			hash = f.TransactionHashes[i]
		}
		e.octets(`{"transaction_hash":`, hash[:])
		e.text(`,"transaction_type":`)
		e.number(uint64(r.Type))
		e.text(`,"transaction_index":`)
		e.number(index)
		var logsBloom types.Bloom
		e.bits.AddLogs(&logsBloom, logs)
		e.bits.Flush()
		e.scratch = receipt.AppendCanonical(e.scratch[:0], r, logs, &logsBloom)
		e.octets(`,"encoded":`, e.scratch)
		e.text(`,"success":`)
		switch {
		case r.PostState != nil:
			e.text("null")
		case r.Status == 1:
			e.text("true")
		default:
			e.text("false")
		}
		e.text(`,"gas_used":`)
		e.optional(r.CumulativeGasUsed-before, len(f.ReceiptIndexes) == 0)
		before = r.CumulativeGasUsed
		e.text(`,"effective_gas_price":`)
		if matched && e.gas[i].envelope {
			e.quantity("", e.gas[i].price)
		} else {
			e.text("null")
		}
		blobs := matched && e.gas[i].blobGas > 0
		e.text(`,"blob_gas_used":`)
		if blobs {
			e.number(e.gas[i].blobGas)
		} else {
			e.text("null")
		}
		e.text(`,"blob_gas_price":`)
		if blobs && blobPrice != nil {
			e.quantity("", blobPrice)
		} else {
			e.text("null")
		}
		e.text(`,"logs":[`)
		first := int(r.LogsEnd) - len(logs)
		for j := range logs {
			e.comma(j)
			e.log(f, first+j, &hash, uint32(index))
		}
		e.text("]}")
	}
	e.text("]")
}

// blobPrice is the blob gas price of the block, nil when it is not known.
func (e *encoder) blobPrice(f *chain.Frame, h *header.Header) *big.Int {
	if e.network == nil || h == nil || h.Fields < header.FieldsCancun {
		return nil
	}
	price, err := e.network.BlobGasPrice(f.Timestamp, &h.ExcessBlobGas)
	if err != nil {
		return nil
	}
	return price.ToBig()
}

// logs writes the logs material.
func (e *encoder) logs(f *chain.Frame) {
	e.text("[")
	transaction := 0
	for i := range f.Logs {
		e.comma(i)
		var hash *common.Hash
		for len(f.LogPlaces) == 0 && transaction < len(f.Receipts) && f.Receipts[transaction].LogsEnd <= uint32(i) {
			transaction++
		}
		if len(f.LogPlaces) == 0 && transaction < len(f.TransactionHashes) {
			hash = &f.TransactionHashes[transaction]
		}
		e.log(f, i, hash, uint32(transaction))
	}
	e.text("]")
}

// log writes a log. Where the frame knows its place, that counts.
func (e *encoder) log(f *chain.Frame, i int, hash *common.Hash, transaction uint32) {
	l, index := &f.Logs[i], uint32(i)
	if len(f.LogPlaces) > 0 {
		hash, transaction, index = f.LogPlaces[i].TransactionHash, f.LogPlaces[i].TransactionIndex, f.LogPlaces[i].LogIndex
	}
	e.octets(`{"address":`, l.Address[:])
	e.text(`,"topics":[`)
	for j, topic := range l.Topics[:l.NumTopics] {
		e.comma(j)
		e.octets("", topic[:])
	}
	e.octets(`],"data":`, l.Data)
	e.text(`,"transaction_hash":`)
	if hash != nil {
		e.octets("", hash[:])
	} else {
		e.text("null")
	}
	e.text(`,"transaction_index":`)
	e.number(uint64(transaction))
	e.text(`,"log_index":`)
	e.number(uint64(index))
	e.text("}")
}

func (e *encoder) withdrawals(f *chain.Frame) error {
	e.text("[")
	if f.Withdrawals != nil {
		list := rlp.OpenList(f.Withdrawals)
		for i := 0; list.More(); i++ {
			fields := list.List()
			index, validator := fields.Uint64(), fields.Uint64()
			address := fields.Fixed(common.AddressLength)
			amount := fields.Uint64()
			if err := fields.End(); err != nil {
				return fmt.Errorf("withdrawal %d: %w", i, err)
			}
			e.comma(i)
			e.text(`{"index":`)
			e.number(index)
			e.text(`,"validator_index":`)
			e.number(validator)
			e.text(`,"amount_gwei":`)
			e.number(amount)
			e.octets(`,"address":`, address)
			e.text("}")
		}
		if err := list.End(); err != nil {
			return fmt.Errorf("withdrawals: %w", err)
		}
	}
	e.text("]")
	return nil
}
