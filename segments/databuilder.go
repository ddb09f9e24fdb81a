package segments

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
)

// DataOptions tune how a data file is written. The zero value works.
type DataOptions struct {
	// Compression of the pages that log queries do not touch: headers, bodies, transactions and
	// receipt scalars. None by default.
	Compression codec.Compression
}

// DataBuilder writes one data file and the index file that belongs to it.
//
// Blocks come in order through Add. Pages of headers, bodies, transactions and receipts go to the
// file as they fill; log rows, dictionaries and hashes stay in memory until Finish, about 30 bytes a
// log and 32 a transaction; Memory says how much. One goroutine; not reusable after Finish.
type DataBuilder struct {
	file *fileWriter
	info Info

	blocks       []byte
	headers      blobWriter
	bodies       blobWriter
	transactions blobWriter
	receipts     blobWriter
	hashes       []byte

	words  wordTable
	shapes shapeTable

	rowShapes       []uint32
	rowTransactions []uint32 // position in the file
	rowLengths      []uint32 // of trimmed data
	topics          []uint32 // unfinished word codes of topics beyond the first
	data            []byte   // trimmed data
	numBlocks       int
	finished        bool

	scratch []byte
}

// blockRowSize is the size of a row of the block column: hash, timestamp u64, first transaction u32,
// first log u32.
const blockRowSize = common.HashLength + 8 + 4 + 4

// Errors of DataBuilder.Add.
var (
	ErrNotConsecutive = errors.New("block does not follow the one before it")
	ErrNoReceipts     = errors.New("block has no receipts")
	ErrMalformedBlock = errors.New("block material does not fit together")
)

// NewDataBuilder starts a data file on out.
func NewDataBuilder(out io.Writer, opts DataOptions) *DataBuilder {
	b := &DataBuilder{file: newFileWriter(out, KindData)}
	b.info.Kind = KindData
	s := newSeed()
	b.words.seed, b.shapes.seed = s, s
	for _, c := range []struct {
		w  *blobWriter
		id columnID
	}{{&b.headers, columnHeaders}, {&b.bodies, columnBodies}, {&b.transactions, columnTransactions}, {&b.receipts, columnReceipts}} {
		*c.w = blobWriter{column: b.file.addColumn(c.id), compression: opts.Compression}
	}
	return b
}

// Blocks is the number of blocks added.
func (b *DataBuilder) Blocks() int { return b.numBlocks }

// Logs is the number of logs added.
func (b *DataBuilder) Logs() int { return len(b.rowShapes) }

// Memory is roughly what the builder holds, in bytes.
func (b *DataBuilder) Memory() int64 {
	return int64(cap(b.rowShapes)+cap(b.rowTransactions)+cap(b.rowLengths)+cap(b.topics))*4 +
		int64(cap(b.data)+cap(b.hashes)+cap(b.words.short)+cap(b.words.full)) +
		int64(len(b.words.slots.table)+len(b.shapes.slots.table))*4 + int64(len(b.shapes.shapes))*80
}

// Written is the number of bytes written to the file so far.
func (b *DataBuilder) Written() int64 { return int64(b.file.offset) }

// Add appends a block, which must be complete, verified, and the child of the one before. Nothing of
// the block is kept. After an error the builder is of no further use.
func (b *DataBuilder) Add(block *chain.Block) error {
	if err := b.check(block); err != nil {
		return fmt.Errorf("add block %s: %w", block.BlockRef, err)
	}
	if b.numBlocks == 0 {
		b.info.From, b.info.FirstParent, b.info.FirstHash = block.Number, block.ParentHash, block.Hash
	}
	b.info.To, b.info.LastHash = block.Number+1, block.Hash
	b.blocks = appendBlockRow(b.blocks, block.Hash, block.Timestamp, uint32(b.info.Transactions), uint32(len(b.rowShapes)))
	b.numBlocks++
	b.headers.add(block.Header)
	b.scratch = appendBody(b.scratch[:0], block)
	b.bodies.add(b.scratch)
	for i, tx := range block.Transactions {
		b.transactions.add(tx)
		b.hashes = append(b.hashes, block.TransactionHashes[i][:]...)
	}
	b.scratch = appendReceiptScalars(b.scratch[:0], block.Receipts)
	b.receipts.add(b.scratch)
	first, log := uint32(b.info.Transactions), uint32(0)
	b.info.Transactions += uint64(len(block.Transactions))
	for i := range block.Receipts {
		for ; log < block.Receipts[i].LogsEnd; log++ {
			b.addLog(&block.Logs[log], first+uint32(i))
		}
	}
	b.info.Logs = uint64(len(b.rowShapes))
	return b.file.err
}

