package engine

import (
	"context"
	"fmt"
	"slices"
)

// backupModel is a backup that was acknowledged and what it must hold.
type backupModel struct {
	dir   string
	files []modelFile
	hot   modelHot
}

// backup backs the store up; what is acknowledged must outlive any crash.
func (w *world) backup() {
	dir := fmt.Sprintf("/backups/%d", w.rng.Uint32())
	_, err := w.engine.Backup(context.Background(), dir, BackupOptions{Copy: w.rng.IntN(3) == 0})
	w.note("backup to %s: %v", dir, err)
	if err != nil {
		w.expectStopped("backup", err)
		return
	}
	w.backups = append(w.backups, backupModel{dir, slices.Clone(w.acknowledged), w.hot})
}

// verifyBackup restores one of the backups elsewhere and compares it.
func (w *world) verifyBackup() {
	if len(w.backups) == 0 || w.rng.IntN(2) == 0 {
		return
	}
	b := w.backups[w.rng.IntN(len(w.backups))]
	dir := fmt.Sprintf("/restored/%d", w.rng.Uint32())
	if _, err := Restore(context.Background(), b.dir, dir, RestoreOptions{FS: w.disk, File: checkContent}); err != nil {
		w.fail("restore %s: %v", b.dir, err)
		return
	}
	e, err := Open(optionsIn(dir, w.disk))
	if err != nil {
		w.fail("open %s: %v", dir, err)
		return
	}
	if got, err := readFiles(e); err != nil || !sameFiles(got, b.files) {
		w.fail("restored from %s: got %v, %v want %v", b.dir, describe(got), err, describe(b.files))
	}
	if got, err := readHot(e); err != nil || !got.same(&b.hot) {
		w.fail("restored from %s: recent blocks got %v, %v want %v", b.dir, &got, err, &b.hot)
	}
	if err := e.Close(); err != nil {
		w.fail("close %s: %v", dir, err)
	}
}
