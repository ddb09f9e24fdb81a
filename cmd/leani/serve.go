package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/leani-go/leani/config"
)

func newServe(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Answer JSON-RPC queries from the store",
		Long: `Answer Ethereum JSON-RPC over HTTP from what the store holds.

One SIGINT or SIGTERM ends it after the running requests; a second one at once.`,
		Args: noArguments,
		RunE: action(func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), a) }),
	}
}

func serve(ctx context.Context, a *app) error {
	return withNode(ctx, a, false, func(cfg *config.Config, n node) error {
		log := a.logger()
		for _, w := range cfg.Warnings {
			log.Warn("setting "+w.Message, "setting", w.Field)
		}
		return n.serve(ctx, func(url string) { log.Info("listening", "url", url) })
	})
}
