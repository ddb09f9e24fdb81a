package segments

import (
	"bytes"
	"errors"
	"io"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
)

// The builder refuses blocks that would make a file of nonsense, by reason.
func TestDataBuilderRefusesBlocks(t *testing.T) {
	for _, c := range []struct {
		name string
		want error
		edit func(b *chain.Block)
	}{
		{"a gap", ErrNotConsecutive, func(b *chain.Block) { b.Number++ }},
		{"another parent", ErrNotConsecutive, func(b *chain.Block) { b.ParentHash[0]++ }},
		{"no receipts", ErrNoReceipts, func(b *chain.Block) { b.HasReceipts = false }},
		{"a hash too few", ErrMalformedBlock, func(b *chain.Block) { b.TransactionHashes = b.TransactionHashes[1:] }},
		{"a receipt too few", ErrMalformedBlock, func(b *chain.Block) { b.Receipts = b.Receipts[1:] }},
		{"gas that falls", ErrMalformedBlock, func(b *chain.Block) { b.Receipts[1].CumulativeGasUsed = 1 }},
		{"a status of 2", ErrMalformedBlock, func(b *chain.Block) { b.Receipts[1].Status = 2 }},
		{"a type of 128", ErrMalformedBlock, func(b *chain.Block) { b.Receipts[1].Type = 128 }},
		{"a short state root", ErrMalformedBlock, func(b *chain.Block) { b.Receipts[1].PostState = make([]byte, 31) }},
		{"a log too many", ErrMalformedBlock, func(b *chain.Block) { b.Logs = append(b.Logs, b.Logs[0]) }},
		{"logs that go back", ErrMalformedBlock, func(b *chain.Block) { b.Receipts[0].LogsEnd = 9 }},
		{"five topics", ErrMalformedBlock, func(b *chain.Block) { b.Logs[0].NumTopics = 5 }},
		{"data of 8 MiB", ErrMalformedBlock, func(b *chain.Block) { b.Logs[0].Data = make([]byte, maximumLogData+1) }},
	} {
		first := exampleBlock(99, common.Hash{})
		b := exampleBlock(100, first.Hash, []byte{1}, []byte{2})
		exampleLog(b, 0x11, []byte("data"), transferEvent)
		c.edit(b)
		builder := NewDataBuilder(io.Discard, DataOptions{})
		if err := builder.Add(first); err != nil {
			t.Fatal(err)
		}
		if err := builder.Add(b); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	if _, _, err := NewDataBuilder(io.Discard, DataOptions{}).Finish(); err == nil {
		t.Error("a file without blocks was finished")
	}
	if _, _, err := NewDataBuilder(io.Discard, DataOptions{}).WriteIndex(io.Discard); err == nil {
		t.Error("an index was written before its data file was finished")
	}
}

// A page holds at most 16 MiB: what cannot be framed is an error of the builder, not a file that lies.
func TestDataBuilderRefusesLargeBlobs(t *testing.T) {
	b := exampleBlock(100, common.Hash{}, make([]byte, codec.MaximumPage))
	builder := NewDataBuilder(io.Discard, DataOptions{})
	err := builder.Add(b)
	if err == nil {
		_, _, err = builder.Finish()
	}
	if err == nil {
		t.Error("a transaction of 16 MiB was accepted")
	}
}

// The largest log that is accepted comes back, in a page of its own.
func TestLargestLog(t *testing.T) {
	b := exampleBlock(100, common.Hash{}, []byte{1})
	large := make([]byte, maximumLogData)
	for i := range large {
		large[i] = byte(i) | 1
	}
	for _, data := range [][]byte{nil, large, []byte("small"), make([]byte, maximumLogData)} {
		exampleLog(b, 0x11, data, transferEvent)
	}
	raw, _ := buildPair(t, []*chain.Block{b}, codec.None)
	if r := checkFile(t, raw); len(r.Problems) > 0 {
		t.Fatal(r.Problems)
	}
	var got chain.Block
	if err := openData(t, raw, nil).Load(100, chain.PartsAll, &got, nil); err != nil {
		t.Fatal(err)
	}
	for i := range b.Logs {
		if !bytes.Equal(got.Logs[i].Data, b.Logs[i].Data) {
			t.Errorf("data of log %d differs", i)
		}
	}
}

// failingWriter fails when it has taken a number of bytes.
type failingWriter struct{ left int }

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errBroken
	}
	return len(b), nil
}

