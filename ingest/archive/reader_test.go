package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"

	"github.com/leani-go/leani/chain"
)

// everything is a range that holds all made-up blocks.
var everything = chain.Range{From: 0, To: 1 << 40}

// TestRead reads made-up frames: empty lines are none (ARC-030), the last line may lack its newline, and each
// frame reports that its object was proved and, but for the first, that it follows the one before:
// ARC-051, ARC-052.
func TestRead(t *testing.T) {
	lines := madeLines(1, 5)
	for name, content := range map[string]string{
		"plain":         strings.Join(lines, "\n") + "\n",
		"open end":      strings.Join(lines, "\n"),
		"empty lines":   "\n \n" + strings.Join(lines, "\n\t\n\n") + "\n\r\n \n",
		"line feeds":    strings.Join(lines, "\r\n") + "\r\n",
		"white space":   strings.NewReplacer(",", " ,\t", ":", " : ", "[", "[ ", "]", " ]").Replace(strings.Join(lines, "\n")),
		"unknown names": strings.ReplaceAll(strings.Join(lines, "\n"), `{"chain_id"`, `{"new":{"a":[1,-2.5e3,"x\n\u00e9",null,true]},"chain_id"`),
	} {
		a := madeArchive(t, nil, madeObject{1, 4, content})
		numbers, reports, err := read(a, 0, everything, Budget{})
		if err != nil || !slices.Equal(numbers, []uint64{1, 2, 3, 4}) {
			t.Errorf("%s: %v, %v", name, numbers, err)
			continue
		}
		for i, r := range reports {
			want := chain.VerificationReport{DatasetChecksum: chain.Check{Status: chain.Verified, Detail: r.DatasetChecksum.Detail}}
			if i > 0 {
				want.ParentContinuity.Status = chain.Verified
			}
			if diff := cmp.Diff(want, r); diff != "" {
				t.Errorf("%s: frame %d: %s", name, i, diff)
			}
		}
	}
}

// TestReadPart: a part of an object gives its blocks and no others, and still proves the whole object: ARC-048.
// The first frame of the part reports no link, though the object holds its parent.
func TestReadPart(t *testing.T) {
	content := strings.Join(madeLines(1, 9), "\n")
	a := madeArchive(t, nil, madeObject{1, 8, content})
	numbers, reports, err := read(a, 0, chain.Range{From: 3, To: 6}, Budget{})
	if err != nil || !slices.Equal(numbers, []uint64{3, 4, 5}) || reports[0].ParentContinuity.Status != chain.NotChecked {
		t.Errorf("%v, %v", numbers, err)
	}
	// Damage far behind the part.
	damaged := madeArchive(t, nil, madeObject{1, 8, content})
	change(t, damaged, func(b []byte) { b[len(b)-3] ^= 1 })
	if numbers, _, err := read(damaged, 0, chain.Range{From: 3, To: 6}, Budget{}); !errors.Is(err, ErrChecksum) || len(numbers) != 0 {
		t.Errorf("%v, %v", numbers, err)
	}
}

