package history

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
)

// TestDamagedDatabase changes single bits of the files of the catalog's database between two opens, of a
// store that was closed and of one that was killed, with its last commits in the write-ahead log alone.
// The open fails, or the store shows everything. It never shows anything else, although Pebble takes a
// damaged end of its log for an interrupted write.
//
// INV-10 STO-024
func TestDamagedDatabase(t *testing.T) {
	t.Parallel()
	c := newModelChain(8, 0, 32)
	closed := vfs.NewCrashableMem()
	var killed *vfs.MemFS
	for i, part := range [][]*chain.Block{c.blocks[:16], c.blocks[16:]} {
		e, s, err := openSmall(closed, 0, smallOptions(4))
		if err != nil {
			t.Fatal(err)
		}
		write(t, s, part)
		if i == 1 {
			killed = closed.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("closed", func(t *testing.T) { verifyDamagedDatabase(t, c, closed) })
	t.Run("killed", func(t *testing.T) { verifyDamagedDatabase(t, c, killed) })
}

// verifyDamagedDatabase flips bits, one at a time, in a store of all blocks of c.
func verifyDamagedDatabase(t *testing.T, c *modelChain, disk *vfs.MemFS) {
	dir := disk.PathJoin(testDir, "db")
	names, err := disk.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	refused, lost, whole := 0, 0, 0
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
			if _, ok := errors.AsType[*engine.LostCommitsError](err); ok {
				lost++
			}
			continue
		}
		whole++
		if err := c.verifyAgainst(t.Context(), s, c.covered([]chain.Range{{From: 0, To: c.end()}})); err != nil {
			t.Error(err)
		}
		if r := e.Recovery(); len(r.Quarantined)+len(r.Uncommitted) > 0 {
			t.Errorf("recovery %+v", r)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("flip of bit %d of byte %d of %s", bit, at, name)
		}
	}
	t.Logf("%d opens refused, %d of them for lost commits, %d whole", refused, lost, whole)
}
