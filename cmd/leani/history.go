package main

import (
	"github.com/spf13/cobra"
)

func newHistory(a *app) *cobra.Command {
	return group("history", "Fill the store with history and see what it holds",
		newHistoryFill(a),
		newHistoryStatus(a),
		newHistorySources(a),
		newHistoryPrune(a),
		newHistoryExport(a),
		newHistoryVerify(a),
	)
}