// change edits the first object in place.
func change(t *testing.T, a *Archive, edit func([]byte)) {
	t.Helper()
	path := a.PathOf(&a.manifest.Objects[0])
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edit(content)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestProvedFirst: an object of another length, or with one bit changed, yields nothing, wherever the change
// is: ARC-013, ARC-040.
func TestProvedFirst(t *testing.T) {
	content := strings.Join(madeLines(1, 4), "\n")
	for name, c := range map[string]struct {
		content string
		want    error
	}{
		"longer":  {content + "\n", ErrLength},
		"shorter": {content[:len(content)-1], ErrLength},
		"empty":   {"", ErrLength},
		"front":   {"[" + content[1:], ErrChecksum},
		"end":     {content[:len(content)-1] + " ", ErrChecksum},
	} {
		a := madeArchive(t, nil, madeObject{1, 3, content})
		if err := os.WriteFile(a.PathOf(&a.manifest.Objects[0]), []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		numbers, _, err := read(a, 0, everything, Budget{})
		var corrupt *CorruptError
		if !errors.Is(err, c.want) || !errors.As(err, &corrupt) || corrupt.Line != 0 || len(numbers) != 0 {
			t.Errorf("%s: %v, %v", name, numbers, err)
		}
	}
	a := madeArchive(t, nil, madeObject{1, 3, content})
	if err := os.Remove(a.PathOf(&a.manifest.Objects[0])); err != nil {
		t.Fatal(err)
	}
	if _, _, err := read(a, 0, everything, Budget{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestEditedWhileRead edits an object in place once its first frame was yielded. The frames are yielded as far
// as they can be read, and the digest error comes at the end, also where a line became unreadable: ARC-042.
func TestEditedWhileRead(t *testing.T) {
	// Longer than what is read ahead.
	filler := strings.Repeat(" ", 3*hashChunk)
	content := madeLine(1, nil) + "\n" + filler + "\n" + madeLine(2, nil) + "\n" + madeLine(3, nil)
	stamp := strings.LastIndex(content, "1700000003")
	for name, c := range map[string]struct {
		edit func(b []byte)
		want []uint64
	}{
		"another time":   {func(b []byte) { b[stamp] = '2' }, []uint64{1, 2, 3}},
		"broken line":    {func(b []byte) { b[stamp] = 'x' }, []uint64{1, 2}},
		"another number": {func(b []byte) { copy(b[strings.LastIndex(content, `"number":3`):], `"number":4`) }, []uint64{1, 2}},
		"white space":    {func(b []byte) { b[len(filler)/2] = '\t' }, []uint64{1, 2, 3}},
	} {
		a := madeArchive(t, nil, madeObject{1, 3, content})
		var numbers []uint64
		err := a.Read(context.Background(), &a.manifest.Objects[0], everything, Budget{}, func(f *chain.Frame) error {
			if len(numbers) == 0 {
				change(t, a, c.edit)
			}
			numbers = append(numbers, f.Number)
			return nil
		})
		if !errors.Is(err, ErrChecksum) || !slices.Equal(numbers, c.want) {
			t.Errorf("%s: %v, %v", name, numbers, err)
		}
	}
	// One that became shorter.
	a := madeArchive(t, nil, madeObject{1, 3, content})
	err := a.Read(context.Background(), &a.manifest.Objects[0], everything, Budget{}, func(f *chain.Frame) error {
		return os.Truncate(a.PathOf(&a.manifest.Objects[0]), 4*hashChunk/2)
	})
	if !errors.Is(err, ErrChecksum) {
		t.Error(err)
	}
}

// TestStructure: what is wrong with the frames of an object is corrupt and named with its line (ARC-045), and
// the frames before it are yielded (ARC-046).
func TestStructure(t *testing.T) {
	parent := madeHash(9)
	block := func(n uint64, hash, parent common.Hash) map[string]string {
		return map[string]string{"block": fmt.Sprintf(`{"number":%d,"hash":%s,"parent_hash":%s,"timestamp":1}`, n, numbers(hash[:]), numbers(parent[:]))}
	}
	for name, c := range map[string]struct {
		line int // that is replaced, from 1; 0 adds one at the end
		text string
		want error
		says string
	}{
		"ARC-031 surplus":            {0, madeLine(5, nil), ErrOrder, "line 5"},
		"ARC-031 foreign block":      {2, madeLine(77, nil), ErrOrder, "block 77 is not one of the object's"},
		"ARC-031 missing at the end": {4, "", ErrOrder, "it ends before block 4"},
		"ARC-032 missing":            {2, "", ErrOrder, "got block 3, want 2"},
		"ARC-032 repeated":           {2, madeLine(1, nil), ErrOrder, "got block 1, want 2"},
		"ARC-032 out of order":       {2, madeLine(4, nil), ErrOrder, "got block 4, want 2"},
		"ARC-033 parent":             {3, madeLine(3, block(3, madeHash(3), parent)), ErrParent, "block 3: parent hash differs"},
		"ARC-034 chain":              {2, madeLine(2, map[string]string{"chain_id": "2"}), ErrChain, "got 2, want 1"},
		"ARC-035 finality":           {2, madeLine(2, map[string]string{"finality": `"Attested"`}), ErrFinality, "got Attested, want Finalized"},
		"ARC-036 missing":            {2, madeLine(2, map[string]string{"receipts": `{"Missing":"Pruned"}`}), ErrMaterial, "Receipts is declared complete and is not"},
		"ARC-036 a selection": {2, madeLine(2, map[string]string{"logs": `{"Filtered":{"value":[],"scope":{"block_range":null,"addresses":[],"topics":[],"transaction_hashes":[],"transaction_types":[]},"completeness":"DatasetDeclared"}}`,
			"receipts": `{"Missing":"Pruned"}`}), ErrMaterial, "Receipts, Logs is declared"},
		"ARC-037 schema":    {2, madeLine(2, map[string]string{"schema_version": `"normalized-frame-jsonl.v2"`}), ErrSchema, "v2"},
		"ARC-045 truncated": {2, madeLine(2, nil)[:900], nil, "the text ends"},
		"no JSON":           {2, "hello", nil, `got 'h', want '{'`},
		"two values":        {2, madeLine(2, nil) + "{}", nil, "more text after the value"},
		"chain 0":           {2, madeLine(2, map[string]string{"chain_id": "0"}), ErrChain, ""},
		"failed check": {2, madeLine(2, map[string]string{"verification": strings.Replace(madeMembers(2)["verification"], "NotChecked", "Failed", 1)}),
			nil, "a verification check has failed"},
	} {
		lines := madeLines(1, 5)
		if c.line == 0 {
			lines = append(lines, c.text)
		} else {
			lines[c.line-1] = c.text
		}
		a := madeArchive(t, nil, madeObject{1, 4, strings.Join(lines, "\n")})
		numbers, _, err := read(a, 0, everything, Budget{})
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		good := 4
		if c.line > 0 {
			good = c.line - 1
		}
		if len(numbers) != good || c.text != "" && c.line > 0 && corrupt.Line != c.line {
			t.Errorf("%s: %d frames before line %d", name, len(numbers), corrupt.Line)
		}
	}
}

// Each object stands for itself: a link is claimed inside of one only, and holes between objects are no
// damage: ARC-015.
func TestObjectsStandAlone(t *testing.T) {
	a := madeArchive(t, nil, madeObject{1, 2, strings.Join(madeLines(1, 3), "\n")}, madeObject{7, 8, strings.Join(madeLines(7, 9), "\n")})
	for object, want := range [][]uint64{{1, 2}, {7, 8}} {
		numbers, reports, err := read(a, object, everything, Budget{})
		if err != nil || !slices.Equal(numbers, want) || reports[0].ParentContinuity.Status != chain.NotChecked {
			t.Errorf("%v, %v", numbers, err)
		}
	}
	if r, err := a.Verify(context.Background(), Budget{}, nil); err != nil || len(r.Problems) != 0 || r.Frames != 4 || r.Proved != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	torn := madeArchive(t, nil, madeObject{1, 1, madeLine(1, nil)}, madeObject{2, 2, strings.Replace(madeLine(2, nil), `"parent_hash":[1,`, `"parent_hash":[9,`, 1)})
	if r, err := torn.Verify(context.Background(), Budget{}, nil); err != nil || len(r.Problems) != 1 || !errors.Is(r.Problems[0], ErrParent) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestBudgets: each limit stops a read, and a read that just fits is not stopped: ARC-044. Of a line above its limit no
// more is read than tells that: ARC-043.
func TestBudgets(t *testing.T) {
	content := strings.Join(madeLines(1, 4), "\n")
	longest := int64(len(madeLine(3, nil)) + 1)
	for limit, c := range map[string]struct {
		fits, short Budget
		yielded     int
	}{
		"input_bytes":    {Budget{InputBytes: int64(len(content))}, Budget{InputBytes: int64(len(content)) - 1}, 0},
		"resident_bytes": {Budget{ResidentBytes: longest}, Budget{ResidentBytes: longest - 2}, 0},
		"frames":         {Budget{Frames: 3}, Budget{Frames: 2}, 2},
	} {
		a := madeArchive(t, nil, madeObject{1, 3, content})
		if numbers, _, err := read(a, 0, everything, c.fits); err != nil || len(numbers) != 3 {
			t.Errorf("%s: %v, %v", limit, numbers, err)
		}
		numbers, _, err := read(a, 0, everything, c.short)
		var over *BudgetError
		if !errors.As(err, &over) || over.Limit != limit || len(numbers) != c.yielded {
			t.Errorf("%s: %v, %v", limit, numbers, err)
		}
	}
	a, err := Open(writeArchive(t, realFrames(t)[:2], 2))
	if err != nil {
		t.Fatal(err)
	}
	if numbers, _, err := read(a, 0, everything, Budget{FrameBytes: 1 << 20}); err != nil || len(numbers) != 2 {
		t.Error(numbers, err)
	}
	var over *BudgetError
	if numbers, _, err := read(a, 0, everything, Budget{FrameBytes: 1 << 10, ResidentBytes: 1 << 30}); !errors.As(err, &over) || over.Limit != "frame_bytes" || len(numbers) != 0 {
		t.Error(numbers, err)
	}
	// A bound of frames alone bounds the lines that they are in: text of any length is not read into memory.
	long := madeArchive(t, nil, madeObject{1, 1, madeLine(1, map[string]string{"chain_id": strings.Repeat(" ", 17<<12) + "1"})})
	if numbers, _, err := read(long, 0, everything, Budget{FrameBytes: 1 << 12}); !errors.As(err, &over) || over.Limit != "resident_bytes" || len(numbers) != 0 {
		t.Error(numbers, err)
	}
}

// TestOneLine reads lines of a megabyte each through memory for one of them: ARC-043.
func TestOneLine(t *testing.T) {
	var b strings.Builder
	const frames, blank = 24, 1 << 20
	for n := uint64(1); n <= frames; n++ {
		b.WriteString(madeLine(n, map[string]string{"chain_id": strings.Repeat(" ", blank) + "1"}))
		b.WriteByte('\n')
	}
	a := madeArchive(t, nil, madeObject{1, frames, b.String()})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	numbers, _, err := read(a, 0, everything, Budget{ResidentBytes: blank + 4096})
	runtime.ReadMemStats(&after)
	if err != nil || len(numbers) != frames {
		t.Error(numbers, err)
	}
	// A buffer for reading, one for hashing, the line, which grows through several sizes, and its arena.
	if got := after.TotalAlloc - before.TotalAlloc; got > 12*blank {
		t.Errorf("%d bytes allocated for %d lines of %d", got, frames, blank)
	}
}

// TestBelieved: what a frame claims about itself does not survive, but for its way, whose trust is capped.
func TestBelieved(t *testing.T) {
	hash := madeHash(1)
	verified := strings.ReplaceAll(madeMembers(1)["verification"], "NotChecked", "Verified")
	anchored := strings.Replace(verified, `"consensus_anchor":null`,
		`"consensus_anchor":{"finality":"Finalized","execution_block_hash":`+numbers(hash[:])+`,"beacon_slot":7,"beacon_block_root":`+numbers(hash[:])+`}`, 1)
	step := func(trust string) string {
		return `{"source_id":"somewhere","source_kind":"ExecutionP2p","trust":"` + trust + `","range":{"start":1,"end":9},"object":{"locator":"x","version":"3","checksum":null,"schema":null},"observed_at_unix_ms":5,"projection":["a","b"]}`
	}
	line := madeLine(1, map[string]string{
		"verification": anchored,
		"provenance":   "[" + step("ProtocolVerified") + "," + step("TrustedDataset") + "," + step("TrustedManifest") + "," + step("Untrusted") + "]",
	})
	a := madeArchive(t, nil, madeObject{1, 1, line})
	o := &a.manifest.Objects[0]
	err := a.Read(context.Background(), o, everything, Budget{}, func(f *chain.Frame) error {
		// ARC-053, ARC-054
		if f.Verification.HeaderHash.Status != chain.NotChecked || f.Verification.Anchor != nil || f.Complete().Has(chain.CapabilityConsensusFinality) {
			t.Errorf("%+v", f.Verification)
		}
		var trusts []chain.Trust // ARC-055, ARC-056
		for _, p := range f.Provenance {
			trusts = append(trusts, p.Trust)
		}
		if !slices.Equal(trusts, []chain.Trust{chain.TrustedDataset, chain.TrustedDataset, chain.TrustedManifest, chain.Untrusted, chain.TrustedDataset}) {
			t.Errorf("%v", trusts)
		}
		if p := f.Provenance[0]; p.SourceID != "somewhere" || p.Kind != chain.ExecutionP2P || *p.Range != (chain.Range{From: 1, To: 10}) || p.Object.Version != "3" || p.ObservedAt != 5 || len(p.Projection) != 2 {
			t.Errorf("%+v", p)
		}
		// ARC-050
		want := chain.Provenance{SourceID: "made", Kind: chain.HistoryArchive, Trust: chain.TrustedDataset, Range: &chain.Range{From: 1, To: 2},
			Object: &chain.SourceObject{Locator: a.PathOf(o), Checksum: &o.BLAKE3, Schema: Schema}}
		if diff := cmp.Diff(want, f.Provenance[4]); diff != "" {
			t.Error(diff)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	// Nobody here proved that a selection lacks nothing.
	for claimed, want := range map[string]chain.Completeness{
		"VerifiedPredicate": chain.DatasetDeclared, "DatasetDeclared": chain.DatasetDeclared, "Partial": chain.Partial,
	} {
		selections := func(m map[string]any) { m["complete_capabilities"] = []string{"Transactions"} }
		c := madeArchive(t, selections, madeObject{1, 1, madeLine(1, map[string]string{"receipts": `{"Missing":"NotRequested"}`,
			"logs": `{"Filtered":{"value":[],"scope":{"block_range":null,"addresses":[],"topics":[],"transaction_hashes":[],"transaction_types":[]},"completeness":"` + claimed + `"}}`})})
		err := c.Read(context.Background(), &c.manifest.Objects[0], everything, Budget{}, func(f *chain.Frame) error {
			if m := f.Material(chain.CapabilityLogs); m.State != chain.MaterialFiltered || m.Completeness != want {
				t.Errorf("%s: %+v", claimed, m)
			}
			return nil
		})
		if err != nil {
			t.Error(claimed, err)
		}
	}
	foreign := strings.Replace(anchored, "[1,1,", "[1,2,", 1)
	b := madeArchive(t, nil, madeObject{1, 1, madeLine(1, map[string]string{"verification": foreign})})
	if _, _, err := read(b, 0, everything, Budget{}); err == nil || !strings.Contains(err.Error(), "anchor is of another block") {
		t.Error(err)
	}
}

// The caller's own error and the context end a read.
func TestReadEnds(t *testing.T) {
	a := madeArchive(t, nil, madeObject{1, 3, strings.Join(madeLines(1, 4), "\n")})
	o := &a.manifest.Objects[0]
	mine := errors.New("mine")
	if err := a.Read(context.Background(), o, everything, Budget{}, func(*chain.Frame) error { return mine }); err != mine {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	err := a.Read(ctx, o, everything, Budget{}, func(f *chain.Frame) error {
		if f.Number != 1 {
			t.Error("went on after the end")
		}
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(a.Read(ctx, o, everything, Budget{}, nil), context.Canceled) {
		t.Error(err)
	}
}
