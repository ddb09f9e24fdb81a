package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/leani-go/leani/config"
)

// backupReport is what db backup prints.
type backupReport struct {
	Directory  string `json:"directory"`
	Generation uint64 `json:"generation"` // of the last commit in it
	Files      uint64 `json:"files"`
	FileBytes  uint64 `json:"fileBytes"`
	Copied     uint64 `json:"copied"` // files that were copied and not linked
	Rows       uint64 `json:"rows"`   // of the database
	// Verified tells that every page of the segment files was read against its checksum.
	Verified bool `json:"verified"`
}

// backupRequest says how to back up.
type backupRequest struct {
	copied     bool // do not link
	unverified bool // do not read what is written
}

// restoreReport is what db restore prints.
type restoreReport struct {
	backupReport
	Quarantined []string `json:"quarantined"`
}

func newDBBackup(a *app) *cobra.Command {
	var (
		out    string
		how    backupRequest
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "Write a copy of the store to a new directory",
		Long: `Write everything that is committed to a new directory: a data directory of its own, which db restore puts
in place and which can be served as it is. It appears when it is complete.

Segment files never change, so that hard links to them serve where the file system allows it: on the same
file system a backup takes the space of the database alone. Use --copy for files that do not share a disk
with the originals. No other process may use the data directory meanwhile.

Every page of the segment files in the backup is read against its checksum, linked ones too, and damage ends the
backup with code 1 and no directory. With --no-verify nothing is read, and a damaged store is copied as it is:
db restore refuses such a copy.`,
		Example: "  leani db backup --out /srv/backup/monday",
		Args:    noArguments,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			return withNode(cmd.Context(), a, true, func(_ *config.Config, n node) error {
				return dbBackup(cmd.Context(), a, n, out, how, asJSON)
			})
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&out, "out", "", "`directory` to write, which must not exist; the one above it must")
	flags.BoolVar(&how.copied, "copy", false, "copy segment files, also where hard links would do")
	flags.BoolVar(&how.unverified, "no-verify", false, "do not read the files of the backup for damage")
	flags.BoolVar(&asJSON, "json", false, "print a JSON object")
	requireFlag(cmd, "out")
	return cmd
}

// requireFlag marks a flag that was added.
func requireFlag(cmd *cobra.Command, name string) {
	if err := cmd.MarkFlagRequired(name); err != nil {
		panic("BUG: " + err.Error())
	}
}

func dbBackup(ctx context.Context, a *app, n node, out string, how backupRequest, asJSON bool) error {
	if out == "" {
		return errors.New("--out: name a directory")
	}
	r, err := n.backup(ctx, out, how)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(a.stdout, r)
	}
	_, err = fmt.Fprintf(a.stdout, "Backed up to %s: %s.\n", r.Directory, r)
	return err
}

// String is the report in words.
func (r backupReport) String() string {
	how := "all linked"
	if r.Copied > 0 {
		how = counted(r.Copied, "file") + " copied"
	}
	if !r.Verified {
		how += ", not verified"
	}
	return fmt.Sprintf("commit %d with %s of %s (%s) and %s", r.Generation, counted(r.Files, "segment file"),
		humanize.IBytes(r.FileBytes), how, counted(r.Rows, "row"))
}

func newDBRestore(a *app) *cobra.Command {
	var (
		from   string
		copied bool
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Put a backup in place as the store",
		Long: `Verify a backup, every page of it, and put it in place as the store of data_dir, which must hold no
database: an empty directory, or one from which db and GENERATION were moved away. The backup is not changed.

Segment files that lie in data_dir and are not part of the backup are moved to its quarantine directory and
never deleted: newer history can be filled again, or brought back by hand. An interrupted restore leaves no
store; run it again.`,
		Example: "  leani db restore --from /srv/backup/monday",
		Args:    noArguments,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			return dbRestore(cmd.Context(), a, from, copied, asJSON)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "`directory` of the backup")
	flags.BoolVar(&copied, "copy", false, "copy segment files, also where hard links would do")
	flags.BoolVar(&asJSON, "json", false, "print a JSON object")
	requireFlag(cmd, "from")
	return cmd
}

func dbRestore(ctx context.Context, a *app, from string, copied, asJSON bool) error {
	cfg, err := a.settings()
	if err != nil {
		return err
	}
	r, err := a.backend.restore(ctx, nodeOptions{settings: cfg, log: a.logger()}, from, copied)
	if err != nil {
		return err
	}
	if r.Quarantined == nil {
		r.Quarantined = []string{}
	}
	if asJSON {
		return printJSON(a.stdout, r)
	}
	for _, q := range r.Quarantined {
		fmt.Fprintf(a.stdout, "not part of the backup, now %s\n", q)
	}
	_, err = fmt.Fprintf(a.stdout, "Restored %s: %s.\n", r.Directory, r.backupReport)
	return err
}
