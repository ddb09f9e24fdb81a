package main

import (
	"github.com/spf13/cobra"

	"github.com/leani-go/leani/config"
)

func newDBInspect(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "inspect",
		Short: "Count rows and files by what they are",
		Long:  "Walk the whole catalog, count its rows by key family and its files by kind, and name what fits nowhere.",
		Args:  noArguments,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			return withNode(cmd.Context(), a, true, func(_ *config.Config, n node) error { return n.inspect(cmd.Context(), a.stdout) })
		}),
	}
}
