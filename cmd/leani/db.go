package main

import (
	"github.com/spf13/cobra"
)

func newDB(a *app) *cobra.Command {
	return group("db", "Inspect and verify the store",
		newDBInspect(a),
		newDBVerify(a),
		newDBKeys(a),
	)
}
