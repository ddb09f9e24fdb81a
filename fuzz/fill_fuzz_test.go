package fuzz

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/engine/history"
)

// stepLength is the length of one step of a change: what, offset (3 bytes, little endian), value.
const stepLength = 5

// changed carries out the steps of a script on a copy of data.
func changed(data, script []byte) []byte {
	data = slices.Clone(data)
	for ; len(script) >= stepLength && len(data) > 0; script = script[stepLength:] {
		at := (int(script[1]) | int(script[2])<<8 | int(script[3])<<16) % len(data)
		switch value := script[4]; script[0] % 5 {
		case 0, 1:
			data[at] ^= value
		case 2:
			data[at] = value
		case 3:
			data = data[:at]
		case 4: // a piece appears a second time
			end := min(at+1+int(value)*16, len(data))
			data = slices.Insert(data, at, slices.Clone(data[at:end])...)
		}
	}
	return data
}

// FuzzFill changes one bundled era file and the list of checksums with it, as somebody does who has
// both, and fills a store from it. Whatever the file has become: filling ends with an error or not, and
// every block that is stored under the hash of the original is the original, byte for byte; the store is
// whole, and its receipts and transactions prove against its headers.
func FuzzFill(f *testing.F) {
	f.Add(uint8(0), []byte{})
	f.Add(uint8(1), []byte{0, 0x40, 0, 0, 1})
	f.Add(uint8(2), []byte{3, 0, 0x40, 0, 0})
	f.Add(uint8(0), []byte{4, 0, 0, 0, 1, 2, 8, 0, 0, 0})

	original := bundledNode(f, history.Options{})
	f.Cleanup(func() { original.close(f) })
	view, err := original.history.View()
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(view.Close)
	blocks := map[uint64]*chain.Block{}
	for _, r := range view.Coverage() {
		for n := r.From; n < r.To; n++ {
			b := new(chain.Block)
			if err := view.LoadBlock(f.Context(), n, chain.PartsAll, b); err != nil {
				f.Fatal(err)
			}
			blocks[n] = b
		}
	}
	if len(blocks) != blocksBundled {
		f.Fatalf("%d blocks are bundled", len(blocks))
	}
	paths := eraFiles(f)
	folder := f.TempDir()
	var contents [][]byte
	for _, p := range paths {
		contents = append(contents, copyFile(f, p, filepath.Join(folder, filepath.Base(p))))
	}

	f.Fuzz(func(t *testing.T, number uint8, script []byte) {
		i := int(number) % len(paths)
		name := filepath.Base(paths[i])
		data := changed(contents[i], script[:min(len(script), 16*stepLength)])
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		list := fmt.Sprintf("%x  %s\n", sha256.Sum256(data), name)
		if err := os.WriteFile(filepath.Join(folder, "checksums_sha256.txt"), []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		n := newNode(t, history.Options{CacheBytes: 1 << 20, BuilderMemory: 8 << 20})
		defer n.close(t)
		fillErr := n.fill(t.Context(), folder)

		v, err := n.history.View()
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		stored := 0
		for _, r := range v.Coverage() {
			for number := r.From; number < r.To; number++ {
				var b chain.Block
				if err := v.LoadBlock(t.Context(), number, chain.PartsAll, &b); err != nil {
					t.Fatalf("block %d was stored and cannot be read: %v", number, err)
				}
				want := blocks[number]
				if want != nil && b.Hash == want.Hash && !reflect.DeepEqual(&b, want) {
					t.Errorf("block %d differs: %s", number, cmp.Diff(want, &b))
				}
				stored++
			}
		}
		if len(script) < stepLength && (fillErr != nil || stored != 2) {
			t.Errorf("the file as it is: %d blocks, %v", stored, fillErr)
		}
		report, err := n.engine.Check(t.Context(), engine.CheckOptions{})
		if err != nil || !report.Clean() {
			t.Errorf("check: %+v, %v", report, err)
		}
	})
}
