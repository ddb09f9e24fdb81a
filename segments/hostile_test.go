package segments

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/internal/chainmodel"
	"github.com/leani-go/leani/internal/corrupt"
)

// Files with right checksums that say what cannot be: readers notice it and say where, without taking more
// memory than the file accounts for.
func TestHostileFiles(t *testing.T) {
	le := binary.LittleEndian
	data, index, senders := example(t, KindData), example(t, KindIndex), example(t, KindSenders)
	large, largeIndex := buildPair(t, largeModel(), codec.None)
	_, crowded := buildPair(t, largeModel()[:40], codec.None)

	for _, c := range []struct {
		name string
		file []byte
	}{
		{"a position at the bound", forge(t, index, columnTerms, 0, func(p []byte) { p[0x42-0x18] = 130 })},
		{"a position far beyond the bound", forge(t, index, columnTerms, 0, func(p []byte) { p[0x42-0x18] = 255 })},
		{"a transaction position at the bound", forge(t, crowded, columnTxLocator, 0, func(p []byte) {
			n, lists, unary := le.Uint32(p), le.Uint32(p[4:]), le.Uint32(p[8:])
			at := tablePageHeader + int(unary) + codec.PackedSize(int(n), uint(p[16])) + int(n+7)/8
			for i := range codec.PackedSize(int(n-lists), uint(p[17])) {
				p[at+i] = 0xff
			}
		})},
		{"a short list out of order", forge(t, index, columnTerms, 0, func(p []byte) { p[0x4e-0x18] = 0xff; p[0x4d-0x18] = 3 })},
		{"a short list beyond the bound", forge(t, index, columnTerms, 0, func(p []byte) { p[0x4d-0x18] = 0x09; p[0x4e-0x18] = 0xff; p[0x4f-0x18] = 0xff })},
		{"a short list of 2^60 positions", forge(t, index, columnTerms, 0, func(p []byte) { copy(p[0x4c-0x18:], "\xfe\xff\xff\xff\xff\xff\xff\xff\x7f") })},
		{"a list of no positions", forge(t, index, columnTerms, 0, func(p []byte) { p[0x4c-0x18] = 0 })},
		{"a long list in a locator", longLocator(t)},
		{"a long list of other length", forge(t, index, columnTerms, 0, func(p []byte) { p[0x46-0x18]++ })},
		{"a long list that begins behind the postings", forge(t, index, columnTerms, 0, func(p []byte) { p[0x48-0x18] = 9 })},
		{"a long list with pages that are not there", forge(t, index, columnTerms, 0, func(p []byte) { p[0x4a-0x18] = 1 })},
		{"a long list that ends behind its page", forge(t, index, columnTerms, 0, func(p []byte) { p[0x4b-0x18] = 100 })},
		{"a long list that ends before it begins", forge(t, index, columnTerms, 0, func(p []byte) { p[0x55-0x18] = 1 })},
		{"two terms with one list", forge(t, index, columnTerms, 0, func(p []byte) { p[0x43-0x18], p[0x44-0x18] = 0, 0 })},
		{"2^32 terms", forge(t, index, columnTerms, 0, func(p []byte) { le.PutUint32(p, math.MaxUint32) })},
		{"more lists than terms", forge(t, index, columnTerms, 0, func(p []byte) { le.PutUint32(p[4:], 9) })},
		{"terms with a unary part of 2^32 bytes", forge(t, index, columnTerms, 0, func(p []byte) { le.PutUint32(p[8:], math.MaxUint32) })},
		{"terms with 255 low bits", forge(t, index, columnTerms, 0, func(p []byte) { p[16] = 255 })},
		{"positions of 255 bits", forge(t, index, columnTerms, 0, func(p []byte) { p[17] = 255 })},
		{"terms out of order", forge(t, index, columnTerms, 0, func(p []byte) { copy(p[0x2e-0x18:], "\xff\xff\xff\xff") })},
		{"a posting at the bound", forge(t, index, columnPostings, 0, func(p []byte) { le.PutUint32(p[4+8:], 129) })},
		{"a posting beyond 2^32", forge(t, index, columnPostings, 0, func(p []byte) { le.PutUint32(p[4+8:], math.MaxUint32) })},
		{"postings twice", forge(t, index, columnPostings, 0, func(p []byte) { p[4+16] = 1; p[4+6] = 1 })},
		{"a posting block behind the page", forge(t, index, columnPostings, 0, func(p []byte) { le.PutUint16(p[4+8+4:], 60000) })},
		{"65535 posting blocks", forge(t, index, columnPostings, 0, func(p []byte) { le.PutUint16(p, 65535) })},
		{"no posting blocks", forge(t, index, columnPostings, 0, func(p []byte) { le.PutUint16(p, 0) })},
		{"a reserved byte", forge(t, index, columnPostings, 0, func(p []byte) { p[2] = 1 })},
		{"a posting page in place of another", forge(t, largeIndex, columnPostings, -1, func(p []byte) { copy(p[16:], p[:16]) })},
		{"hash table pages that share bytes", forge(t, largeIndex, columnTerms, -1, func(p []byte) { copy(p[16:24], p[:8]) })},

		{"log data of 2^32 bytes", forge(t, data, columnShapes, 0, func(p []byte) { le.PutUint32(p[24:], math.MaxUint32) })},
		{"log data longer than it is", forge(t, data, columnShapes, 0, func(p []byte) { p[24]++ })},
		{"a log with 255 topics", forge(t, data, columnShapes, 0, func(p []byte) { p[28] = 255 })},
		{"a log with a topic too few", forge(t, data, columnShapes, 0, func(p []byte) { p[28]-- })},
		{"a topic code behind the words", forge(t, data, columnShapes, 0, func(p []byte) { p[20] = 200 })},
		{"a shape that is not there", forge(t, data, columnLogs, 0, func(p []byte) { p[0xf3-0xd9] = 0xff; p[14] = 8 })},
		{"logs of another number", forge(t, data, columnLogs, 0, func(p []byte) { p[0]++ })},
		{"65535 transaction hashes", forge(t, data, columnLogs, 0, func(p []byte) { p[2], p[3] = 255, 255 })},
		{"a log page that begins elsewhere", forge(t, data, columnLogs, 0, func(p []byte) { le.PutUint32(p[4:], math.MaxUint32) })},
		{"a log page in a block that is not there", forge(t, data, columnLogs, 0, func(p []byte) { le.PutUint32(p[8:], math.MaxUint32) })},
		{"a log page in the next block", forge(t, data, columnLogs, 0, func(p []byte) { le.PutUint32(p[8:], 1) })},
		{"codes of 255 bits", forge(t, data, columnLogs, 0, func(p []byte) { p[14] = 255 })},
		{"65535 advance bits", forge(t, data, columnLogs, 0, func(p []byte) { le.PutUint16(p[18:], 65535) })},
		{"2^32 bytes of data", forge(t, data, columnLogs, 0, func(p []byte) { le.PutUint32(p[22:], math.MaxUint32) })},
		{"logs that share data", forge(t, data, columnLogs, 0, func(p []byte) { p[0xf8-0xd9] = 0x5b })},
		{"logs of a transaction that is not there", forge(t, data, columnLogs, 0, func(p []byte) { p[0xf7-0xd9] = 0x03 })},
		{"log pages that share bytes", forge(t, large, columnLogs, -1, func(p []byte) { copy(p[16:24], p[:8]) })},
		{"log pages out of order", forge(t, large, columnLogs, -1, func(p []byte) { copy(p[32:40], p[:8]) })},
		{"a page table that begins elsewhere", forge(t, large, columnLogs, -1, func(p []byte) { p[8] = 1 })},

		{"a block of 2^32 logs", forge(t, data, columnBlocks, 0, func(p []byte) { le.PutUint32(p[48+44:], math.MaxUint32) })},
		{"a block that ends before it begins", forge(t, data, columnBlocks, 0, func(p []byte) { le.PutUint32(p[40:], 2); le.PutUint32(p[48+40:], 1) })},
		{"a file that ends before its blocks", forge(t, data, columnBlocks, 0, func(p []byte) { le.PutUint32(p[96+40:], 1) })},
		{"another block hash", forge(t, data, columnBlocks, 0, func(p []byte) { p[0]++ })},
		{"another header", forge(t, data, columnHeaders, 0, func(p []byte) { p[100]++ })},
		{"a header without a parent", forge(t, data, columnHeaders, 0, func(p []byte) { p[6] = 0xc0 })},
		{"a blob longer than the page", forge(t, data, columnTransactions, 0, func(p []byte) { p[4] = 100 })},
		{"a blob of 2^63 bytes", forge(t, data, columnBodies, 0, func(p []byte) { copy(p[4:], "\xff\xff\xff\xff\xff\xff\xff\xff\x7f") })},
		{"2^32 blobs in a page", forge(t, data, columnReceipts, 0, func(p []byte) { le.PutUint32(p, math.MaxUint32) })},
		{"ommers longer than the body", forge(t, data, columnBodies, 0, func(p []byte) { p[6] = 100 })},
		{"receipts of unknown outcome", forge(t, data, columnReceipts, 0, func(p []byte) { p[6] |= 3 })},
		{"gas beyond 2^64", forge(t, data, columnReceipts, 0, func(p []byte) { copy(p[7:], "\xff\xff\xff\xff\xff\xff\xff") })},

		{"rows that multiply to 2^32 bytes", forgeFooter(t, senders, func(f *footer) {
			c := &f.columns[0]
			c.rowSize, c.rowsPerPage, c.rows, c.pages, c.base = 1<<16, 1<<16, 1<<16+1, 2, 16
		})},
		{"2^40 senders", forgeFooter(t, senders, func(f *footer) { f.info.Transactions = 1 << 40 })},
		{"2^31 logs in the footer alone", forgeFooter(t, index, func(f *footer) { f.info.Logs = maximumRows })},
		{"2^31 blocks in the footer alone", forgeFooter(t, index, func(f *footer) { f.info.To = f.info.From + maximumRows })},
		{"more blocks than numbers", forgeFooter(t, data, func(f *footer) { f.info.To = math.MaxUint64 })},
		{"2^63 postings", forgeFooter(t, index, func(f *footer) { f.columns[0].rows = 1 << 63 })},
		{"2^32 pages", forgeFooter(t, index, func(f *footer) { f.columns[1].pages = math.MaxUint32 })},
		{"a column twice", forgeFooter(t, data, func(f *footer) { f.columns[3].id = f.columns[2].id })},
		{"columns that share pages", forgeFooter(t, data, func(f *footer) { f.columns[3].root = f.columns[2].root })},
		{"a page table in the footer", forgeFooter(t, data, func(f *footer) { f.columns[3].root[0].offset = 988 })},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := useFile(t, c.file)
			runtime.ReadMemStats(&after)
			if !corrupt.Is(err) {
				t.Errorf("got %v, want damage that is located", err)
			}
			var damage *corrupt.Error
			if errors.As(err, &damage) && damage.Page == corrupt.NoPage && damage.Offset == 0 {
				t.Errorf("%v does not say where", err)
			}
			if used, most := after.TotalAlloc-before.TotalAlloc, uint64(16<<20+400*len(c.file)); used > most {
				t.Errorf("readers took %d bytes for a file of %d", used, len(c.file))
			}
		})
	}
}