func (b *DataBuilder) addLog(l *chain.Log, transaction uint32) {
	b.rowShapes = append(b.rowShapes, b.shapes.code(l, &b.words))
	b.rowTransactions = append(b.rowTransactions, transaction)
	for k := 1; k < int(l.NumTopics); k++ {
		b.topics = append(b.topics, b.words.code(l.Topics[k]))
	}
	start := len(b.data)
	b.data = codec.AppendWords(b.data, l.Data)
	b.rowLengths = append(b.rowLengths, uint32(len(b.data)-start))
}

func (b *DataBuilder) check(block *chain.Block) error {
	if b.numBlocks > 0 && (block.Number != b.info.To || block.ParentHash != b.info.LastHash) {
		return ErrNotConsecutive
	}
	if !block.HasReceipts {
		return ErrNoReceipts
	}
	n := len(block.Transactions)
	if len(block.TransactionHashes) != n || len(block.Receipts) != n {
		return fmt.Errorf("%w: %d transactions, %d hashes, %d receipts", ErrMalformedBlock, n, len(block.TransactionHashes), len(block.Receipts))
	}
	end, gas := uint32(0), uint64(0)
	for i := range block.Receipts {
		r := &block.Receipts[i]
		if r.LogsEnd < end || r.CumulativeGasUsed < gas || (r.PostState != nil && len(r.PostState) != common.HashLength) || r.Status > 1 || r.Type > maximumType {
			return fmt.Errorf("%w: receipt %d", ErrMalformedBlock, i)
		}
		end, gas = r.LogsEnd, r.CumulativeGasUsed
	}
	if int(end) != len(block.Logs) {
		return fmt.Errorf("%w: %d logs, receipts say %d", ErrMalformedBlock, len(block.Logs), end)
	}
	if n > maximumBlockRows || len(block.Logs) > maximumBlockRows {
		return fmt.Errorf("%w: %d transactions and %d logs pass the limit of %d", ErrMalformedBlock, n, len(block.Logs), maximumBlockRows)
	}
	if b.info.Transactions+uint64(n) > maximumRows || len(b.rowShapes)+len(block.Logs) > maximumRows {
		return fmt.Errorf("%w: more than %d rows in one file", ErrMalformedBlock, maximumRows)
	}
	for i := range block.Logs {
		l := &block.Logs[i]
		if l.NumTopics > chain.MaximumTopics || len(l.Data) > maximumLogData {
			return fmt.Errorf("%w: log %d", ErrMalformedBlock, i)
		}
	}
	return nil
}

// closingRow is the block row behind the last block: it says where that ends.
func closingRow(info *Info) []byte {
	return appendBlockRow(nil, common.Hash{}, 0, uint32(info.Transactions), uint32(info.Logs))
}

func appendBlockRow(dst []byte, hash common.Hash, timestamp uint64, firstTransaction, firstLog uint32) []byte {
	dst = append(dst, hash[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, timestamp)
	dst = binary.LittleEndian.AppendUint32(dst, firstTransaction)
	return binary.LittleEndian.AppendUint32(dst, firstLog)
}

// appendBody appends what a body holds besides transactions: the size of the ommer list and the
// list, then a byte that says whether there are withdrawals, and their list.
func appendBody(dst []byte, block *chain.Block) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(block.Ommers)))
	dst = append(dst, block.Ommers...)
	if block.Withdrawals == nil {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	return append(dst, block.Withdrawals...)
}

