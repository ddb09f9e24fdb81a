package receipt

import (
	"bytes"
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	gethrlp "github.com/ethereum/go-ethereum/rlp"
	"pgregory.net/rapid"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/rlp"
)

// drawReceipts makes go-ethereum receipts of all types, with status or state root, and logs of
// up to four topics.
func drawReceipts(t *rapid.T) types.Receipts {
	receipts := make(types.Receipts, rapid.IntRange(0, 5).Draw(t, "receipts"))
	for i := range receipts {
		r := &types.Receipt{
			Type:              rapid.ByteRange(0, 4).Draw(t, "type"),
			CumulativeGasUsed: rapid.Uint64().Draw(t, "gas") >> rapid.IntRange(0, 63).Draw(t, "shift"),
			Status:            rapid.Uint64Range(0, 1).Draw(t, "status"),
		}
		if rapid.Bool().Draw(t, "root") {
			r.PostState = rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "state")
		}
		for range rapid.IntRange(0, 4).Draw(t, "logs") {
			l := &types.Log{Data: rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "data")}
			copy(l.Address[:], rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "address"))
			for range rapid.IntRange(0, 4).Draw(t, "topics") {
				l.Topics = append(l.Topics, common.Hash(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "topic")))
			}
			r.Logs = append(r.Logs, l)
		}
		r.Bloom = types.CreateBloom(r)
		receipts[i] = r
	}
	return receipts
}

// canonical encodes receipts as they stand in a list: typed ones as strings.
func canonical(t interface{ Fatal(...any) }, receipts types.Receipts) []byte {
	list, err := gethrlp.EncodeToBytes(receipts)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestCanonicalEqualsGoEthereum decodes what go-ethereum encodes, and encodes it again to the
// same bytes, both as list items and as values of the receipts trie.
func TestCanonicalEqualsGoEthereum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		receipts := drawReceipts(t)
		list := canonical(t, receipts)
		var b chain.Block
		blooms, err := DecodeCanonical(list, &b, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Receipts) != len(receipts) || len(blooms) != len(receipts) {
			t.Fatalf("got %d receipts and %d blooms, want %d", len(b.Receipts), len(blooms), len(receipts))
		}
		for i, want := range receipts {
			r := &b.Receipts[i]
			if *blooms[i] != want.Bloom {
				t.Fatalf("receipt %d: bloom %x", i, *blooms[i])
			}
			var value bytes.Buffer
			receipts.EncodeIndex(i, &value)
			got := AppendCanonical(nil, r, b.ReceiptLogs(i), blooms[i])
			if !bytes.Equal(got, value.Bytes()) {
				t.Fatalf("receipt %d: got %x want %x", i, got, value.Bytes())
			}
		}
	})
}

// TestSlimRoundTrip encodes receipts in the slim form and reads them back.
func TestSlimRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want, got chain.Block
		if _, err := DecodeCanonical(canonical(t, drawReceipts(t)), &want, nil); err != nil {
			t.Fatal(err)
		}
		list := slimList(&want)
		if err := DecodeSlim(list, &got); err != nil {
			t.Fatal(err)
		}
		if again := slimList(&got); !bytes.Equal(again, list) {
			t.Fatalf("got %x want %x", again, list)
		}
		// The same receipts in one form and in the other.
		for i := range want.Receipts {
			var bloom types.Bloom
			a := AppendCanonical(nil, &want.Receipts[i], want.ReceiptLogs(i), &bloom)
			b := AppendCanonical(nil, &got.Receipts[i], got.ReceiptLogs(i), &bloom)
			if !bytes.Equal(a, b) {
				t.Fatalf("receipt %d: got %x want %x", i, b, a)
			}
		}
	})
}

func slimList(b *chain.Block) []byte {
	var content []byte
	for i := range b.Receipts {
		content = appendSlim(content, &b.Receipts[i], b.ReceiptLogs(i))
	}
	return append(rlp.AppendListHeader(nil, len(content)), content...)
}

// appendSlim appends the slim encoding of a receipt.
func appendSlim(dst []byte, r *chain.Receipt, logs []chain.Log) []byte {
	logsContent := logsContentSize(logs)
	dst = rlp.AppendListHeader(dst, rlp.SizeUint64(uint64(r.Type))+
		outcomeSize(r)+rlp.SizeUint64(r.CumulativeGasUsed)+rlp.SizeList(logsContent))
	dst = rlp.AppendUint64(dst, uint64(r.Type))
	dst = appendOutcome(dst, r)
	dst = rlp.AppendUint64(dst, r.CumulativeGasUsed)
	return appendLogs(dst, logs, logsContent)
}

// list wraps encoded items.
func list(items ...[]byte) []byte {
	content := bytes.Join(items, nil)
	return append(rlp.AppendListHeader(nil, len(content)), content...)
}