// longLocator builds an index of 1,000 logs in 130 transactions, whose locator has a list in the postings:
// their positions are bounded by the number of logs.
func longLocator(t *testing.T) []byte {
	const logs, transactions = 1000, 130
	var out bytes.Buffer
	w := newIndexWriter(&out, logs, 1)
	locator := tableWriter{column: w.file.addColumn(columnTxLocator), pages: 1, positions: transactions, postings: &w.postings}
	w.terms.begin(5)
	for p := range uint32(logs) {
		w.terms.add(p)
	}
	w.terms.end()
	locator.begin(6)
	for p := range uint32(transactions) {
		locator.add(logs - transactions + p)
	}
	locator.end()
	locator.finish()
	w.finishTerms()
	w.writeLocator(columnBlockLocator, []locatorEntry{7 << 32})
	if _, err := w.file.finish(Info{Kind: KindIndex, From: 100, To: 101, Transactions: transactions, Logs: logs}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// useFile reads a file in all ways there are, as a check and as queries do, and returns what the check
// of its rows says. Whatever passes the check can be read without an error.
func useFile(t testing.TB, raw []byte) error {
	f, err := Open("f", 1, memorySource(raw), nil)
	if err != nil {
		return err
	}
	checked := f.CheckRows(t.Context())
	if r, err := CheckFile(t.Context(), f); err != nil || (checked != nil && len(r.Problems) == 0) {
		t.Errorf("the check of the whole file finds %v (%v), that of its rows %v", r.Problems, err, checked)
	}
	if err := Dump(t.Context(), io.Discard, f); err != nil {
		t.Error(err)
	}
	var used error
	switch f.Info().Kind {
	case KindData:
		used = useData(t, f)
	case KindIndex:
		used = useIndex(t, f)
	case KindFrames:
		used = useFrames(f)
	default:
		s, err := NewSenders(f)
		if used = err; err == nil {
			_, used = s.Append(nil, 0, uint32(f.Info().Transactions), nil)
		}
	}
	if checked == nil && used != nil {
		t.Errorf("a file without a problem cannot be read: %v", used)
	}
	return checked
}

const mostUses = 300 // rows, blocks, or terms that useFile looks at in a file

func useData(t testing.TB, f *File) error {
	d, err := NewData(f)
	if err != nil {
		return err
	}
	info := d.Info()
	errs := []error{d.AddTo(t.Context(), new(ContentSum))}
	m := NewMatcher(&chain.LogFilter{})
	c := d.Cursor(nil)
	step := max(info.Logs/mostUses, 1)
	for row := uint64(0); row < info.Logs && row < step*mostUses; row += step {
		_, err := c.Find(uint32(info.Logs-1-row), m)
		_, err2 := c.Find(uint32(row), m)
		errs = append(errs, err, err2)
	}
	c.Close()
	step = max(info.Transactions/mostUses, 1)
	for i := uint64(0); i < info.Transactions && i < step*mostUses; i += step {
		_, err := d.TransactionHash(uint32(i), nil)
		_, err2 := d.TransactionBlock(uint32(i), nil)
		_, err3 := d.TransactionAt(uint32(i), nil)
		errs = append(errs, err, err2, err3)
	}
	var b chain.Block
	for n := info.From; n < info.To && n < info.From+mostUses; n++ {
		errs = append(errs, d.Load(n, chain.PartsAll, &b, nil))
	}
	return errors.Join(errs...)
}

func useIndex(t testing.TB, f *File) error {
	x, err := NewIndex(f)
	if err != nil {
		return err
	}
	info := x.Info()
	_, err = x.Sum(t.Context())
	var merged limitedWriter
	_, _, err2 := MergeIndexes(t.Context(), &merged, []*Index{x})
	errs := []error{err, err2}
	if err2 == nil && len(merged) < 1<<20 {
		g, err := Open("merged", 2, memorySource(merged), nil)
		errs = append(errs, err)
		if err == nil {
			errs = append(errs, g.CheckRows(t.Context()))
		}
	}
	var sliced limitedWriter
	_, _, err3 := SliceIndex(t.Context(), &sliced, x, Part{Info: info})
	errs = append(errs, err3)
	if err3 == nil && len(sliced) < 1<<20 {
		g, err := Open("sliced", 3, memorySource(sliced), nil)
		errs = append(errs, err)
		if err == nil {
			errs = append(errs, g.CheckRows(t.Context()))
		}
	}
	// Terms that are there: those of the first pages.
	for n, it := 0, newTableIterator(x.tables()[0]); n < mostUses; n++ {
		ok, err := it.advance()
		if err != nil || !ok {
			errs = append(errs, err)
			break
		}
		list, err := x.Find(it.term(), nil)
		errs = append(errs, err)
		if err != nil {
			continue
		}
		var positions [300]uint32
		var mark [len(positions)]bool
		for i := range positions {
			positions[i] = uint32(i * i)
		}
		_, err = x.Open(list, nil).Mark(positions[:], mark[:])
		errs = append(errs, err)
		c := x.Open(list, nil)
		for target, k := uint32(0), 0; k < mostUses; k++ {
			ok, err := c.Seek(target)
			errs = append(errs, err)
			if err != nil || !ok {
				break
			}
			v := c.Values()
			if !ascending(v) || v[0] < target || uint64(v[len(v)-1]) >= info.Logs {
				t.Fatalf("positions %d for target %d below %d", v, target, info.Logs)
			}
			target = v[len(v)-1] + uint32(k*k)
		}
	}
	for n := range byte(16) {
		h := common.Hash{n << 4, n}
		_, err := x.Transactions(&h, nil)
		_, err2 := x.Blocks(&h, nil)
		errs = append(errs, err, err2)
	}
	return errors.Join(errs...)
}

// limitedWriter keeps what is written and fails when it becomes much.
type limitedWriter []byte

var errLimit = errors.New("too much is written")

func (w *limitedWriter) Write(b []byte) (int, error) {
	if len(*w)+len(b) > 64<<20 {
		return 0, errLimit
	}
	*w = append(*w, b...)
	return len(b), nil
}

// fuzzFiles are what FuzzFile damages.
func fuzzFiles(t testing.TB) [][]byte {
	var list [][]byte
	blocks := dataExample()
	data, index := buildPair(t, blocks, codec.None)
	_, lists := buildPair(t, indexExample(), codec.None)
	small, smallIndex := smallPair(t)
	zstd, _ := buildPair(t, largeModel()[:6], codec.Zstd)
	deflate, _ := buildPair(t, blocks, codec.Deflate)
	_, crowded := buildPair(t, largeModel()[:60], codec.None)
	list = append(list, data, index, lists, small, smallIndex, zstd, deflate, crowded)
	var out bytes.Buffer
	if _, _, err := WriteSenders(&out, openData(t, data, nil).Info(), exampleSenders); err != nil {
		t.Fatal(err)
	}
	return append(list, out.Bytes(), framesExample(t), buildFrames(t, modelFrames(chainmodel.New(5, 40), chainmodel.NoWithdrawals, 30), codec.Deflate))
}

// interesting numbers are what damage writes over fields.
var interesting = [...]uint64{0, 1, 2, 63, 64, 65, 127, 128, 129, 255, 256, 4096, 32768, 65535, 1 << 24, 1<<31 - 1, 1 << 31, math.MaxUint32, 1 << 40, 1 << 57, 1 << 63, math.MaxUint64}

// damage applies edits to a file: five bytes each, of what kind, where (from the end if the highest bit is
// set), and with what.
func damage(raw []byte, edits []byte) {
	for ; len(edits) >= 5; edits = edits[5:] {
		at := int(edits[1]) | int(edits[2]&0x7f)<<8
		if edits[2]&0x80 != 0 {
			at = len(raw) - 1 - at
		}
		if at < 0 || at >= len(raw) {
			continue
		}
		value := edits[4]
		var number [8]byte
		binary.LittleEndian.PutUint64(number[:], interesting[int(value)%len(interesting)])
		switch edits[0] % 8 {
		case 0:
			raw[at] = value
		case 1:
			raw[at] ^= 1 << (value & 7)
		case 2:
			raw[at] += value
		case 3, 4, 5:
			copy(raw[at:], number[:2<<(edits[0]%8-3)])
		case 6: // a page table entry, or another run of bytes, in place of one before or behind it
			n := int(edits[3])%32 + 1
			if from := at + int(int8(value)); from >= 0 && from+n <= len(raw) {
				copy(raw[at:], raw[from:from+n])
			}
		case 7:
			clear(raw[at:min(at+int(value), len(raw))])
		}
	}
}

// FuzzFile damages a valid file, makes all checksums and digests right again, and reads it in every way.
// Readers must neither panic, nor run on, nor take much memory; what they refuse they locate; and what
// the check of the rows lets pass must be readable.
func FuzzFile(f *testing.F) {
	files := fuzzFiles(f)
	for i := range files {
		f.Add(uint8(i), []byte{0, 0x30, 0, 0, 1})
		f.Add(uint8(i), []byte{3, 0x18, 0, 0, 17, 1, 0x60, 0x80, 0, 3})
		f.Add(uint8(i), []byte{6, 0x80, 0x81, 15, 16, 5, 0x20, 0x81, 0, 21})
	}
	f.Fuzz(func(t *testing.T, file uint8, edits []byte) {
		if len(edits) > 5*16 {
			return
		}
		raw := slices.Clone(files[int(file)%len(files)])
		damage(raw, edits)
		reseal(raw)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := useFile(t, raw)
		runtime.ReadMemStats(&after)
		var unsupported *UnsupportedError
		if err != nil && !corrupt.Is(err) && !errors.As(err, &unsupported) {
			t.Errorf("%v is neither damage nor unsupported", err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 1<<30 {
			t.Errorf("readers took %d bytes for a file of %d", used, len(raw))
		}
	})
}
