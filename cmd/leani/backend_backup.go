package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/segments"
)

// backup writes a copy of the store.
func (n *storedNode) backup(ctx context.Context, out string, how backupRequest) (backupReport, error) {
	out, err := filepath.Abs(out)
	if err != nil {
		return backupReport{}, err
	}
	if err := parentThere(out); err != nil {
		return backupReport{}, fmt.Errorf("--out %s: %w", out, err)
	}
	o := engine.BackupOptions{Copy: how.copied}
	if !how.unverified {
		o.Verify = checkPages
	}
	r, err := n.engine.Backup(ctx, out, o)
	switch {
	case errors.Is(err, engine.ErrUnsound):
		err = fmt.Errorf("%w: nothing was written; mend the store as docs/troubleshooting.md says, or copy it as it is with --no-verify", err)
	case errors.Is(err, engine.ErrTargetExists):
		err = fmt.Errorf("%w: name a directory that does not exist", err)
	case errors.Is(err, engine.ErrTargetWithin):
		err = fmt.Errorf("%w: name a directory outside of it", err)
	}
	report := backupReportOf(out, r)
	report.Verified = err == nil && !how.unverified
	return report, err
}

// parentThere wants the directory in which a directory is to be made. Making that one too would put a backup onto the disk
// of the system when its own is not mounted.
func parentThere(dir string) error {
	parent := filepath.Dir(dir)
	info, err := os.Stat(parent)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s, in which it would be made, does not exist: make it first, or mount the disk that it is on", parent)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s, in which it would be made, is not a directory", parent)
	}
	return nil
}

func backupReportOf(dir string, r engine.BackupReport) backupReport {
	return backupReport{
		Directory: dir, Generation: r.Generation, Files: uint64(r.Files), FileBytes: uint64(r.Bytes),
		Copied: uint64(r.Copied), Rows: uint64(r.Rows),
	}
}

// restore puts a backup in place.
func (stored) restore(ctx context.Context, o nodeOptions, from string, copied bool) (restoreReport, error) {
	from, err := filepath.Abs(from)
	if err != nil {
		return restoreReport{}, err
	}
	dir := o.settings.DataDir
	if err := parentThere(dir); err != nil {
		return restoreReport{}, fmt.Errorf("data_dir %s: %w", dir, err)
	}
	r, err := engine.Restore(ctx, from, dir, engine.RestoreOptions{
		BackupOptions: engine.BackupOptions{Copy: copied}, ChainID: o.settings.Chain.ChainID, File: checkPages,
	})
	switch {
	case errors.Is(err, engine.ErrTargetExists):
		err = fmt.Errorf("%w: move db and GENERATION out of %s first, or use another data_dir", err, dir)
	case errors.Is(err, engine.ErrNoStore):
		err = fmt.Errorf("%w: --from names a directory that db backup wrote", err)
	}
	report := restoreReport{backupReport: backupReportOf(dir, r.BackupReport), Quarantined: r.Quarantined}
	report.Verified = err == nil
	return report, err
}

// checkPages reads a whole segment file against its checksums.
func checkPages(ctx context.Context, row *engine.FileRow, f *engine.File) error {
	s, err := segments.Open(row.String(), 0, f, nil)
	if err != nil {
		return err
	}
	if s.Digest() != row.Digest {
		return fmt.Errorf("digest: got %x want %x", s.Digest(), row.Digest)
	}
	return s.CheckPages(ctx, nil)
}

// compact merges what is due and rewrites the database. observe is told what begins.
func (n *storedNode) compact(ctx context.Context, observe func(what string)) (compactReport, error) {
	r := compactReport{Before: spaceOf(n.engine.Space())}
	observe("merging files")
	st, err := n.history.Compact(ctx)
	r.DataMerges, r.IndexMerges, r.BytesRead = uint64(st.Repacks), uint64(st.IndexMerges), uint64(st.BytesRead)
	for _, p := range st.Problems {
		r.Problems = append(r.Problems, p.Error())
	}
	if err != nil {
		return r, n.failure(err)
	}
	observe("rewriting the database")
	if err := n.engine.CompactDatabase(ctx); err != nil {
		return r, n.failure(err)
	}
	r.After = spaceOf(n.engine.Space())
	return r, nil
}
