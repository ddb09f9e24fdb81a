package segments

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/leani-go/leani/codec"
	"github.com/zeebo/blake3"
)

// sealPage makes the checksum of a stored page right, whatever the page holds.
func sealPage(page []byte) {
	if len(page) >= codec.PageHeader {
		binary.LittleEndian.PutUint32(page[4:], codec.Checksum(append(slices.Clone(page[:4]), page[codec.PageHeader:]...)))
	}
}

// storedFooter finds the footer of a file through its trailer, nil if that is damaged.
func storedFooter(raw []byte) []byte {
	if len(raw) < headerSize+trailerSize {
		return nil
	}
	trailer := raw[len(raw)-trailerSize:]
	offset, size := binary.LittleEndian.Uint64(trailer), uint64(binary.LittleEndian.Uint32(trailer[8:]))
	if end := uint64(len(raw) - trailerSize); offset > end || size > end-offset || size < codec.PageHeader {
		return nil
	}
	return raw[offset : offset+size]
}

// reseal makes all checksums and digests of a damaged file right in place, as far as the file still says
// where they are: what an enemy would do.
func reseal(raw []byte) {
	foot := storedFooter(raw)
	if foot == nil {
		return
	}
	sealPage(foot)
	f, err := Open("f", 1, memorySource(raw), nil)
	if err != nil {
		return
	}
	inside := func(e tableEntry) bool { return e.offset >= headerSize && e.end() <= f.limit }
	// Page tables first: they say where the other pages are.
	for i := range f.footer.columns {
		for _, e := range f.footer.columns[i].root {
			if inside(e) {
				sealPage(raw[e.offset:e.end()])
			}
		}
	}
	pages, complete, err := f.pages(func(error) error { return nil })
	if err != nil {
		return
	}
	var digests []byte
	for _, p := range pages {
		if inside(p.entry) {
			page := raw[p.entry.offset:p.entry.end()]
			sealPage(page)
			sum := blake3.Sum256(page)
			digests = append(digests, sum[:digestSize]...)
		}
	}
	c, err := f.column(columnDigests)
	if err != nil || !complete || c.rowSize != digestSize || c.rows*digestSize != uint64(len(digests)) {
		return
	}
	root := rootOf(digests)
	for i := range c.pages {
		e := c.fixedEntry(i)
		page := raw[e.offset:e.end()]
		digests = digests[copy(page[codec.PageHeader:], digests):]
		binary.LittleEndian.PutUint32(page, uint32(len(page)-codec.PageHeader))
		sealPage(page)
	}
	if f.footer.info.Profile == 0 && len(foot) >= codec.PageHeader+footerFixed && foot[3] == byte(codec.None) {
		copy(foot[codec.PageHeader+footerFixed-len(root):], root[:])
		sealPage(foot)
	}
}

// forge edits the payload of one page of a file and makes all checksums right again. A negative page is a
// page of the page table.
func forge(t testing.TB, raw []byte, id columnID, page int, edit func(payload []byte)) []byte {
	t.Helper()
	raw = slices.Clone(raw)
	f, err := Open("f", 1, memorySource(raw), nil)
	if err != nil {
		t.Fatal(err)
	}
	pages, _, err := f.pages(first)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		if p.column == id && (!p.table && int(p.number) == page || p.table && -1-int(p.number) == page) {
			stored := raw[p.entry.offset:p.entry.end()]
			if stored[3] != byte(codec.None) {
				t.Fatalf("%s is compressed", p)
			}
			edit(stored[codec.PageHeader:])
			reseal(raw)
			return raw
		}
	}
	t.Fatalf("%s has no page %d", id, page)
	return nil
}

// forgeFooter edits the footer of a file and makes its checksum right again.
func forgeFooter(t testing.TB, raw []byte, edit func(f *footer)) []byte {
	t.Helper()
	raw = slices.Clone(raw)
	f, err := Open("f", 1, memorySource(raw), nil)
	if err != nil {
		t.Fatal(err)
	}
	edit(&f.footer)
	foot := storedFooter(raw)
	body := f.footer.encode()
	if len(body) != len(foot)-codec.PageHeader {
		t.Fatal("the footer has another size")
	}
	copy(foot[codec.PageHeader:], body)
	sealPage(foot)
	return raw
}
