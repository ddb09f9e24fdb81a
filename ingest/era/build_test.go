package era

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	gethrlp "github.com/ethereum/go-ethereum/rlp"
	"github.com/golang/snappy"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/rlp"
	"github.com/leani-go/leani/internal/shareddata"
)

// This file makes era files for the tests: of any layout, whole or with chosen defects.

// bundled is the folder of real Mainnet blocks in the repository.
func bundled(tb testing.TB) string {
	return filepath.Join(shareddata.Root(tb), "testdata", "era", "mainnet-mini")
}

// smallest is the smallest bundled file.
const smallest = "mainnet-22431083-22431084-noproofs.ere"

func read(tb testing.TB, path string) []byte {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// open opens file content.
func open(content []byte, o Options) (*File, error) {
	return Open("test.ere", bytes.NewReader(content), int64(len(content)), o)
}

// readAll reads every block of a file with a buffer of its own for each.
func readAll(f *File, parts chain.Parts) ([]chain.Block, error) {
	blocks := make([]chain.Block, f.Range().Len())
	for i := range blocks {
		if err := f.ReadBlock(f.Range().From+uint64(i), parts, new(Buffer), &blocks[i]); err != nil {
			return blocks[:i], err
		}
	}
	return blocks, nil
}

func framed(plain []byte) []byte {
	var b bytes.Buffer
	w := snappy.NewBufferedWriter(&b)
	w.Write(plain)
	w.Close()
	return b.Bytes()
}

func appendRecord(dst []byte, t tag, data []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(t))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(data)))
	return append(append(dst, 0, 0), data...)
}

// column is a component of all blocks: its tag and the data of each record.
type column struct {
	tag  tag
	data [][]byte
}

// grouped is an EraE file in the making.
type grouped struct {
	start    uint64
	columns  []column // in file order
	slots    []int    // column of each index slot; nil means in file order
	surplus  []byte   // records between the components and the index
	padding  int      // unindexed bytes after each record
	versions int      // extra version records in front
}

// build lays out the file.
func (g grouped) build() []byte {
	file := appendRecord(nil, tagVersion, nil)
	for range g.versions {
		file = appendRecord(file, tagVersion, nil)
	}
	offsets := make([][]int, len(g.columns))
	for c, column := range g.columns {
		for _, data := range column.data {
			offsets[c] = append(offsets[c], len(file))
			file = append(appendRecord(file, column.tag, data), make([]byte, g.padding)...)
		}
	}
	file = append(file, g.surplus...)
	slots := g.slots
	if slots == nil {
		for c := range g.columns {
			slots = append(slots, c)
		}
	}
	index := binary.LittleEndian.AppendUint64(nil, g.start)
	blocks := len(g.columns[0].data)
	for i := range blocks {
		for _, c := range slots {
			index = binary.LittleEndian.AppendUint64(index, uint64(offsets[c][i]-len(file)))
		}
	}
	index = binary.LittleEndian.AppendUint64(index, uint64(len(slots)))
	index = binary.LittleEndian.AppendUint64(index, uint64(blocks))
	return appendRecord(file, tagDynamicBlockIndex, index)
}

// plain returns the decompressed components of blocks.
func bodyOf(b *chain.Block) []byte {
	var transactions []byte
	for _, envelope := range b.Transactions {
		if envelope[0] >= 0xc0 {
			transactions = append(transactions, envelope...)
		} else {
			transactions = rlp.AppendString(transactions, envelope)
		}
	}
	content := append(rlp.AppendListHeader(nil, len(transactions)), transactions...)
	content = append(content, b.Ommers...)
	content = append(content, b.Withdrawals...)
	return append(rlp.AppendListHeader(nil, len(content)), content...)
}

// slimReceipt is a receipt as EraE files have it.
type slimReceipt struct {
	Type              uint64
	Outcome           []byte // status or state root
	CumulativeGasUsed uint64
	Logs              []types.Log
}

func slimOf(b *chain.Block) []byte {
	var content []byte
	for i := range b.Receipts {
		r := &b.Receipts[i]
		item := slimReceipt{Type: uint64(r.Type), Outcome: r.PostState, CumulativeGasUsed: r.CumulativeGasUsed}
		if r.PostState == nil && r.Status != 0 {
			item.Outcome = []byte{r.Status}
		}
		for _, l := range b.ReceiptLogs(i) {
			topics := make([]common.Hash, l.NumTopics)
			for k := range topics {
				topics[k] = *l.Topics[k]
			}
			item.Logs = append(item.Logs, types.Log{Address: *l.Address, Topics: topics, Data: l.Data})
		}
		encoded, err := gethrlp.EncodeToBytes(&item)
		if err != nil {
			panic(err) // memory takes every write
		}
		content = append(content, encoded...)
	}
	return append(rlp.AppendListHeader(nil, len(content)), content...)
}

// real returns the two blocks of the smallest bundled file as columns of an EraE file.
func real(tb testing.TB) (g grouped, blocks []chain.Block) {
	tb.Helper()
	f, err := OpenPath(filepath.Join(bundled(tb), smallest), Options{})
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	if blocks, err = readAll(f, chain.PartsAll); err != nil {
		tb.Fatal(err)
	}
	g = grouped{start: blocks[0].Number, columns: []column{{tag: tagHeader}, {tag: tagBody}, {tag: tagSlimReceipts}}}
	for i := range blocks {
		for c, data := range [][]byte{blocks[i].Header, bodyOf(&blocks[i]), slimOf(&blocks[i])} {
			g.columns[c].data = append(g.columns[c].data, framed(data))
		}
	}
	return g, blocks
}

// interleaved lays out an era1 file of the records of each block.
func interleaved(start uint64, records [][]byte, surplus []byte) []byte {
	file := appendRecord(nil, tagVersion, nil)
	var offsets []int
	for _, r := range records {
		offsets = append(offsets, len(file))
		file = append(file, r...)
	}
	file = append(file, surplus...)
	index := binary.LittleEndian.AppendUint64(nil, start)
	for _, offset := range offsets {
		index = binary.LittleEndian.AppendUint64(index, uint64(offset-len(file)))
	}
	index = binary.LittleEndian.AppendUint64(index, uint64(len(offsets)))
	return appendRecord(file, tagBlockIndex, index)
}
