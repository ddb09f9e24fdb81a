package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leani-go/leani/config"
)

func newServe(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Answer JSON-RPC queries from the store",
		Long: `Answer Ethereum JSON-RPC over HTTP and WebSocket from what the store holds.

The log says at the start which blocks are held, and at which URLs they are asked for.

One SIGINT or SIGTERM ends it after the running requests; a second one at once.`,
		Args: noArguments,
		RunE: action(func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), a) }),
	}
}

func serve(ctx context.Context, a *app) error {
	return withNode(ctx, a, false, func(cfg *config.Config, n node) error {
		log := a.logger()
		idle, remarks := idleSettings(cfg.Warnings)
		if len(idle) > 0 {
			log.Info("settings without effect in this build; doctor --json says why", "settings", strings.Join(idle, " "))
		}
		for _, w := range remarks {
			log.Warn("setting "+w.Message, "setting", w.Field)
		}
		held, err := n.status(ctx)
		if err != nil {
			return err
		}
		log.Info("starting", "version", currentVersion().Version, "chain", cfg.Chain.Name, "id", held.ChainID)
		if held.Head == nil {
			log.Warn("the store is empty: run `leani history fill`, while serve does not run")
		} else {
			log.Info("serving", "head", held.Head.Number, "retained", listSpans(held.Coverage))
		}
		err = n.serve(ctx, func(url string) { log.Info("listening", "url", url) })
		if err == nil {
			log.Info("stopped")
		}
		return err
	})
}

// idleSettings are the settings that do nothing, and the other remarks.
func idleSettings(all []config.Warning) (idle []string, others []config.Warning) {
	for _, w := range all {
		if strings.Contains(w.Message, "has no effect") {
			idle = append(idle, w.Field)
		} else {
			others = append(others, w)
		}
	}
	return idle, others
}
