package engine

import (
	"context"
	"fmt"

	"github.com/leani-go/leani/keys"
)

// Inventory counts what a store holds.
type Inventory struct {
	FormatVersion uint32
	ChainID       uint64
	Epoch         [16]byte
	Generation    uint64
	// Families counts the rows of the database by family, in byte order, without the families
	// that have none. Families this build does not know are listed too.
	Families []FamilyUsage
	// Files counts the live segment files by kind, profile and level.
	Files []FileUsage
	// Profiles are the kinds of partial material.
	Profiles []*Profile
	// Coverage lists what is retained, of complete and of partial material.
	Coverage []CoverageRun
	// DatabaseBytes is the disk space of the database.
	DatabaseBytes uint64
	// RetiredFiles and RetiredBytes count replaced files that wait for their readers.
	RetiredFiles int
	RetiredBytes int64
	// Snapshots, PendingFiles and OpenFiles count what is in use at this moment.
	Snapshots    int
	PendingFiles int
	OpenFiles    int
}

// FamilyUsage counts the rows of one key family.
type FamilyUsage struct {
	Family     keys.Family
	Keys       int
	KeyBytes   int64
	ValueBytes int64
}

// FileUsage counts the files of one kind, profile and level.
type FileUsage struct {
	Kind         Kind
	Profile      uint16
	Level        uint8
	Files        int
	Bytes        int64
	Blocks       uint64
	Transactions uint64
	Logs         uint64
}

// Inspect counts what the store holds. It reads every row of the database, and no segment file.
func (e *Engine) Inspect(ctx context.Context) (*Inventory, error) {
	if e.closed.Load() {
		return nil, fmt.Errorf("inspect store: %w", ErrClosed)
	}
	snapshot := e.Acquire()
	defer snapshot.Release()
	inv := &Inventory{
		FormatVersion: e.identity.formatVersion,
		ChainID:       e.identity.chainID,
		Epoch:         e.identity.epoch,
		Generation:    snapshot.Generation(),
		Profiles:      snapshot.catalog.profiles,
		Coverage:      snapshot.catalog.coverage,
		DatabaseBytes: e.db.Metrics().DiskSpaceUsage(),
		OpenFiles:     e.handles.openCount(),
	}
	err := e.ScanKeys(ctx, nil, func(key []byte, valueBytes int) error {
		inv.countKey(key, valueBytes)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("inspect store: %w", err)
	}
	for _, kind := range keys.Kinds() {
		for _, r := range snapshot.Rows(kind) {
			inv.countFile(r)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	inv.Snapshots, inv.PendingFiles = e.mu.snapshots-1, e.mu.pending
	for v := e.mu.oldest; v != nil; v = v.next {
		inv.countRetired(v.retired)
	}
	inv.countRetired(e.mu.deletable)
	return inv, nil
}

func (inv *Inventory) countKey(key []byte, valueBytes int) {
	if len(key) == 0 {
		return
	}
	family := keys.Family(key[0])
	if n := len(inv.Families); n == 0 || inv.Families[n-1].Family != family {
		inv.Families = append(inv.Families, FamilyUsage{Family: family})
	}
	u := &inv.Families[len(inv.Families)-1]
	u.Keys++
	u.KeyBytes += int64(len(key))
	u.ValueBytes += int64(valueBytes)
}

func (inv *Inventory) countFile(r *FileRow) {
	n := len(inv.Files)
	if n == 0 || inv.Files[n-1].Kind != r.Kind || inv.Files[n-1].Profile != r.Profile || inv.Files[n-1].Level != r.Level {
		inv.Files = append(inv.Files, FileUsage{Kind: r.Kind, Profile: r.Profile, Level: r.Level})
	}
	u := &inv.Files[len(inv.Files)-1]
	u.Files++
	u.Bytes += r.Size
	u.Blocks += r.Blocks()
	u.Transactions += r.Transactions
	u.Logs += r.Logs
}

func (inv *Inventory) countRetired(list []tombstone) {
	for _, t := range list {
		inv.RetiredFiles++
		inv.RetiredBytes += t.size
	}
}

// scanCheckInterval is how many rows ScanKeys visits between looks at its context.
const scanCheckInterval = 1024

// ScanKeys visits the keys that begin with prefix, in order, as the database holds them now.
// key is valid during the visit. An error of the visit ends the scan and is returned.
func (e *Engine) ScanKeys(ctx context.Context, prefix []byte, visit func(key []byte, valueBytes int) error) error {
	if e.closed.Load() {
		return fmt.Errorf("scan keys: %w", ErrClosed)
	}
	view := e.db.NewSnapshot()
	defer func() { _ = view.Close() }()
	n := 0
	return scanRange(view, prefix, prefixEnd(prefix), func(key, value []byte) error {
		if n++; n%scanCheckInterval == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		return visit(key, len(value))
	})
}

// prefixEnd gives the first key after those that begin with prefix, nil when there is none.
func prefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}
