package segments

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/leani-go/leani/codec"
)

// hexdump writes a file as the format documents show it: every field on lines of its own, with what it
// says. It reads fields as the documents describe them and shares only the bit encodings of package codec
// with the code under test.
type hexdump struct {
	t     testing.TB
	raw   []byte
	at    int
	out   strings.Builder
	brief bool // the parts of the container take few lines, which segment.md shows in full
}

const hexdumpRow = 16 // bytes a line

// title starts a part of the file.
func (h *hexdump) title(format string, args ...any) {
	fmt.Fprintf(&h.out, "# "+format+"\n", args...)
}

// bytes writes the next n bytes with a note and returns them.
func (h *hexdump) bytes(n int, format string, args ...any) []byte {
	h.t.Helper()
	if h.at+n > len(h.raw) {
		h.t.Fatalf("field %q at %d of %d bytes passes the end", format, h.at, len(h.raw))
	}
	field := h.raw[h.at : h.at+n]
	note := fmt.Sprintf(format, args...)
	for i := 0; i < n; i += hexdumpRow {
		part := field[i:min(i+hexdumpRow, n)]
		line := fmt.Sprintf("%04x  %-*s %s", h.at+i, 3*hexdumpRow, fmt.Sprintf("% x", part), note)
		h.out.WriteString(strings.TrimRight(line, " ") + "\n")
		note = ""
	}
	h.at += n
	return field
}

// number writes an unsigned little endian number of n bytes.
func (h *hexdump) number(n int, name string) int {
	h.t.Helper()
	var b [8]byte
	copy(b[:], h.raw[h.at:h.at+n])
	v := binary.LittleEndian.Uint64(b[:])
	h.bytes(n, "%s %d", name, v)
	return int(v)
}

// offset writes a place in the file.
func (h *hexdump) offset(name string) {
	h.t.Helper()
	h.bytes(8, "%s %#x", name, binary.LittleEndian.Uint64(h.raw[h.at:]))
}

// varint writes an unsigned varint.
func (h *hexdump) varint(format string, value func(uint64) any) uint64 {
	h.t.Helper()
	v, n := binary.Uvarint(h.raw[h.at:])
	if n <= 0 {
		h.t.Fatalf("no varint at %d", h.at)
	}
	h.bytes(n, format, value(v))
	return v
}

func plain(v uint64) any { return v }

// packed writes n packed values of some bits, and returns them.
func (h *hexdump) packed(n int, width int, name string) []uint64 {
	h.t.Helper()
	size := codec.PackedSize(n, uint(width))
	padded := append(append([]byte(nil), h.raw[h.at:h.at+size]...), make([]byte, codec.Slack)...)
	values := make([]uint64, n)
	for i := range values {
		values[i] = codec.ReadBits(padded, uint(i*width), uint(width))
	}
	if size > 0 {
		h.bytes(size, "%s, %d bits each: %d", name, width, values)
	}
	return values
}

// eliasFano writes a list of n values.
func (h *hexdump) eliasFano(n, unary, shift int, base uint32, name, verb string) []uint32 {
	h.t.Helper()
	size := unary + codec.PackedSize(n, uint(shift))
	padded := append(append([]byte(nil), h.raw[h.at:h.at+size]...), make([]byte, codec.Slack)...)
	values := make([]uint32, n)
	if err := codec.DecodeEliasFano(values, padded, base, uint(shift), unary); err != nil {
		h.t.Fatalf("%s at %d: %v", name, h.at, err)
	}
	note := fmt.Sprintf(verb, values)
	if n > 8 {
		note = fmt.Sprintf(verb+" to "+verb, values[0], values[n-1])
	}
	h.bytes(unary, "%s, unary: %s", name, note)
	if size > unary {
		h.bytes(size-unary, "%s, %d low bits each", name, shift)
	}
	return values
}

// dumpHex writes a whole file.
func dumpHex(t testing.TB, raw []byte, brief bool) string {
	t.Helper()
	f, err := Open("example", 1, memorySource(raw), nil)
	if err != nil {
		t.Fatal(err)
	}
	pages, _, err := f.pages(first)
	if err != nil {
		t.Fatal(err)
	}
	digests, err := f.column(columnDigests)
	if err != nil {
		t.Fatal(err)
	}
	for n := range digests.pages {
		pages = append(pages, pageRef{digests.fixedEntry(n), digests.id, n, false})
	}
	h := &hexdump{t: t, raw: raw, brief: brief}
	h.title("header")
	h.bytes(8, "magic %q", raw[:8])
	h.number(2, "version")
	h.number(2, "kind")
	h.number(4, "flags")
	for _, p := range pages {
		h.page(f, p)
	}
	h.footer()
	h.title("trailer")
	h.offset("footer offset")
	h.number(4, "footer size")
	h.number(2, "version")
	h.number(2, "kind")
	h.number(8, "flags")
	h.bytes(8, "magic %q", raw[len(raw)-8:])
	if h.at != len(raw) {
		t.Fatalf("the dump ends at %d of %d", h.at, len(raw))
	}
	return h.out.String()
}

