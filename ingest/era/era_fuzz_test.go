package era

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	gethrlp "github.com/ethereum/go-ethereum/rlp"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/rlp"
)

// tiny makes small whole files of both layouts for seeds: two blocks with one transaction and
// one log each.
func tiny(tb testing.TB) (grouped1, interleaved1 []byte) {
	tb.Helper()
	list := func(items ...[]byte) []byte {
		content := bytes.Join(items, nil)
		return append(rlp.AppendListHeader(nil, len(content)), content...)
	}
	address := bytes.Repeat([]byte{7}, 20)
	log := list(rlp.AppendString(nil, address), list(), []byte{0x80})
	var bloom types.Bloom
	bloom.Add(address)
	g := grouped{start: 5, columns: []column{{tag: tagHeader}, {tag: tagBody}, {tag: tagSlimReceipts}, {tag: tagTotalDifficulty}}}
	var records [][]byte
	for i := range 2 {
		_, blocks := real(tb)
		var h types.Header
		if err := gethrlp.DecodeBytes(blocks[0].Header, &h); err != nil {
			tb.Fatal(err)
		}
		h.Number.SetUint64(g.start + uint64(i))
		header, err := gethrlp.EncodeToBytes(&h)
		if err != nil {
			tb.Fatal(err)
		}
		body := framed(list(list([]byte{0xc0}), list()))
		slim := framed(list(list([]byte{0x80}, []byte{1}, []byte{9}, list(log))))
		full := framed(list(list([]byte{1}, []byte{9}, rlp.AppendString(nil, bloom[:]), list(log))))
		total := append([]byte{byte(i + 1)}, make([]byte, 31)...)
		for c, data := range [][]byte{framed(header), body, slim, total} {
			g.columns[c].data = append(g.columns[c].data, data)
		}
		record := appendRecord(nil, tagHeader, framed(header))
		record = appendRecord(record, tagBody, body)
		record = appendRecord(record, tagReceipts, full)
		records = append(records, appendRecord(record, tagTotalDifficulty, total))
	}
	accumulator := appendRecord(nil, tagAccumulator, make([]byte, 32))
	g.surplus = accumulator
	return g.build(), interleaved(g.start, records, accumulator)
}

// TestTinyFiles pins that the seeds of the fuzz target are whole.
func TestTinyFiles(t *testing.T) {
	a, b := tiny(t)
	for _, content := range [][]byte{a, b} {
		f, err := open(content, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if blocks, err := readAll(f, chain.PartsAll); err != nil || len(blocks) != 2 || len(blocks[1].Logs) != 1 || len(blocks[1].Transactions) != 1 {
			t.Fatal(blocks, err)
		}
		if total, err := f.TotalDifficulty(6); err != nil || total.Uint64() != 2 {
			t.Fatal(total, err)
		}
		if _, err := f.Accumulator(); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzEraFile opens arbitrary content and reads what it claims to hold: the outcome is blocks or
// a located error, the same alone and in batches, and memory stays within the limits.
func FuzzEraFile(f *testing.F) {
	a, b := tiny(f)
	f.Add(a)
	f.Add(b)
	f.Add(a[:len(a)-1])
	options := Options{MaximumBlockBytes: 1 << 16, MaximumBatchBytes: 1 << 17}
	f.Fuzz(func(t *testing.T, content []byte) {
		located := func(err error) {
			var corrupt *CorruptError
			if err != nil && !errors.As(err, &corrupt) && !errors.Is(err, ErrAbsent) {
				t.Fatalf("an error without a place: %v", err)
			}
		}
		file, err := open(content, options)
		located(err)
		if err != nil {
			return
		}
		_, err = file.Accumulator()
		located(err)
		r := file.Range()
		r.To = min(r.To, r.From+8)
		var alone []chain.Block
		for n := r.From; n < r.To; n++ {
			_, err := file.TotalDifficulty(n)
			located(err)
			var b chain.Block
			err = file.ReadBlock(n, chain.PartsAll, new(Buffer), &b)
			located(err)
			if err != nil {
				break
			}
			if b.Number != n || len(b.Header) == 0 {
				t.Fatalf("block %d: %+v", n, b.BlockRef)
			}
			alone = append(alone, b)
		}
		var buf Buffer
		dst := make([]chain.Block, r.Len())
		n, err := file.ReadBlocks(r, chain.PartsAll, &buf, dst)
		located(err)
		if n > len(alone) || err == nil && n == 0 || cap(buf.plain) > 4*options.MaximumBatchBytes {
			t.Fatalf("%d blocks in a batch, %d alone, %v", n, len(alone), err)
		}
		for i := range n {
			if !reflect.DeepEqual(&dst[i], &alone[i]) {
				t.Fatalf("block %d differs in a batch", dst[i].Number)
			}
		}
	})
}
