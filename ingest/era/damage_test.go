package era

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/rlp"
)

// TestDamagedStructure pins what is said about each kind of damage to records and index, and
// where.
func TestDamagedStructure(t *testing.T) {
	base, _ := real(t)
	good := base.build()
	f, err := open(good, Options{})
	if err != nil {
		t.Fatal(err)
	}
	index := f.info.index
	first := f.extents.starts // header, body, receipts of the first block, then of the second
	set := func(offset int64, b ...byte) func([]byte) []byte {
		return func(file []byte) []byte {
			copy(file[offset:], b)
			return file
		}
	}
	word := func(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
	entry := func(i int) int64 { return index + recordHeaderSize + startSize + offsetSize*int64(i) }
	const file = NoBlock
	for _, c := range []struct {
		name   string
		damage func([]byte) []byte
		block  uint64 // that the error must name
		offset int64  // that the error must name, unless negative
		text   string
	}{
		{"empty", func([]byte) []byte { return nil }, file, 0, "too few"},
		{"no version record", set(0, 'x'), file, 0, "record tag: got 78 32 want 65 32"},
		{"version with data", set(2, 1), file, 0, "past the 0 before"},
		{"reserved bytes of the version", set(6, 1), file, 0, "reserved"},
		{"no blocks", set(int64(len(good))-8, word(0)...), file, int64(len(good)) - 8, "index of 0 blocks"},
		{"too many blocks", set(int64(len(good))-8, word(8193)...), file, int64(len(good)) - 8, "index of 8193 blocks"},
		{"more blocks than bytes", set(int64(len(good))-8, word(8192)...), file, int64(len(good)) - 16, "does not fit"},
		{"one slot", set(int64(len(good))-16, word(1)...), file, -1, "index: "},
		{"six slots", set(int64(len(good))-16, word(6)...), file, -1, "index: "},
		{"index tag", set(index, 0x68), file, index, "record tag: got 68 32 want 67 32"},
		{"index length", set(index+2, 1), file, index, "index record of"},
		{"index reserved", set(index+7, 1), file, index, "reserved"},
		{"first block overflows", set(index+8, word(-1)...), file, index + 8, "out of range"},
		{"another first block", set(index+8, word(5)...), 5, first[0], "header number: got 22431083, the index says 5"},
		{"offset before the file", set(entry(4), word(-index)...), base.start + 1, entry(4), "outside of the records"},
		{"offset into the index", set(entry(5), word(0)...), base.start + 1, entry(5), "outside of the records"},
		{"offset beyond the file", set(entry(0), word(1<<62)...), base.start, entry(0), "outside of the records"},
		{"the same offset twice", set(entry(3), word(first[0]-index)...), file, first[0], "overlap"},
		{"offsets closer than a header", set(entry(3), word(first[0]+4-index)...), file, first[0], "overlap"},
		{"record tag of the second block", set(first[4], 0x03), base.start + 1, first[4], "record tag: got 03 00 want 04 00"},
		{"slot with an unknown tag", set(first[2], 0x0c), base.start, first[2], "index slot 2 holds records of unknown tag 0c 00"},
		{"two slots of one kind", set(first[2], 0x04), base.start, first[2], "index slots 1 and 2 both hold the body"},
		{"no body", set(first[1], 0x06), base.start + 1, first[4], "record tag"},
		{"record into the next one", set(first[0]+2, word(first[3] - first[0] - 7)[:4]...), base.start, first[0], "extends past"},
		{"record beyond the file", set(first[1]+2, 0xff, 0xff, 0xff, 0xff), base.start, first[1], "extends past"},
		{"reserved bytes of a record", set(first[1]+6, 0, 1), base.start, first[1], "reserved"},
		{"short record", set(first[1]+2, 20, 0, 0), base.start, first[1] + 18, "snappy frame: chunk of"},
		{"no stream identifier", set(first[1]+8, 0xfe), base.start, first[1] + 8, "no stream identifier"},
		{"wrong stream identifier", set(first[1]+12, 'S'), base.start, first[1] + 8, "wrong stream identifier"},
		{"unknown chunk", set(first[1]+18, 0x02), base.start, first[1] + 18, "unknown chunk type 0x02"},
		{"chunk checksum", set(first[1]+22, 0, 0, 0, 0), base.start, first[1] + 18, "chunk checksum: got"},
		{"chunk left out", set(first[0]+18, 0x80), base.start, first[0], "header: rlp offset 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			damaged := c.damage(bytes.Clone(good))
			f, err := open(damaged, Options{})
			if err == nil {
				_, err = readAll(f, chain.PartsAll)
			}
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) {
				t.Fatalf("got %v, want a CorruptError", err)
			}
			if corrupt.Block != c.block || corrupt.Offset != c.offset && c.offset >= 0 || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got block %d offset %d: %v\nwant block %d offset %d: %s", corrupt.Block, corrupt.Offset, err, c.block, c.offset, c.text)
			}
		})
	}
}

