package engine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/corrupt"
	"github.com/leani-go/leani/keys"
)

// hotBlocks are n blocks of the main branch from number from on.
func hotBlocks(from uint64, n int) (out []modelBlock) {
	for i := range uint64(n) {
		b := modelBlock{BlockRef: chain.BlockRef{Number: from + i, Hash: blockHash(from + i), ParentHash: blockHash(from + i - 1), Timestamp: 12 * (from + i)}}
		for p := range b.parts {
			b.parts[p] = strings.Repeat(fmt.Sprintf("part %d of %d ", p, b.Number), 20)
		}
		out = append(out, b)
	}
	return out
}

func applyOf(blocks []modelBlock) (out []NewBlock) {
	for i := range blocks {
		out = append(out, blocks[i].edit())
	}
	return out
}

func mustHot(t testing.TB, e *Engine, edit HotEdit) {
	t.Helper()
	if err := e.Commit(t.Context(), Edit{Hot: edit}); err != nil {
		t.Fatal(err)
	}
}

// TestHotDamage changes single rows of the hot tier: Check names the key, so does the next open where it reads the
// row, and a part is not read.
//
// INV-10
func TestHotDamage(t *testing.T) {
	t.Parallel()
	blocks := hotBlocks(4, 5)
	frame := keys.Frame{Number: 6, Hash: blocks[2].Hash, Part: 2}
	canonical := keys.Canonical{Number: 6}
	hash := keys.Hash{Hash: blocks[2].Hash}
	final := keys.Finality{Level: FinalityFinalized}
	flip := func(k keys.Key, at int) func(*pebble.DB) error {
		return func(db *pebble.DB) error {
			value, closer, err := db.Get(k.Append(nil))
			if err != nil {
				return err
			}
			value = bytes.Clone(value)
			value[(at+len(value))%len(value)] ^= 1
			return errors.Join(closer.Close(), db.Set(k.Append(nil), value, pebble.Sync))
		}
	}
	remove := func(k keys.Key) func(*pebble.DB) error {
		return func(db *pebble.DB) error { return db.Delete(k.Append(nil), pebble.Sync) }
	}
	for name, c := range map[string]struct {
		change func(*pebble.DB) error
		where  keys.Key
		opens  bool // the open does not read it
	}{
		"version of a part":       {flip(frame, 0), frame, true},
		"byte of a part":          {flip(frame, 9), frame, true},
		"checksum of a part":      {flip(frame, -1), frame, true},
		"lost part":               {remove(frame), frame, true},
		"part of no block":        {set(keys.Frame{Number: 6, Part: 1}, appendFrame(nil, keys.Frame{Number: 6, Part: 1}.Append(nil), nil)), keys.Frame{Number: 6, Part: 1}, true},
		"part of another block":   {set(frame, appendFrame(nil, keys.Frame{Number: 7, Part: 2}.Append(nil), []byte(blocks[2].parts[1]))), frame, true},
		"version of a block":      {flip(canonical, 0), canonical, false},
		"flags of a block":        {flip(canonical, 1), canonical, false},
		"hash of a block":         {flip(canonical, 5), keys.Canonical{Number: 7}, false},
		"parent of a block":       {flip(canonical, 40), canonical, false},
		"lost block":              {remove(canonical), keys.Canonical{Number: 7}, false},
		"number of a hash":        {flip(hash, 7), hash, false},
		"lost hash":               {remove(hash), hash, false},
		"hash of no block":        {set(keys.Hash{}, make([]byte, 8)), keys.Hash{}, false},
		"mark of another block":   {flip(final, 12), final, false},
		"version of a mark":       {flip(final, 0), final, false},
		"short mark":              {set(final, []byte{1}), final, false},
		"coverage of the block":   {flip(keys.RawCoverage{Field: FieldReceipts, From: 0}, 7), keys.RawCoverage{Field: FieldReceipts, From: 0}, false},
		"attested below the mark": {set(keys.Finality{Level: FinalityAttested}, appendFinalityValue(nil, blocks[0].BlockRef)), keys.Finality{Level: FinalityAttested}, false},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			e := mustOpen(t, testOptions(fs))
			mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4))
			mustHot(t, e, HotEdit{Apply: applyOf(blocks), Finalized: &blocks[2].BlockRef})
			mustCheck(t, e)
			if err := c.change(e.db); err != nil {
				t.Fatal(err)
			}
			report, err := e.Check(t.Context(), CheckOptions{})
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, p := range report.Problems {
				found = found || strings.Contains(p.Where, c.where.String())
			}
			if !found {
				t.Errorf("check: no problem is located at %s: %v", c.where, report.Problems)
			}
			mustClose(t, e)
			e, err = Open(testOptions(fs))
			if !c.opens {
				if !corrupt.Is(err) || !strings.Contains(err.Error(), c.where.String()) {
					t.Errorf("open: got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer mustClose(t, e)
			s := e.Acquire()
			defer s.Release()
			if _, err := s.HotPart(s.Hot()[2], 2); c.where == keys.Key(frame) && (!corrupt.Is(err) || !strings.Contains(err.Error(), frame.String())) {
				t.Errorf("read of the part: got %v", err)
			}
			if got, err := s.HotPart(s.Hot()[1], 2); err != nil || string(got) != blocks[1].parts[1] {
				t.Errorf("read of another block: %v", err)
			}
		})
	}
}

