package era

import (
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/shareddata"
)

// TestAccumulatorProvesHeaders recomputes the accumulator of files with blocks before the
// merge from their own headers and compares it, and every total difficulty, with what the
// files say. The chains are real ones and one that crosses the merge.
func TestAccumulatorProvesHeaders(t *testing.T) {
	for _, c := range []struct {
		path  []string
		merge uint64 // first block after the merge
		first uint64 // total difficulty before the first block
	}{
		{[]string{"era", "mainnet", "mainnet-00000-5ec1ffb8.era1"}, 8192, 0},
		{[]string{"era", "mainnet", "mainnet-00000-a6860fef-noproofs.ere"}, 8192, 0},
		{[]string{"era", "rpc-compat-chain", "blocks0-35--unknown-00000-7c27d1f9.era1"}, 36, 0},
		{[]string{"era", "rpc-compat-chain", "blocks0-54--unknown-00000-d226371d-noproofs.ere"}, 36, 0},
	} {
		t.Run(c.path[len(c.path)-1], func(t *testing.T) {
			f, err := OpenPath(shareddata.Path(t, c.path...), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var (
				buf   Buffer
				b     chain.Block
				a     Accumulator
				total = uint256.NewInt(c.first)
			)
			for n := f.Range().From; n < f.Range().To; n++ {
				if err := f.ReadBlock(n, chain.PartHeader, &buf, &b); err != nil {
					t.Fatal(err)
				}
				var h types.Header
				if err := rlp.DecodeBytes(b.Header, &h); err != nil {
					t.Fatal(err)
				}
				total.Add(total, uint256.MustFromBig(h.Difficulty))
				if got, err := f.TotalDifficulty(n); err != nil || !got.Eq(total) {
					t.Fatalf("block %d: total difficulty: got %v %v want %v", n, &got, err, total)
				}
				if n < c.merge {
					if err := a.Add(crypto.Keccak256Hash(b.Header), total); err != nil {
						t.Fatal(err)
					}
				}
			}
			want, err := f.Accumulator()
			if err != nil {
				t.Fatal(err)
			}
			if got := a.Root(); got != want {
				t.Fatalf("accumulator: got %x want %x", got, want)
			}
			if len(a.leaves) == maximumBlocks {
				if a.Add(common.Hash{}, total) == nil {
					t.Error("a full accumulator took another block")
				}
			}
			a.Reset()
			if a.Root() == want {
				t.Error("the root survived a reset")
			}
		})
	}
}

func TestAbsentDifficulty(t *testing.T) {
	base, _ := real(t)
	f, err := open(base.build(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.TotalDifficulty(base.start); !errors.Is(err, ErrAbsent) {
		t.Errorf("total difficulty: got %v", err)
	}
	if _, err := f.TotalDifficulty(0); !errors.Is(err, ErrNotInFile) {
		t.Errorf("total difficulty of another block: got %v", err)
	}
	if _, err := f.Accumulator(); !errors.Is(err, ErrAbsent) {
		t.Errorf("accumulator: got %v", err)
	}
}