func (h *hexdump) pageHeader() (size int) {
	if h.brief {
		size = int(binary.LittleEndian.Uint32(h.raw[h.at:]) & codec.MaximumPage)
		h.bytes(codec.PageHeader, "raw length %d, not compressed, CRC-32C", size)
		return size
	}
	size = h.number(3, "raw length")
	if h.number(1, "compression") != 0 {
		h.t.Fatal("examples are not compressed")
	}
	h.bytes(4, "CRC-32C")
	return size
}

func (h *hexdump) page(f *File, p pageRef) {
	if h.at != int(p.entry.offset) {
		h.t.Fatalf("%s page %d starts at %d, want %d", p, p.number, p.entry.offset, h.at)
	}
	h.title("%s, page %d", p, p.number)
	size := h.pageHeader()
	end := h.at + size
	c, err := f.column(p.column)
	if err != nil {
		h.t.Fatal(err)
	}
	switch {
	case p.table:
		for h.at < end {
			h.entry()
		}
	case p.column == columnHeaders || p.column == columnBodies || p.column == columnTransactions || p.column == columnReceipts ||
		p.column == columnFrames || p.column == columnProfile:
		h.blobs()
	case p.column == columnLogs:
		h.logPage()
	case p.column == columnPostings:
		h.postingPage(end)
	case p.column == columnTerms || p.column == columnTxLocator || p.column == columnBlockLocator:
		h.hashTable(c, p.number, map[columnID]uint64{
			columnTerms: f.footer.info.Logs, columnTxLocator: f.footer.info.Transactions, columnBlockLocator: f.footer.info.Blocks(),
		}[p.column])
	default:
		for h.at < end {
			h.row(p.column, int(c.rowSize))
		}
	}
	if h.at != end {
		h.t.Fatalf("%s page %d ends at %d, want %d", p, p.number, h.at, end)
	}
}

func (h *hexdump) entry() {
	v := binary.LittleEndian.Uint64(h.raw[h.at:])
	if h.brief {
		e := decodeTableEntry(h.raw[h.at:])
		h.bytes(tableEntrySize, "%d bytes at %#x, first row %d, first transaction %d", e.size, e.offset, e.firstRow, e.firstTx)
		return
	}
	h.bytes(5, "offset %#x", v&(1<<40-1))
	h.bytes(3, "stored size %d", v>>40)
	h.number(4, "first row")
	h.number(4, "first transaction")
}

// row writes a row of a fixed column.
func (h *hexdump) row(c columnID, size int) {
	switch c {
	case columnBlocks:
		h.bytes(32, "block hash")
		h.number(8, "timestamp")
		h.number(4, "first transaction")
		h.number(4, "first log")
	case columnShapes:
		h.bytes(20, "address")
		if binary.LittleEndian.Uint32(h.raw[h.at:]) == noTopic {
			h.bytes(4, "no first topic")
		} else {
			h.number(4, "first topic code")
		}
		h.number(4, "data length")
		h.number(1, "topics")
		h.bytes(3, "reserved")
	case columnFrameRows:
		h.bytes(32, "block hash")
		h.number(8, "timestamp")
	case columnDigests:
		h.bytes(size, "digest")
	case columnSenders:
		h.bytes(size, "sender")
	default:
		h.bytes(size, "word")
	}
}

func (h *hexdump) blobs() {
	rows := h.number(4, "rows")
	sizes := make([]int, rows)
	for i := range sizes {
		sizes[i] = int(h.varint("length %d", plain))
	}
	for i, n := range sizes {
		if n > 0 {
			h.bytes(n, "row %d", i)
		}
	}
}

