package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leani-go/leani/chain"
)

// compareBlocks treats empty and nil lists alike, and does not look at bytes one by one.
var compareBlocks = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b common.Hash) bool { return a == b }),
	cmp.Comparer(func(a, b common.Address) bool { return a == b }),
	cmp.FilterValues(func(a, b []byte) bool { return len(a)+len(b) > 0 }, cmp.Comparer(bytes.Equal)),
}

// TestRoundTrip writes real blocks as lines and reads them back: every byte of them, and all that the
// frame says.
func TestRoundTrip(t *testing.T) {
	var (
		e encoder
		p Parser
	)
	e.network = chain.Mainnet()
	for _, want := range realFrames(t) {
		line, err := e.line(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(line) || bytes.IndexByte(line, '\n') != len(line)-1 {
			t.Fatal("not one line of JSON")
		}
		var got chain.Frame
		if err := p.Parse(padded(line), nil, &got); err != nil {
			t.Fatal(err)
		}
		if err := p.checkBlooms(); err != nil {
			t.Error(err)
		}
		got.Schema = Schema
		if diff := cmp.Diff(want, &got, compareBlocks); diff != "" {
			t.Errorf("block %d: %s", want.Number, diff)
		}
		again, err := e.line(nil, &got)
		if err != nil || !bytes.Equal(line, again) {
			t.Errorf("block %d: its line differs the second time (%v)", want.Number, err)
		}
		t.Logf("block %d: %d bytes of JSON", want.Number, len(line))
	}
}

// TestDeterminism: the same frames give the same bytes. ARC-067
func TestDeterminism(t *testing.T) {
	frames := realFrames(t)
	first, second := writeArchive(t, frames, 1), writeArchive(t, frames, 1)
	names, err := os.ReadDir(filepath.Dir(first))
	if err != nil || len(names) != len(frames)+1 {
		t.Fatal(names, err)
	}
	for _, entry := range names {
		a, err := os.ReadFile(filepath.Join(filepath.Dir(first), entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(filepath.Dir(second), entry.Name()))
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs (%v)", entry.Name(), err)
		}
	}
}

// TestReadWhatWasWritten reads an archive of several objects.
func TestReadWhatWasWritten(t *testing.T) {
	frames := realFrames(t)
	a, err := Open(writeArchive(t, frames, 0))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Manifest().Objects) != 3 {
		t.Errorf("%d objects", len(a.Manifest().Objects))
	}
	count := 0
	for i := range a.Manifest().Objects {
		o := &a.Manifest().Objects[i]
		err := a.Read(context.Background(), o, o.Range, Budget{}, func(f *chain.Frame) error {
			want := frames[count]
			count++
			if diff := cmp.Diff(&want.Block, &f.Block, compareBlocks); diff != "" {
				t.Error(diff)
			}
			return f.CheckExact(true)
		})
		if err != nil {
			t.Error(err)
		}
	}
	if count != len(frames) {
		t.Errorf("%d frames", count)
	}
}
