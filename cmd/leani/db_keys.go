package main

import (
	"github.com/spf13/cobra"

	"github.com/leani-go/leani/config"
)

func newDBKeys(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "keys",
		Short: "Print the rows of the catalog in key order",
		Args:  noArguments,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			return withNode(cmd.Context(), a, true, func(_ *config.Config, n node) error { return n.keys(cmd.Context(), a.stdout) })
		}),
	}
}
