package main

import (
	"github.com/spf13/cobra"
)

func newDB(a *app) *cobra.Command {
	return group("db", "Inspect, verify, back up and compact the store",
		newDBInspect(a),
		newDBVerify(a),
		newDBKeys(a),
		newDBBackup(a),
		newDBRestore(a),
		newDBCompact(a),
	)
}