// maximumType is the highest type of a transaction or receipt (EIP-2718).
const maximumType = 0x7f

// The outcome of a receipt, in the two low bits of its first number; the type is above them.
const (
	outcomeFailure   = 0
	outcomeSuccess   = 1
	outcomePostState = 2 // 32 bytes follow
)

// appendReceiptScalars appends for each receipt type and outcome, the gas of the transaction, and
// the state root where receipts have one.
func appendReceiptScalars(dst []byte, receipts []chain.Receipt) []byte {
	gas := uint64(0)
	for i := range receipts {
		r := &receipts[i]
		outcome := uint64(r.Status)
		if r.PostState != nil {
			outcome = outcomePostState
		}
		dst = binary.AppendUvarint(dst, uint64(r.Type)<<2|outcome)
		dst = binary.AppendUvarint(dst, r.CumulativeGasUsed-gas)
		gas = r.CumulativeGasUsed
		if outcome == outcomePostState {
			dst = append(dst, r.PostState...)
		}
	}
	return dst
}

// Finish writes the rest of the data file and returns what it covers and its digest. The builder must
// hold at least one block.
func (b *DataBuilder) Finish() (Info, [32]byte, error) {
	if b.numBlocks == 0 {
		return Info{}, [32]byte{}, errors.New("finish data file: no block was added")
	}
	for _, w := range []*blobWriter{&b.headers, &b.bodies, &b.transactions, &b.receipts} {
		w.finish()
	}
	b.finished = true
	b.finishTopics()
	b.writeLogs()
	b.file.addFixed(columnBlocks, append(b.blocks, closingRow(&b.info)...), blockRowSize)
	shapes := make([]byte, 0, len(b.shapes.shapes)*shapeSize)
	for i := range b.shapes.shapes {
		shapes = b.shapes.shapes[i].appendStored(shapes, &b.words)
	}
	b.file.addFixed(columnShapes, shapes, shapeSize)
	b.file.addFixed(columnShortWords, b.words.short, shortWordSize)
	b.file.addFixed(columnWords, b.words.full, common.HashLength)
	digest, err := b.file.finish(b.info)
	return b.info, digest, err
}

// finishTopics replaces the codes that were given while words came in by those that are stored.
func (b *DataBuilder) finishTopics() {
	for i, t := range b.topics {
		b.topics[i] = b.words.final(t)
	}
}

// writeLogs writes the log pages: all transactions in order, each with its logs.
func (b *DataBuilder) writeLogs() {
	column := b.file.addColumn(columnLogs)
	column.column.rows = uint64(len(b.rowShapes))
	var page logPageBuilder
	flush := func() {
		if page.transactions() > 0 {
			column.writeKeyed(codec.None, page.encode(), page.firstRow, page.first)
		}
	}
	row, topic, data, block := 0, 0, 0, 0
	for tx := range uint32(b.info.Transactions) {
		for block+1 < b.numBlocks && tx >= binary.LittleEndian.Uint32(b.blocks[(block+1)*blockRowSize+40:]) {
			block++
		}
		hash := b.hashes[int(tx)*common.HashLength:][:common.HashLength]
		if n := page.transactions(); n == 0 || n == maximumPageTransactions {
			flush()
			page.start(tx, uint32(block), uint32(row))
		}
		page.addTransaction(hash)
		for ; row < len(b.rowShapes) && b.rowTransactions[row] == tx; row++ {
			shape := b.rowShapes[row]
			n := max(int(b.shapes.shapes[shape].topics), 1) - 1
			length := int(b.rowLengths[row])
			if !page.hasRoom(n, length) {
				flush()
				page.start(tx, uint32(block), uint32(row))
				page.addTransaction(hash)
			}
			page.addRow(shape, b.topics[topic:topic+n], tx, b.data[data:data+length])
			topic += n
			data += length
		}
	}
	flush()
}