// Whatever is written last fails when the disk does: no builder says that a file is there that is not.
func TestBuildersReportWriteErrors(t *testing.T) {
	blocks := largeModel()[:30]
	data, index := buildPair(t, blocks, codec.None)
	x := openIndex(t, index, 1, nil)
	for _, c := range []struct {
		name  string
		size  int
		write func(out io.Writer) error
	}{
		{"data", len(data), func(out io.Writer) error {
			b := NewDataBuilder(out, DataOptions{})
			for _, block := range blocks {
				if err := b.Add(block); err != nil {
					return err
				}
			}
			_, _, err := b.Finish()
			return err
		}},
		{"index", len(index), func(out io.Writer) error {
			b := NewDataBuilder(io.Discard, DataOptions{})
			for _, block := range blocks {
				if err := b.Add(block); err != nil {
					return err
				}
			}
			if _, _, err := b.Finish(); err != nil {
				return err
			}
			_, _, err := b.WriteIndex(out)
			return err
		}},
		{"merge", len(index), func(out io.Writer) error {
			_, _, err := MergeIndexes(t.Context(), out, []*Index{x})
			return err
		}},
		{"senders", 380, func(out io.Writer) error {
			_, _, err := WriteSenders(out, openData(t, example(t, KindData), nil).Info(), exampleSenders)
			return err
		}},
	} {
		for i := range 20 {
			if err := c.write(&failingWriter{i * (c.size - 1) / 19}); !errors.Is(err, errBroken) {
				t.Errorf("%s: got %v, want %v", c.name, err, errBroken)
			}
		}
		if err := c.write(&failingWriter{c.size}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// What a builder says of itself follows what it is given.
func TestDataBuilderCounts(t *testing.T) {
	var out bytes.Buffer
	b := NewDataBuilder(&out, DataOptions{})
	memory, logs := b.Memory(), 0
	for i, block := range largeModel()[:100] {
		if err := b.Add(block); err != nil {
			t.Fatal(err)
		}
		logs += len(block.Logs)
		if b.Blocks() != i+1 || b.Logs() != logs || b.Written() != int64(out.Len()) {
			t.Fatalf("%d blocks, %d logs, %d bytes; want %d, %d, %d", b.Blocks(), b.Logs(), b.Written(), i+1, logs, out.Len())
		}
	}
	if b.Memory() <= memory {
		t.Errorf("%d logs take %d bytes, none take %d", logs, b.Memory(), memory)
	}
}

// Topics that differ only in their last bytes spread over the hash tables of a builder: a contract that
// logs indexed numbers as first topics must not slow a backfill down.
func TestShapesOfSmallTopicsSpread(t *testing.T) {
	var words wordTable
	var shapes shapeTable
	words.seed = newSeed()
	shapes.seed = words.seed
	const n = 1 << 14
	for i := range n {
		topic := common.BigToHash(big.NewInt(int64(i)))
		shapes.code(&chain.Log{Address: &common.Address{1}, NumTopics: 1, Topics: [4]*common.Hash{&topic}}, &words)
	}
	for name, table := range map[string][]uint32{"shapes": shapes.slots.table, "words": words.slots.table} {
		longest, run := 0, 0
		for _, code := range table {
			if run++; code == 0 {
				run = 0
			}
			longest = max(longest, run)
		}
		if longest > 200 { // half-full tables of this size have runs of some 50
			t.Errorf("%s: %d slots in a row are taken", name, longest)
		}
	}
}
