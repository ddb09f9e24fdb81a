package history

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
)

// TestDamagedDatabase changes single bits of the files of the catalog's database between two opens. The
// open fails, or the store shows everything, or, when what is damaged is the end of the write-ahead log,
// which cannot be told from an interrupted write, the blocks of earlier commits, exactly; the files of
// the later ones are not deleted but moved aside, the first of them excepted. It never shows anything
// else.
//
// INV-10
func TestDamagedDatabase(t *testing.T) {
	t.Parallel()
	c := newModelChain(8, 0, 32)
	disk := vfs.NewCrashableMem()
	for _, part := range [][]*chain.Block{c.blocks[:16], c.blocks[16:]} {
		e, s, err := openSmall(disk, 0, smallOptions(4))
		if err != nil {
			t.Fatal(err)
		}
		write(t, s, part)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	dir := disk.PathJoin(testDir, "db")
	names, err := disk.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	refused, whole, shorter := 0, 0, 0
	for i := 0; i < 400; i += stride() {
		rng := rand.New(rand.NewPCG(uint64(i), 6))
		fs := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng})
		name := names[i%len(names)]
		raw, err := fs.UnsafeGetFileDataBuffer(fs.PathJoin(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if len(raw) == 0 {
			continue
		}
		at, bit := rng.IntN(len(raw)), byte(1)<<rng.IntN(8)
		raw[at] ^= bit
		e, s, err := openSmall(fs, 0, smallOptions(4))
		if err != nil {
			refused++
			continue
		}
		v, err := s.View()
		if err != nil {
			t.Fatal(err)
		}
		runs := v.Coverage()
		v.Close()
		switch {
		case len(runs) != 1 || runs[0].From != 0 || runs[0].To < 16 || runs[0].To%4 != 0:
			t.Errorf("coverage %v was never acknowledged", runs)
		case runs[0].To == 32:
			whole++
		default:
			shorter++
			lost := int(32-runs[0].To) / 4 * 2 // files
			if r := e.Recovery(); len(r.Quarantined) != lost-2 || len(r.Uncommitted) != 2 {
				t.Errorf("coverage %v: recovery %+v", runs, r)
			}
		}
		if err := c.verifyAgainst(t.Context(), s, c.covered(runs)); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("flip of bit %d of byte %d of %s", bit, at, name)
		}
	}
	t.Logf("%d opens refused, %d whole, %d shorter", refused, whole, shorter)
}
