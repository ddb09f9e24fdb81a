package engine

import (
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestCommitGeneration commits from several goroutines at once: each is told the generation of its own edit, which
// is that of the row that it added.
func TestCommitGeneration(t *testing.T) {
	t.Parallel()
	e := mustOpen(t, testOptions(vfs.NewMem()))
	const committers, files = 4, 8
	var got [committers][files]uint64
	var group sync.WaitGroup
	for c := range uint64(committers) {
		var rows []NewRow
		for i := range uint64(files) {
			at := (c*files + i) * 10 // with gaps, so that nothing has to link
			rows = append(rows, mustPending(t, e, KindData, 0, at, at+4))
		}
		group.Go(func() {
			for i, row := range rows {
				var err error
				if got[c][i], err = e.CommitGeneration(t.Context(), Edit{Add: []NewRow{row}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	for c := range got {
		for i, generation := range got[c] {
			if row := rowAt(t, e, KindData, 0, uint64(c*files+i)*10); row.Generation != generation {
				t.Errorf("%s is of generation %d, its commit said %d", row, row.Generation, generation)
			}
		}
	}
	mustCheck(t, e)
	mustClose(t, e)
}