// TestHotWitness proves that a commit without files leaves the synced slots of the generation file alone, and that
// the loss of its own slot, or of the file's newest state, does not keep the store from opening.
//
// STO-002
func TestHotWitness(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	e := mustOpen(t, testOptions(fs))
	l := e.layout
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 0, 4))
	before := bytes.Clone(storedGeneration(t, fs, l))
	blocks := hotBlocks(4, 6)
	for i := range blocks {
		mustHot(t, e, HotEdit{Apply: applyOf(blocks[i : i+1])})
	}
	raw := storedGeneration(t, fs, l)
	if !bytes.Equal(raw[:hotOffset], before[:hotOffset]) {
		t.Error("a commit without files wrote a synced slot")
	}
	if s, err := parseGenerationFile(raw); err != nil || s.generation != 7 {
		t.Errorf("witness: %+v, %v", s, err)
	}
	mustCheck(t, e)
	mustClose(t, e)
	copy(storedGeneration(t, fs, l), before) // as if the power had failed
	e = mustOpen(t, testOptions(fs))
	mustCheck(t, e)
	if got := e.catalog().generation; got != 7 {
		t.Errorf("generation %d", got)
	}
	mustClose(t, e)
}

// TestLargePart proves that a part larger than the database's write buffer is one commit like any other, and can be read
// before and after a reopen; and that one beyond the limit is refused.
func TestLargePart(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	e := mustOpen(t, testOptions(fs))
	blocks := hotBlocks(4, 2)
	blocks[0].parts[1] = strings.Repeat("0123456789abcdef", 3*memTableBytes/16)
	mustHot(t, e, HotEdit{Apply: applyOf(blocks)})
	for range 2 {
		got, err := readHot(e)
		if err != nil || got.blocks[0] != blocks[0] || got.blocks[1] != blocks[1] {
			t.Errorf("read back: %v", err)
		}
		mustCheck(t, e)
		mustClose(t, e)
		e = mustOpen(t, testOptions(fs))
	}
	mustClose(t, e)
	if _, err := newHotBlock(&NewBlock{Parts: []NewPart{{Part: 1, Content: make([]byte, MaximumPartBytes+1)}}}); err == nil {
		t.Error("a part beyond the limit is taken")
	}
}

// hotExample is block 1,024 of docs/formats/hot.md with its log part left out.
func hotExample() (*HotBlock, keys.Frame, []byte) {
	b := &HotBlock{BlockRef: chain.BlockRef{Number: 1024, Timestamp: 1_700_000_000}, Transactions: 1, Logs: 1}
	b.Hash, b.ParentHash = common.Hash(bytes.Repeat([]byte{0xa1}, 32)), common.Hash(bytes.Repeat([]byte{0xa0}, 32))
	content := []byte{1, 0xf9} // the beginning of a header
	b.parts = []partLength{{1, uint32(len(content) + frameOverhead)}}
	return b, keys.Frame{Number: b.Number, Hash: b.Hash, Part: 1}, content
}

