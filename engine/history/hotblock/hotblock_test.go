package hotblock

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/chainmodel"
	"github.com/leani-go/leani/segments"
)

// modelBlocks are random blocks of all forms.
func modelBlocks(seed uint64, n int) []*chain.Block {
	m := chainmodel.New(seed, 100)
	m.Transactions = 12
	out := make([]*chain.Block, n)
	for i := range out {
		out[i] = m.Block()
	}
	return out
}

// load decodes all parts.
func load(parts [NumParts][]byte, dst *chain.Block) (*Logs, *Hashes, error) {
	if err := errors.Join(LoadHeader(parts[0], dst), LoadBody(parts[1], dst), LoadReceipts(parts[2], dst)); err != nil {
		return nil, nil, err
	}
	logs, err := DecodeLogs(parts[3], uint32(len(dst.Receipts)))
	if err != nil {
		return nil, nil, err
	}
	if err := logs.Load(dst); err != nil {
		return nil, nil, err
	}
	hashes, err := DecodeHashes(parts[4])
	if err != nil {
		return nil, nil, err
	}
	dst.TransactionHashes = hashes.Append(dst.TransactionHashes[:0])
	return logs, hashes, nil
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	var e Encoder
	var got chain.Block
	for seed := range uint64(4) {
		for _, want := range modelBlocks(seed, 60) {
			parts, err := e.Encode(want)
			if err != nil {
				t.Fatal(err)
			}
			got.BlockRef = want.BlockRef
			logs, hashes, err := load(parts, &got)
			if err != nil {
				t.Fatalf("block %s: %v", want.BlockRef, err)
			}
			same(t, &got, want)
			verifyTerms(t, logs, want)
			for i, h := range want.TransactionHashes {
				if at, ok := hashes.Find(&h); !ok || int(at) != i {
					t.Fatalf("hash %d: got %d %v", i, at, ok)
				}
				h[31] ^= 1
				if _, ok := hashes.Find(&h); ok {
					t.Fatal("a hash that is not there was found")
				}
			}
		}
	}
}

// verifyTerms compares the lists of a block with a search through its logs.
func verifyTerms(t *testing.T, logs *Logs, b *chain.Block) {
	t.Helper()
	want := map[uint32][]uint32{}
	add := func(term uint32, row int) {
		if l := want[term]; len(l) == 0 || l[len(l)-1] != uint32(row) {
			want[term] = append(l, uint32(row))
		}
	}
	for i := range b.Logs {
		l := &b.Logs[i]
		add(segments.AddressTerm(l.Address), i)
		for k := range int(l.NumTopics) {
			add(segments.TopicTerm(k, l.Topics[k]), i)
		}
	}
	if len(want) != len(logs.terms) {
		t.Fatalf("got %d terms want %d", len(logs.terms), len(want))
	}
	for term, rows := range want {
		if got := logs.Find(term); !slices.Equal(got, rows) {
			t.Fatalf("term %08x: got %v want %v", term, got, rows)
		}
		if _, known := want[term+1]; !known && logs.Find(term+1) != nil {
			t.Fatalf("term %08x is found and not there", term+1)
		}
	}
	for _, term := range []uint32{0, 1, 1<<32 - 1} {
		if _, known := want[term]; !known && logs.Find(term) != nil {
			t.Fatalf("term %08x is found and not there", term)
		}
	}
}

