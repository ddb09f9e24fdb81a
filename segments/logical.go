package segments

import (
	"fmt"

	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/internal/corrupt"
)

// LogicalBytes is the size of the columns of the file before compression, in bytes. It reads the page
// tables and the first bytes of each page that may be compressed, past the cache; pages are not verified.
func (f *File) LogicalBytes() (int64, error) {
	var sum int64
	file := f.uncached()
	for i := range file.footer.columns {
		c := &file.footer.columns[i]
		if !c.compressible() {
			sum += int64(c.storedBytes) - int64(c.pages)*codec.PageHeader
			continue
		}
		var memo tableMemo
		var head [codec.PageHeader]byte
		for p := range c.pages {
			e, err := file.entry(c, p, nil, &memo)
			if err != nil {
				return 0, err
			}
			if e.offset < headerSize || e.end() > file.limit || e.size < codec.PageHeader {
				return 0, corrupt.AtPage(file.name, int(p), int64(e.offset), errPageTable)
			}
			if _, err := file.src.ReadAt(head[:], int64(e.offset)); err != nil {
				return 0, file.readError(int64(e.offset), err)
			}
			raw, _, err := codec.PageInfo(head[:])
			if err != nil {
				return 0, corrupt.AtPage(file.name, int(p), int64(e.offset), fmt.Errorf("size: %w", err))
			}
			sum += int64(raw)
		}
	}
	return sum, nil
}
