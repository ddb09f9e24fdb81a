package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/golang/snappy"
)

// The tags of the records of era files.
var (
	tagHeader       = [2]byte{3, 0}
	tagBody         = [2]byte{4, 0}
	tagReceipts     = [2]byte{5, 0}
	tagSlimReceipts = [2]byte{10, 0}
	tagIndex        = [2]byte{0x67, 0x32} // of EraE files
)

// sourceBlock is a block as an era file holds it, read by means that the product does not share: the
// records of the file from first to last, without its index, with go-ethereum's RLP.
type sourceBlock struct {
	number       uint64
	header       []byte
	transactions [][]byte // EIP-2718 envelopes
	ommers       []byte
	withdrawals  []byte   // nil: none
	receipts     [][]byte // consensus encodings; nil without hasReceipts
	hasReceipts  bool
	geth         *types.Header
}

// readSource reads an era file of either layout.
func readSource(tb testing.TB, path string) []sourceBlock {
	tb.Helper()
	content := readFile(tb, path)
	var blocks []sourceBlock
	bodies, receipts := 0, 0
	for len(content) > 0 {
		if len(content) < 8 {
			tb.Fatalf("%s: %d bytes after the last record", path, len(content))
		}
		tag, size := [2]byte(content), binary.LittleEndian.Uint32(content[2:])
		data := content[8 : 8+size]
		content = content[8+size:]
		switch tag {
		case tagHeader:
			b := sourceBlock{header: unsnap(tb, data), geth: new(types.Header)}
			decodeRLP(tb, b.header, b.geth)
			b.number = b.geth.Number.Uint64()
			blocks = append(blocks, b)
		case tagBody:
			blocks[bodies].setBody(tb, unsnap(tb, data))
			bodies++
		case tagReceipts:
			blocks[receipts].setReceipts(tb, unsnap(tb, data))
			receipts++
		case tagSlimReceipts:
			blocks[receipts].setSlimReceipts(tb, unsnap(tb, data))
			receipts++
		}
	}
	if len(blocks) == 0 || bodies != len(blocks) || receipts != len(blocks) {
		tb.Fatalf("%s: %d headers, %d bodies, %d receipts", path, len(blocks), bodies, receipts)
	}
	return blocks
}

func unsnap(tb testing.TB, framed []byte) []byte {
	tb.Helper()
	plain, err := io.ReadAll(snappy.NewReader(bytes.NewReader(framed)))
	if err != nil {
		tb.Fatal(err)
	}
	return plain
}

func decodeRLP(tb testing.TB, encoded []byte, v any) {
	tb.Helper()
	if err := rlp.DecodeBytes(encoded, v); err != nil {
		tb.Fatal(err)
	}
}

// envelope is an item of a list of transactions or receipts: a list as it is, or what a string holds.
func envelope(tb testing.TB, item rlp.RawValue) []byte {
	tb.Helper()
	kind, content, _, err := rlp.Split(item)
	if err != nil {
		tb.Fatal(err)
	}
	if kind == rlp.List {
		return item
	}
	return content
}

func (b *sourceBlock) setBody(tb testing.TB, plain []byte) {
	tb.Helper()
	var body []rlp.RawValue
	decodeRLP(tb, plain, &body)
	var transactions []rlp.RawValue
	decodeRLP(tb, body[0], &transactions)
	for _, t := range transactions {
		b.transactions = append(b.transactions, envelope(tb, t))
	}
	b.ommers = body[1]
	if len(body) > 2 {
		b.withdrawals = body[2]
	}
}

func (b *sourceBlock) setReceipts(tb testing.TB, plain []byte) {
	tb.Helper()
	b.hasReceipts = true
	var receipts []rlp.RawValue
	decodeRLP(tb, plain, &receipts)
	for _, r := range receipts {
		b.receipts = append(b.receipts, envelope(tb, r))
	}
}

// setSlimReceipts rebuilds the consensus encoding with go-ethereum's types.
func (b *sourceBlock) setSlimReceipts(tb testing.TB, plain []byte) {
	tb.Helper()
	b.hasReceipts = true
	var slim []struct {
		Type    uint8
		Outcome []byte
		Gas     uint64
		Logs    []*types.Log
	}
	decodeRLP(tb, plain, &slim)
	for _, s := range slim {
		r := &types.Receipt{Type: s.Type, CumulativeGasUsed: s.Gas, Logs: s.Logs}
		switch {
		case len(s.Outcome) == 32:
			r.PostState = s.Outcome
		case len(s.Outcome) == 1:
			r.Status = types.ReceiptStatusSuccessful
		}
		r.Bloom = types.CreateBloom(r)
		encoded, err := r.MarshalBinary()
		if err != nil {
			tb.Fatal(err)
		}
		b.receipts = append(b.receipts, encoded)
	}
}

// rewriteSource makes an EraE file again from the records of one, after change has seen the
// decompressed content of each header, body and list of receipts. The index is made anew.
func rewriteSource(tb testing.TB, content []byte, change func(i int, plain []byte)) []byte {
	tb.Helper()
	var out, offsets []byte
	var starts [][]int64 // by kind of record, in the order of the file
	kinds := map[byte]int{}
	for i := 0; len(content) > 0; {
		tag, size := [2]byte(content), binary.LittleEndian.Uint32(content[2:])
		data := content[8 : 8+size]
		content = content[8+size:]
		switch tag {
		case tagHeader, tagBody, tagSlimReceipts:
			plain := unsnap(tb, data)
			change(i, plain)
			i++
			var framed bytes.Buffer
			w := snappy.NewBufferedWriter(&framed)
			if _, err := w.Write(plain); err != nil {
				tb.Fatal(err)
			}
			if err := w.Close(); err != nil {
				tb.Fatal(err)
			}
			data = framed.Bytes()
			kind, known := kinds[tag[0]]
			if !known {
				kind = len(starts)
				kinds[tag[0]] = kind
				starts = append(starts, nil)
			}
			starts[kind] = append(starts[kind], int64(len(out)))
		case tagIndex:
			index := int64(len(out))
			offsets = append(offsets, data[:8]...) // first block
			for block := range starts[0] {
				for kind := range starts {
					offsets = binary.LittleEndian.AppendUint64(offsets, uint64(starts[kind][block]-index))
				}
			}
			offsets = binary.LittleEndian.AppendUint64(offsets, uint64(len(starts)))
			data = binary.LittleEndian.AppendUint64(offsets, uint64(len(starts[0])))
		}
		out = append(out, tag[0], tag[1])
		out = binary.LittleEndian.AppendUint32(out, uint32(len(data)))
		out = append(append(out, 0, 0), data...)
	}
	return out
}