// TestDamagedContent pins that data which decompresses but cannot be a block is refused: one
// component of the second block is replaced each time.
func TestDamagedContent(t *testing.T) {
	base, blocks := real(t)
	list := func(items ...[]byte) []byte {
		content := bytes.Join(items, nil)
		return append(rlp.AppendListHeader(nil, len(content)), content...)
	}
	empty := list()
	few := make([][]byte, maximumWithdrawals+1)
	for i := range few {
		few[i] = []byte{1}
	}
	for _, c := range []struct {
		name   string
		column int
		data   []byte
		text   string
	}{
		{"header is empty", 0, []byte{0xc0}, "header: rlp offset 1"},
		{"header with a surplus byte", 0, append(bytes.Clone(blocks[1].Header), 0), "surplus"},
		{"header of another block", 0, blocks[0].Header, "header number"},
		{"body with four parts", 1, list(empty, empty, empty, empty), "surplus"},
		{"body with one part", 1, list(empty), "past the end"},
		{"transactions are a string", 1, list([]byte{0x80}, empty), "in place of a list"},
		{"ommers are a string", 1, list(empty, []byte{0x80}), "ommers are not a list"},
		{"withdrawals are a string", 1, list(empty, empty, []byte{0x80}), "withdrawals are not a list"},
		{"too many withdrawals", 1, list(empty, empty, list(few...)), "1025 withdrawals"},
		{"empty envelope", 1, list(list([]byte{0x80}), empty), "transaction 0: rlp offset 2: not an EIP-2718 envelope"},
		{"envelope of type 0", 1, list(list(rlp.AppendString(nil, []byte{0, 1})), empty), "not an EIP-2718 envelope"},
		{"envelope of type 0x80", 1, list(list(rlp.AppendString(nil, []byte{0x80, 1})), empty), "not an EIP-2718 envelope"},
		{"envelope of a type alone", 1, list(list([]byte{2}), empty), "not an EIP-2718 envelope"},
		{"too many transactions", 1, list(list(bytes.Repeat([]byte{0xc0}, maximumTransactions+1)), empty), "more than 262144 transactions"},
		{"receipts are a string", 2, []byte{0x80}, "in place of a list"},
		{"too many receipts", 2, list(bytes.Repeat([]byte{0xc0}, maximumTransactions+1)), "262145 receipts"},
		{"receipt without logs", 2, list(list([]byte{0x80, 0x80, 0x80})), "receipt 0: rlp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := base
			g.columns = make([]column, len(base.columns))
			for i := range g.columns {
				g.columns[i] = column{base.columns[i].tag, bytesOf(base.columns[i].data)}
			}
			g.columns[c.column].data[1] = framed(c.data)
			f, err := open(g.build(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := readAll(f, chain.PartsAll)
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) || len(got) != 1 {
				t.Fatalf("got %d blocks, %v", len(got), err)
			}
			if start, _ := f.extent(base.start+1, c.column); corrupt.Block != base.start+1 || corrupt.Offset != start || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want block %d offset %d: %s", err, base.start+1, start, c.text)
			}
			// The blocks before the bad one are still there.
			dst := make([]chain.Block, 2)
			n, err := f.ReadBlocks(f.Range(), chain.PartsAll, new(Buffer), dst)
			if n != 1 || !errors.As(err, &corrupt) || dst[0].Number != base.start {
				t.Errorf("batch: got %d blocks, %v", n, err)
			}
		})
	}
}