func text(s []byte) []byte { return rlp.AppendString(nil, s) }

// TestDecodeRefuses pins the reason and the place of everything beyond RLP that is refused.
func TestDecodeRefuses(t *testing.T) {
	var (
		bloom   = text(make([]byte, types.BloomByteLength))
		topic   = text(make([]byte, 32))
		empty   = list()
		address = text(make([]byte, 20))
	)
	for _, c := range []struct {
		name   string
		slim   bool
		in     []byte
		err    error
		offset int
	}{
		{"slim type 0x80", true, list(list([]byte{0x81, 0x80}, text(nil), text(nil), empty)), ErrType, 1},
		{"slim status 2", true, list(list(text(nil), text([]byte{2}), text(nil), empty)), ErrOutcome, 1},
		{"slim status zero byte", true, list(list(text(nil), text([]byte{0}), text(nil), empty)), ErrOutcome, 1},
		{"slim short root", true, list(list(text(nil), text(make([]byte, 31)), text(nil), empty)), ErrOutcome, 1},
		{"slim missing logs", true, list(list(text(nil), text(nil), text(nil))), rlp.ErrTruncated, 5},
		{"slim surplus field", true, list(list(text(nil), text(nil), text(nil), empty, empty)), rlp.ErrSurplus, 6},
		{"slim surplus after the list", true, append(list(), 0), rlp.ErrSurplus, 1},
		{"slim five topics", true, list(list(text(nil), text(nil), text(nil), list(list(address, list(topic, topic, topic, topic, topic), text(nil))))), ErrTopics, 0},
		{"slim topic of 31 bytes", true, list(list(text(nil), text(nil), text(nil), list(list(address, list(text(make([]byte, 31))), text(nil))))), rlp.ErrStringSize, 0},
		{"typed with type 0", false, list(text(append([]byte{0}, list(text(nil), text(nil), bloom, empty)...))), ErrType, 0},
		{"typed with type 0x80", false, list(text(append([]byte{0x80}, list(text(nil), text(nil), bloom, empty)...))), ErrType, 0},
		{"empty envelope", false, list(text(nil)), ErrType, 0},
		{"type alone", false, list(text([]byte{1})), rlp.ErrTruncated, 0},
		{"surplus in the envelope", false, list(text(append([]byte{1}, append(list(text(nil), text(nil), bloom, empty), 0)...))), rlp.ErrSurplus, 0},
		{"short bloom", false, list(list(text(nil), text(nil), text(make([]byte, 255)), empty)), rlp.ErrStringSize, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b chain.Block
			var err error
			if c.slim {
				err = DecodeSlim(c.in, &b)
			} else {
				_, err = DecodeCanonical(c.in, &b, nil)
			}
			var located *rlp.Error
			if !errors.Is(err, c.err) || !errors.As(err, &located) {
				t.Fatalf("got %v want %v", err, c.err)
			}
			if c.offset != 0 && located.Offset != c.offset {
				t.Fatalf("got offset %d want %d", located.Offset, c.offset)
			}
		})
	}
}

// FuzzReceipts feeds arbitrary bytes to both readers: what they accept must come back byte for
// byte, and what go-ethereum accepts as canonical receipts must be the same set.
func FuzzReceipts(f *testing.F) {
	log := list(text(make([]byte, 20)), list(text(make([]byte, 32))), text([]byte("data")))
	bloom := text(make([]byte, types.BloomByteLength))
	f.Add(list(list([]byte{2}, text([]byte{1}), text([]byte{0x52, 0x08}), list(log))))
	f.Add(list(list(text(make([]byte, 32)), text([]byte{0x52, 0x08}), bloom, list(log)),
		text(append([]byte{2}, list(text(nil), text([]byte{9}), bloom, list())...))))
	f.Add(list())
	f.Fuzz(func(t *testing.T, in []byte) {
		var b chain.Block
		if DecodeSlim(in, &b) == nil {
			if got := slimList(&b); !bytes.Equal(got, in) {
				t.Fatalf("slim: got %x want %x", got, in)
			}
		}
		b.Reset()
		blooms, err := DecodeCanonical(in, &b, nil)
		var geth types.Receipts
		gErr := gethrlp.DecodeBytes(in, &geth)
		if err == nil {
			var content []byte
			for i := range b.Receipts {
				value := AppendCanonical(nil, &b.Receipts[i], b.ReceiptLogs(i), blooms[i])
				if b.Receipts[i].Type != 0 {
					value = text(value)
				}
				content = append(content, value...)
			}
			if got := list(content); !bytes.Equal(got, in) {
				t.Fatalf("canonical: got %x want %x", got, in)
			}
		}
		// go-ethereum knows only the types of today and does not limit topics.
		if gErr == nil && err != nil && !errors.Is(err, ErrTopics) {
			t.Fatalf("go-ethereum accepts what is refused with: %v", err)
		}
	})
}