func (h *hexdump) logPage() {
	rows := h.number(2, "logs")
	transactions := h.number(2, "transaction hashes")
	h.number(4, "first transaction")
	h.number(4, "block of the first transaction")
	topics := h.number(2, "topic codes")
	shapeWidth, topicWidth, lengthWidth := h.number(1, "shape width"), h.number(1, "topic width"), h.number(1, "length width")
	h.bytes(1, "reserved")
	advances := h.number(2, "advance bits")
	h.bytes(2, "reserved")
	data := h.number(4, "bytes of data")
	h.packed(rows, shapeWidth, "shapes")
	h.packed(rows, 1, "topics beyond the first, low")
	h.packed(rows, 1, "topics beyond the first, high")
	h.packed(topics, topicWidth, "topic codes")
	h.packed(advances, 1, "advance")
	lengths := h.packed(rows, lengthWidth, "lengths")
	for i := anchorRows; i < rows; i += anchorRows {
		h.number(2, fmt.Sprintf("data of log %d starts at", i))
	}
	for i, n := range lengths {
		if n > 0 {
			h.bytes(int(n), "trimmed data of log %d", i)
		}
		data -= int(n)
	}
	if data != 0 {
		h.t.Fatalf("%d bytes of data belong to no log", data)
	}
	for i := range transactions {
		h.bytes(32, "transaction hash %d", i)
	}
}

func (h *hexdump) hashTable(c *column, page uint32, positions uint64) {
	terms, lists := h.number(4, "terms"), h.number(4, "lists")
	unary := h.number(4, "bytes of unary")
	h.number(4, "bytes of payload")
	shift, width, offsetWidth := h.number(1, "shift"), h.number(1, "position width"), h.number(1, "offset width")
	h.bytes(1, "reserved")
	start := uint32(pageStart(uint64(page), uint64(c.pages)))
	h.eliasFano(terms, unary, shift, start, "terms", "%08x")
	listed := h.packed(terms, 1, "listed")
	h.packed(terms-lists, width, "positions")
	h.packed(lists, offsetWidth, "offsets")
	for i := range terms {
		if listed[i] == 0 {
			continue
		}
		head := h.varint("%s", func(v uint64) any {
			if v&1 == 1 {
				return fmt.Sprintf("long list of %d", v>>1)
			}
			return fmt.Sprintf("short list of %d", v>>1)
		})
		if head&1 == 1 {
			for _, name := range []string{"first page", "first block", "pages behind the first", "end block in the last"} {
				h.varint(name+" %d", plain)
			}
			continue
		}
		n := int(head >> 1)
		s := codec.EliasFanoShift(n, positions)
		h.eliasFano(n, codec.EliasFanoUnary(n, s, positions), int(s), 0, "positions", "%d")
	}
}

func (h *hexdump) postingPage(end int) {
	blocks := h.number(2, "blocks")
	h.bytes(2, "reserved")
	type block struct{ base, offset, shift, count int }
	list := make([]block, blocks)
	for i := range list {
		b := &list[i]
		b.base, b.offset, b.shift, b.count = h.number(4, "base"), h.number(2, "offset"), h.number(1, "shift"), h.number(1, "count - 1")+1
	}
	start := h.at
	for i, b := range list {
		next := end
		if i+1 < blocks {
			next = start + list[i+1].offset
		}
		h.eliasFano(b.count, next-h.at-codec.PackedSize(b.count, uint(b.shift)), b.shift, uint32(b.base), fmt.Sprintf("block %d", i), "%d")
	}
}

func (h *hexdump) footer() {
	h.title("footer")
	h.pageHeader()
	h.number(2, "profile")
	columns := h.number(2, "columns")
	for _, name := range []string{"from block", "to block", "transactions", "logs"} {
		h.number(8, name)
	}
	for _, name := range []string{"parent of the first block", "first block", "last block", "digest of all digests"} {
		h.bytes(32, "%s", name)
	}
	for range columns {
		id := columnID(binary.LittleEndian.Uint16(h.raw[h.at:]))
		if h.brief {
			h.briefColumn(id)
			continue
		}
		h.bytes(2, "column %d, %s", id, id)
		h.bytes(2, "reserved")
		h.number(4, "pages")
		h.number(8, "rows")
		h.number(8, "stored bytes")
		h.number(4, "row size")
		h.number(4, "rows a page")
		h.offset("base")
		for range h.number(4, "pages of the page table") {
			h.entry()
		}
	}
}

func (h *hexdump) briefColumn(id columnID) {
	le := binary.LittleEndian
	b := h.raw[h.at:]
	pages, rows, roots := le.Uint32(b[4:]), le.Uint64(b[8:]), le.Uint32(b[40:])
	form := fmt.Sprintf("page table of %d", roots)
	if size := le.Uint32(b[24:]); size > 0 {
		form = fmt.Sprintf("%d bytes each, from %#x on", size, le.Uint64(b[32:]))
	}
	h.bytes(columnFixed, "column %d, %s: %d pages, %d rows, %s", id, id, pages, rows, form)
	for range roots {
		h.entry()
	}
}