func same(t *testing.T, got, want *chain.Block) {
	t.Helper()
	ok := bytes.Equal(got.Header, want.Header) && slices.EqualFunc(got.Transactions, want.Transactions, bytes.Equal) &&
		bytes.Equal(got.Ommers, want.Ommers) && (got.Withdrawals == nil) == (want.Withdrawals == nil) &&
		bytes.Equal(got.Withdrawals, want.Withdrawals) && slices.Equal(got.TransactionHashes, want.TransactionHashes) &&
		got.HasReceipts && len(got.Receipts) == len(want.Receipts) && len(got.Logs) == len(want.Logs)
	if !ok {
		t.Fatalf("block %s reads back different", want.BlockRef)
	}
	for i, w := range want.Receipts {
		g := got.Receipts[i]
		if g.Type != w.Type || g.Status != w.Status || (g.PostState == nil) != (w.PostState == nil) || !bytes.Equal(g.PostState, w.PostState) ||
			g.CumulativeGasUsed != w.CumulativeGasUsed || g.LogsEnd != w.LogsEnd {
			t.Fatalf("receipt %d: got %+v want %+v", i, g, w)
		}
	}
	for i := range want.Logs {
		g, w := &got.Logs[i], &want.Logs[i]
		if *g.Address != *w.Address || g.NumTopics != w.NumTopics || !bytes.Equal(g.Data, w.Data) {
			t.Fatalf("log %d: got %+v want %+v", i, g, w)
		}
		for k := range int(w.NumTopics) {
			if *g.Topics[k] != *w.Topics[k] {
				t.Fatalf("topic %d of log %d", k, i)
			}
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	var e Encoder
	for name, spoil := range map[string]func(*chain.Block){
		"no header":    func(b *chain.Block) { b.Header = nil },
		"no receipts":  func(b *chain.Block) { b.HasReceipts = false },
		"fewer hashes": func(b *chain.Block) { b.TransactionHashes = b.TransactionHashes[1:] },
		"surplus log":  func(b *chain.Block) { b.Logs = append(b.Logs, chain.Log{Address: &common.Address{}}) },
		"state root":   func(b *chain.Block) { b.Receipts[0].PostState = []byte{1} },
		"gas falls": func(b *chain.Block) {
			b.Receipts = append(b.Receipts, chain.Receipt{LogsEnd: uint32(len(b.Logs))})
			b.Transactions, b.TransactionHashes = append(b.Transactions, []byte{1}), append(b.TransactionHashes, common.Hash{})
		},
	} {
		for _, b := range modelBlocks(3, 20) {
			if len(b.Receipts) == 0 || b.Receipts[len(b.Receipts)-1].CumulativeGasUsed == 0 {
				continue
			}
			spoil(b)
			if _, err := e.Encode(b); !errors.Is(err, ErrIncomplete) {
				t.Errorf("%s: got %v", name, err)
			}
			break
		}
	}
}

// FuzzDecode gives any bytes to all decoders: they refuse them with ErrMalformed, or what they give can be
// used throughout, and encodes to the same bytes again where there is one encoding.
func FuzzDecode(f *testing.F) {
	var e Encoder
	for _, b := range modelBlocks(9, 6) {
		parts, err := e.Encode(b)
		if err != nil {
			f.Fatal(err)
		}
		for i, p := range parts {
			f.Add(uint8(i+1), bytes.Clone(p), uint32(len(b.Transactions)))
		}
	}
	f.Fuzz(func(t *testing.T, part uint8, raw []byte, transactions uint32) {
		var b chain.Block
		var again []byte
		var err error
		switch part {
		case PartHeader:
			err = LoadHeader(raw, &b)
			again = append([]byte{version}, b.Header...)
		case PartBody:
			if err = LoadBody(raw, &b); err == nil {
				again = appendBody([]byte{version}, &b)
			}
		case PartReceipts:
			if err = LoadReceipts(raw, &b); err == nil {
				again = appendReceipts([]byte{version}, &b)
			}
		case PartLogs:
			var l *Logs
			if l, err = DecodeLogs(raw, transactions); err != nil {
				break
			}
			var log chain.Log
			for i := range l.Len() {
				if l.Row(uint32(i), &log) >= transactions {
					t.Fatal("transaction of a log")
				}
			}
			for i, term := range l.terms {
				if rows := l.Find(term); len(rows) == 0 {
					t.Fatalf("term %d is not found", i)
				}
			}
			_ = l.Load(&b)
			if l.Bytes() > 16*int64(len(raw)) {
				t.Fatalf("%d bytes become %d", len(raw), l.Bytes())
			}
			return
		case PartHashes:
			var h *Hashes
			if h, err = DecodeHashes(raw); err == nil {
				b.TransactionHashes = h.Append(nil)
				again = new(Encoder).appendHashes([]byte{version}, &b)
			}
		default:
			return
		}
		switch {
		case err != nil && !errors.Is(err, ErrMalformed):
			t.Fatalf("untyped error: %v", err)
		case err == nil && !bytes.Equal(again, raw):
			t.Fatalf("part %d: got %x want %x", part, again, raw)
		}
	})
}

func BenchmarkLogs(b *testing.B) {
	m := chainmodel.New(1, 1)
	m.Transactions = 200
	block := m.Block()
	for len(block.Logs) < 200 {
		block = m.Block()
	}
	var e Encoder
	parts, err := e.Encode(block)
	if err != nil {
		b.Fatal(err)
	}
	part := bytes.Clone(parts[PartLogs-1])
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(part)))
		for b.Loop() {
			if _, err := e.Encode(block); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(part)))
		for b.Loop() {
			if _, err := DecodeLogs(part, uint32(len(block.Transactions))); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("find", func(b *testing.B) {
		b.ReportAllocs()
		l, err := DecodeLogs(part, uint32(len(block.Transactions)))
		if err != nil {
			b.Fatal(err)
		}
		found := 0
		for i := uint32(0); b.Loop(); i += 0x9e3779b9 {
			found += len(l.Find(i))
		}
	})
}