func bytesOf(list [][]byte) [][]byte { return append([][]byte(nil), list...) }

// TestEra1BloomMustFollowFromLogs pins that the bloom which an era1 receipt carries is compared
// with its logs.
func TestEra1BloomMustFollowFromLogs(t *testing.T) {
	list := func(items ...[]byte) []byte {
		content := bytes.Join(items, nil)
		return append(rlp.AppendListHeader(nil, len(content)), content...)
	}
	_, blocks := real(t)
	address := bytes.Repeat([]byte{7}, 20)
	var bloom types.Bloom
	bloom.Add(address)
	for name, stored := range map[string]types.Bloom{"right": bloom, "empty": {}, "with one bit more": func() types.Bloom { b := bloom; b[0] |= 1; return b }()} {
		t.Run(name, func(t *testing.T) {
			log := list(rlp.AppendString(nil, address), list(), []byte{0x80})
			receipts := list(list([]byte{1}, []byte{9}, rlp.AppendString(nil, stored[:]), list(log)))
			record := appendRecord(nil, tagHeader, framed(blocks[0].Header))
			record = appendRecord(record, tagBody, framed(list(list(), list())))
			at := len(record)
			record = appendRecord(record, tagReceipts, framed(receipts))
			record = appendRecord(record, tagTotalDifficulty, make([]byte, 32))
			f, err := open(interleaved(blocks[0].Number, [][]byte{record}, nil), Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = readAll(f, chain.PartsAll)
			if stored == bloom {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) || corrupt.Offset != int64(recordHeaderSize+at) || !strings.Contains(err.Error(), "stored bloom") {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// TestTruncated cuts a real file everywhere: there is always an error, never a panic.
func TestTruncated(t *testing.T) {
	base, _ := real(t)
	good := base.build()
	step := 97
	for n := 0; n < len(good); n += step {
		f, err := open(good[:n], Options{})
		if err == nil {
			_, err = readAll(f, chain.PartsAll)
		}
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) {
			t.Fatalf("%d of %d bytes: got %v", n, len(good), err)
		}
		if n > len(good)-200 {
			step = 1
		}
	}
}

// TestSnappyFrames compares the frame decoder with the snappy package on data of all sizes.
func TestSnappyFrames(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 100, chunkMaximum - 1, chunkMaximum, chunkMaximum + 1, 3*chunkMaximum + 17} {
		plain := make([]byte, n)
		for i := range plain {
			if plain[i] = byte(i / 50); i > n/2 {
				plain[i] = byte(rng.Uint32()) // does not compress
			}
		}
		stream := framed(plain)
		padding := []byte{0xfe, 3, 0, 0, 1, 2, 3}
		stream = append(append(stream, padding...), framed([]byte{1})[:10]...) // a second identifier
		size, err := framedSize(stream)
		if err != nil || size != n {
			t.Fatalf("%d bytes: got size %d, %v", n, size, err)
		}
		got := make([]byte, size)
		if err := decodeFramed(got, stream); err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	for i, stream := range [][]byte{nil, {0xff}, {0xff, 6, 0, 0}, []byte("\xff\x06\x00\x00sNaPpX"),
		[]byte("\xff\x06\x00\x00sNaPpY\x00"), []byte("\xff\x06\x00\x00sNaPpY\x01\x03\x00\x00abc"),
		[]byte("\xff\x06\x00\x00sNaPpY\x7f\x00\x00\x00"), []byte("\xff\x06\x00\x00sNaPpY\x00\x09\x00\x00abcd\xff\xff\xff\xff\x0f"),
		append([]byte("\xff\x06\x00\x00sNaPpY\x01\x05\x00\x01"), make([]byte, chunkMaximum+5)...)} {
		if _, err := framedSize(stream); err == nil {
			t.Errorf("stream %d: accepted", i)
		}
	}
}

func ExampleCorruptError() {
	fmt.Println(&CorruptError{File: "mainnet-00001.ere", Block: 8200, Offset: 1234, Err: errReserved})
	// Output: era file mainnet-00001.ere: block 8200: offset 1234: reserved bytes of the record header are not zero
}