// TestHotDocument compares the examples of docs/formats/hot.md with the code, both ways.
func TestHotDocument(t *testing.T) {
	const document = "../docs/formats/hot.md"
	b, frame, content := hotExample()
	canonical, final := keys.Canonical{Number: b.Number}, keys.Finality{Level: FinalityFinalized}
	var text strings.Builder
	text.WriteString("```\n")
	for _, r := range []struct {
		key   keys.Key
		value []byte
	}{
		{canonical, appendCanonicalValue(nil, b)}, {frame, appendFrame(nil, frame.Append(nil), content)}, {final, appendFinalityValue(nil, b.BlockRef)},
	} {
		fmt.Fprintf(&text, "%s\n%s%s\n", r.key, hexLines("key  ", r.key.Append(nil)), hexLines("value", r.value))
	}
	text.WriteString("```\n")
	doc, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- rows -->\n", "<!-- end rows -->"
	head, rest, ok := strings.Cut(string(doc), begin)
	block, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no block of rows", document)
	}
	if block != text.String() {
		if !*update {
			t.Fatalf("%s does not match the code; run go test ./engine -run TestHotDocument -update\nwant:\n%s", document, &text)
		}
		if err := os.WriteFile(document, []byte(head+begin+text.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		block = text.String()
	}
	decoded := decodeExamples(t, block, 6)
	if got, err := decodeCanonical(canonical, decoded[1]); err != nil || !sameHotBlock(got, b) {
		t.Errorf("block of the document: got %+v, %v", got, err)
	}
	if got, err := decodeFrame(decoded[2], decoded[3]); err != nil || !bytes.Equal(got, content) {
		t.Errorf("part of the document: got %x, %v", got, err)
	}
	if got, err := decodeFinality(decoded[5]); err != nil || got != b.BlockRef {
		t.Errorf("mark of the document: got %+v, %v", got, err)
	}
}

// FuzzHotValues gives any bytes to the decoders: they refuse them, or encode to the same bytes again.
func FuzzHotValues(f *testing.F) {
	b, frame, content := hotExample()
	f.Add(appendCanonicalValue(nil, b))
	f.Add(appendFrame(nil, frame.Append(nil), content))
	f.Add(appendFinalityValue(nil, b.BlockRef))
	f.Fuzz(func(t *testing.T, value []byte) {
		if b, err := decodeCanonical(keys.Canonical{Number: 7}, value); err == nil && !bytes.Equal(appendCanonicalValue(nil, b), value) {
			t.Errorf("%x reads as %+v", value, b)
		}
		key := frame.Append(nil)
		if content, err := decodeFrame(key, value); err == nil && !bytes.Equal(appendFrame(nil, key, content), value) {
			t.Errorf("%x reads as %x", value, content)
		}
		if r, err := decodeFinality(value); err == nil && !bytes.Equal(appendFinalityValue(nil, r), value) {
			t.Errorf("%x reads as %+v", value, r)
		}
	})
}

// A mark may name a block of a file, with the hashes at the ends of the file; a block that no file holds may not be marked.
func TestMarkOfFile(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, testOptions(fs))
	mustCommit(t, e, nil, mustPending(t, e, KindData, 0, 2, 6))
	row := rowAt(t, e, KindData, 0, 2)
	first, last := chain.BlockRef{Number: 2, Hash: row.FirstHash, ParentHash: row.ParentHash}, chain.BlockRef{Number: 5, Hash: row.LastHash}
	inside := chain.BlockRef{Number: 4, Hash: common.Hash{4}}
	for name, r := range map[string]chain.BlockRef{
		"another first block": {Number: 2, Hash: common.Hash{1}, ParentHash: row.ParentHash}, "another last block": {Number: 5, Hash: common.Hash{1}},
		"another parent": {Number: 2, Hash: row.FirstHash}, "below the files": {Number: 1}, "above the files": {Number: 6},
	} {
		if err := e.Commit(t.Context(), Edit{Hot: HotEdit{Finalized: &r}}); !errors.Is(err, ErrInvalidEdit) {
			t.Errorf("%s: got %v want %v", name, err, ErrInvalidEdit)
		}
	}
	for _, r := range []chain.BlockRef{first, inside, last} {
		mustHot(t, e, HotEdit{Finalized: &r})
	}
	if err := e.Commit(t.Context(), Edit{Hot: HotEdit{Finalized: &inside}}); !errors.Is(err, ErrFinalized) {
		t.Errorf("a mark that moves back: got %v want %v", err, ErrFinalized)
	}
	mustCheck(t, e)
	mustClose(t, e)
	e = mustOpen(t, testOptions(fs))
	defer mustClose(t, e)
	s := e.Acquire()
	defer s.Release()
	for _, level := range []FinalityLevel{FinalityAttested, FinalityFinalized} {
		if got, ok := s.Mark(level); !ok || got != last {
			t.Errorf("%s: got %s want %s", level, got, last)
		}
	}
}
