package main

import (
	"github.com/spf13/cobra"
)

func newArchive(a *app) *cobra.Command {
	return group("archive", "Write and verify archives of normalized frames",
		newArchiveCreate(a),
		newArchiveVerify(a),
	)
}
