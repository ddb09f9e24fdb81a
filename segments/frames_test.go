package segments

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/internal/chainmodel"
)

// modelFrames are n frames of one shape.
func modelFrames(m *chainmodel.Model, shape chainmodel.Shape, n int) (frames []*chain.Frame) {
	for range n {
		frames = append(frames, m.Partial(m.Block(), shape))
	}
	return frames
}

func buildFrames(t testing.TB, frames []*chain.Frame, c codec.Compression) []byte {
	t.Helper()
	var out bytes.Buffer
	b, err := NewFramesBuilder(&out, FramesOptions{ID: 7, Profile: frames[0].Profile(), Compression: c})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range frames {
		if _, err := b.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := b.Finish(); err != nil {
		t.Fatal(err)
	}
	if b.Written() != int64(out.Len()) || b.Blocks() != len(frames) {
		t.Fatalf("the builder counts %d bytes of %d blocks", b.Written(), b.Blocks())
	}
	return out.Bytes()
}

// normalFrame makes nil and empty alike, and scopes too that select the same.
func normalFrame(f *chain.Frame) *chain.Frame {
	n := *f
	n.Block = *normal(&f.Block)
	n.Senders = f.Senders
	for c := range n.Materials {
		if s := n.Materials[c].Scope; s != nil {
			n.Materials[c].Scope = s.Normalized()
		}
	}
	for _, list := range []*[]uint32{&n.TransactionIndexes, &n.ReceiptIndexes} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	if len(n.Senders) == 0 {
		n.Senders = nil
	}
	if len(n.LogPlaces) == 0 {
		n.LogPlaces = nil
	}
	if len(n.Provenance) == 0 {
		n.Provenance = nil
	}
	return &n
}

func checkFrames(t *testing.T, raw []byte, want []*chain.Frame) {
	t.Helper()
	f, err := Open("frames", 1, memorySource(raw), NewCache(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := CheckFile(t.Context(), f); err != nil || len(r.Problems) > 0 {
		t.Fatal(r.Problems, err)
	}
	v, err := NewFrames(f)
	if err != nil {
		t.Fatal(err)
	}
	if p := want[0].Profile(); !reflect.DeepEqual(v.Profile(), &p) {
		t.Fatal(cmp.Diff(&p, v.Profile()))
	}
	var got chain.Frame
	for _, w := range want {
		if err := v.Load(w.Number, &got, nil); err != nil {
			t.Fatal(err)
		}
		if a, b := normalFrame(w), normalFrame(&got); !reflect.DeepEqual(a, b) {
			t.Fatalf("block %d:\n%s", w.Number, cmp.Diff(a, b))
		}
	}
	last := want[len(want)-1]
	for _, n := range []uint64{want[0].Number - 1, last.Number + 1} {
		if err := v.Load(n, &got, nil); err == nil {
			t.Errorf("block %d is not in the file and was loaded", n)
		}
	}
}

func useFrames(f *File) error {
	v, err := NewFrames(f)
	if err != nil {
		return err
	}
	var errs []error
	var frame chain.Frame
	for n := f.Info().From; n < f.Info().To && n < f.Info().From+mostUses; n++ {
		errs = append(errs, v.Load(n, &frame, nil))
	}
	return errors.Join(errs...)
}

// What a frames file gives back is what was added, with its states, whatever it lacks.
func TestFramesRoundTrip(t *testing.T) {
	for shape := range chainmodel.Shape(chainmodel.Shapes) {
		for _, c := range []codec.Compression{codec.None, codec.Snappy, codec.Deflate} {
			frames := modelFrames(chainmodel.New(uint64(shape)+1, 1000), shape, 120)
			checkFrames(t, buildFrames(t, frames, c), frames)
		}
	}
}

// exampleFrames are those of frames.md: the transfers of one contract, by the word of a data set, and a block
// without any.
func exampleFrames() []*chain.Frame {
	var frames []*chain.Frame
	scope := &chain.FilterScope{Addresses: []common.Address{{0x11, 0x11}}, Topics: []chain.TopicFilter{{Alternatives: []common.Hash{transferEvent}}}}
	for _, b := range dataExample() {
		f := &chain.Frame{ChainID: 1, Finality: chain.Finalized, Schema: "example"}
		f.BlockRef = b.BlockRef
		for _, c := range chain.MaterialKinds.List() {
			*f.Material(c) = chain.MissingMaterial(chain.NotAvailable)
		}
		*f.Material(chain.CapabilityLogs) = chain.FilteredMaterial(scope, chain.DatasetDeclared)
		for i := range b.Logs {
			if *b.Logs[i].Address == scope.Addresses[0] {
				f.Logs = append(f.Logs, b.Logs[i])
				f.LogPlaces = append(f.LogPlaces, chain.LogPlace{TransactionHash: &b.TransactionHashes[1], TransactionIndex: 1, LogIndex: uint32(i)})
			}
		}
		f.Provenance = []chain.Provenance{{SourceID: "transfers", Kind: chain.PublicDataset, Trust: chain.TrustedDataset}}
		f.Verification.DatasetChecksum.Status = chain.Verified
		frames = append(frames, f)
	}
	return frames
}

func framesExample(t testing.TB) []byte {
	t.Helper()
	return buildFrames(t, exampleFrames(), codec.None)
}

// Equal material has equal profiles, whatever the order in which it was asked for, and other material another.
func TestProfileIdentity(t *testing.T) {
	with := func(edit func(f *chain.Frame)) []byte {
		f := exampleFrames()[0]
		edit(f)
		p := f.Profile()
		b, err := AppendProfile(nil, &p)
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeProfile(b)
		if err != nil || !reflect.DeepEqual(back, &p) {
			t.Fatalf("%v\n%s", err, cmp.Diff(&p, back))
		}
		return b
	}
	scope := func(s chain.FilterScope) func(f *chain.Frame) {
		return func(f *chain.Frame) {
			*f.Material(chain.CapabilityLogs) = chain.FilteredMaterial(&s, chain.DatasetDeclared)
		}
	}
	a, b := common.Address{1}, common.Address{2}
	if !bytes.Equal(with(scope(chain.FilterScope{Addresses: []common.Address{a, b}})), with(scope(chain.FilterScope{Addresses: []common.Address{b, a, b}}))) {
		t.Error("the order of a list makes another profile")
	}
	topic := func(position uint8, h ...common.Hash) chain.TopicFilter {
		return chain.TopicFilter{Position: position, Alternatives: h}
	}
	if !bytes.Equal(
		with(scope(chain.FilterScope{Topics: []chain.TopicFilter{topic(1, transferEvent), topic(0, bob, alice)}})),
		with(scope(chain.FilterScope{Topics: []chain.TopicFilter{topic(0, alice, bob), topic(1, transferEvent), topic(1, transferEvent)}})),
	) {
		t.Error("the order of restrictions makes another profile")
	}
	var seen [][]byte
	for _, edit := range []func(*chain.Frame){
		func(*chain.Frame) {},
		func(f *chain.Frame) { f.ChainID = 2 },
		func(f *chain.Frame) { f.Schema = "other" },
		func(f *chain.Frame) { f.Ommers = []byte{0xc0} },
		func(f *chain.Frame) { f.Details = chain.DetailHeaderRLP },
		func(f *chain.Frame) { *f.Material(chain.CapabilityHeader) = chain.CompleteMaterial() },
		func(f *chain.Frame) { *f.Material(chain.CapabilityHeader) = chain.MissingMaterial(chain.Pruned) },
		func(f *chain.Frame) { f.Material(chain.CapabilityLogs).Completeness = chain.Partial },
		scope(chain.FilterScope{}),
		scope(chain.FilterScope{Addresses: []common.Address{a}}),
		scope(chain.FilterScope{Senders: []common.Address{a}}),
		scope(chain.FilterScope{Recipients: []common.Address{a}}),
		scope(chain.FilterScope{TransactionTypes: []byte{3}}),
		scope(chain.FilterScope{Blocks: &chain.Range{To: 5}}),
		scope(chain.FilterScope{TransactionHashes: []common.Hash{{1}}}),
	} {
		p := with(edit)
		if slices.ContainsFunc(seen, func(o []byte) bool { return bytes.Equal(o, p) }) {
			t.Errorf("profile %x stands for different material", p)
		}
		seen = append(seen, p)
	}
}

// A builder refuses frames that do not belong in its file, or that nobody could read, and goes on.
func TestFramesBuilderRefuses(t *testing.T) {
	frames := modelFrames(chainmodel.New(9, 50), chainmodel.NoReceipts, 3)
	var out bytes.Buffer
	b, err := NewFramesBuilder(&out, FramesOptions{ID: 1, Profile: frames[0].Profile()})
	if err != nil {
		t.Fatal(err)
	}
	add := func(want error, f *chain.Frame) {
		t.Helper()
		if _, err := b.Add(f); !errors.Is(err, want) {
			t.Errorf("got %v want %v", err, want)
		}
	}
	edited := func(edit func(f *chain.Frame)) *chain.Frame {
		f := *frames[1]
		edit(&f)
		return &f
	}
	add(nil, frames[0])
	add(ErrNotConsecutive, frames[2])
	add(ErrNotConsecutive, edited(func(f *chain.Frame) { f.ParentHash[0]++ }))
	add(ErrOtherProfile, edited(func(f *chain.Frame) { f.Ommers = nil }))
	add(ErrMalformedBlock, edited(func(f *chain.Frame) { f.Finality = 0 }))
	add(ErrMalformedBlock, edited(func(f *chain.Frame) { f.Provenance = []chain.Provenance{{Kind: 200}} }))
	add(ErrMalformedBlock, edited(func(f *chain.Frame) { f.ReceiptIndexes = []uint32{1} }))
	add(ErrMalformedBlock, edited(func(f *chain.Frame) { f.Logs = []chain.Log{{}} }))
	add(ErrMalformedBlock, edited(func(f *chain.Frame) { f.Header = make([]byte, MaximumFrame) }))
	add(nil, frames[1])
	add(nil, frames[2])
	if _, _, err := b.Finish(); err != nil {
		t.Fatal(err)
	}
	checkFrames(t, out.Bytes(), frames)
	if _, err := NewFramesBuilder(&out, FramesOptions{Profile: frames[0].Profile()}); err == nil {
		t.Error("a frames file of profile 0 was begun")
	}
}

// FuzzDecodeFrame proves that a frame is refused or is the one encoding of what it says.
func FuzzDecodeFrame(f *testing.F) {
	m := chainmodel.New(3, 1)
	m.Transactions = 3
	for shape := range chainmodel.Shape(chainmodel.Shapes) {
		for _, frame := range modelFrames(m, shape, 2) {
			b, err := appendFrame(nil, frame)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Add([]byte{3, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var frame chain.Frame
		if decodeFrame(b, &frame) != nil {
			return
		}
		if got, err := appendFrame(nil, &frame); err != nil || !bytes.Equal(got, b) {
			t.Errorf("got %x, %v\nwant %x", got, err, b)
		}
	})
}

// FuzzDecodeProfile proves the same of profiles.
func FuzzDecodeProfile(f *testing.F) {
	m := chainmodel.New(3, 1)
	for shape := range chainmodel.Shape(chainmodel.Shapes) {
		p := m.Partial(m.Block(), shape).Profile()
		b, err := AppendProfile(nil, &p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	p := exampleFrames()[0].Profile()
	b, err := AppendProfile(nil, &p)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := DecodeProfile(b)
		if err != nil {
			return
		}
		if got, err := AppendProfile(nil, p); err != nil || !bytes.Equal(got, b) {
			t.Errorf("got %x, %v\nwant %x", got, err, b)
		}
	})
}
