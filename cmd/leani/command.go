package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leani-go/leani/config"
)

// defaultConfig is the settings file when none is named.
const defaultConfig = "./leani.toml"

// app is one invocation: the process and the global flags.
type app struct {
	*process
	configPath string
	logFormat  choice
	logFilter  string
}

// newCommand builds the whole tree.
func newCommand(p *process) *cobra.Command {
	a := &app{process: p, logFormat: choice{value: "pretty", allowed: []string{"pretty", "json"}}}
	root := &cobra.Command{
		Use:   "leani",
		Short: "A self-hosted Ethereum data node",
		Long: `Leani fills a store with verified Ethereum history and answers JSON-RPC queries from it.

The log goes to standard error. Its filter has parts, separated by commas: a level for everything, and
component=level for one component. Levels are trace, debug, info, warn, error and off; trace is debug.
Components are engine (the store), history (blocks in it), sources (those of history while filling),
on-demand (those of history while serving), live (the live source) and rpc (JSON-RPC). For example
rpc=debug,warn.`,
		Args:          noArguments,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.CompletionOptions.DisableDefaultCmd = true
	flags := root.PersistentFlags()
	flags.StringVar(&a.configPath, "config", defaultConfig, "settings `file`; init writes it [env LEANI_CONFIG]")
	flags.Var(&a.logFormat, "log-format", "log format: pretty or json")
	flags.StringVar(&a.logFilter, "log-filter", "info", "log `filter`: a level, or parts like rpc=debug,info; see leani --help [env LEANI_LOG]")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return a.environment(cmd) }

	root.AddCommand(
		newInit(a),
		newDoctor(a),
		newHistory(a),
		newServe(a),
		newDB(a),
		newSegment(a),
		newArchive(a),
		newVersion(a),
		newCompletion(a),
	)
	root.SetHelpCommand(newHelp())
	root.InitDefaultHelpCmd()
	finish(root)
	return root
}

// environment fills in the flags that the command line leaves to the environment.
func (a *app) environment(cmd *cobra.Command) error {
	for flag, name := range map[string]string{"config": "LEANI_CONFIG", "log-filter": "LEANI_LOG"} {
		if value := a.getenv(name); value != "" && !cmd.Flags().Changed(flag) {
			if err := cmd.Flags().Set(flag, value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if _, err := parseLogFilter(a.logFilter); err != nil {
		if value := a.getenv("LEANI_LOG"); value != "" && value == a.logFilter {
			return fmt.Errorf("environment variable LEANI_LOG: %w", err)
		}
		return fmt.Errorf("--log-filter: %w", err)
	}
	return nil
}

// logger is the log of this invocation, on standard error.
func (a *app) logger() *slog.Logger {
	filter, err := parseLogFilter(a.logFilter)
	if err != nil { // environment checked it before any command ran
		filter = logFilter{}
	}
	return newLogger(a.stderr, a.logFormat.value == "json", a.getenv("NO_COLOR") != "", filter)
}

// settings loads the settings file. Every command but doctor fails on problems as on any other
// error.
func (a *app) settings() (*config.Config, error) { return config.Load(a.configPath) }

// action adapts a function to cobra. What it returns is a failure of the command, not of the
// command line.
func action(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := f(cmd, args)
		if errors.Is(err, context.Canceled) && cmd.Context().Err() != nil {
			err = errors.New("interrupted")
		}
		return failed(err)
	}
}

// group is a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	var names []string
	for _, c := range commands {
		names = append(names, c.Name())
	}
	g := &cobra.Command{
		Use:   use,
		Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q; one of: %s%s", args[0], strings.Join(names, ", "), suggestion(cmd, args[0]))
			}
			return fmt.Errorf("a command is missing; one of: %s", strings.Join(names, ", "))
		},
	}
	g.AddCommand(commands...)
	return g
}

// finish gives every command what all of them have: -V and --version, usage errors for
// bad flags, and suggestions for what is spelt almost right.
func finish(cmd *cobra.Command) {
	cmd.SuggestionsMinimumDistance = 2
	cmd.InitDefaultHelpFlag()
	cmd.Version = currentVersion().String()
	cmd.SetVersionTemplate("leani {{.Version}}\n")
	cmd.Flags().BoolP("version", "V", false, "print the version")
	cmd.DisableAutoGenTag = true
	for _, c := range cmd.Commands() {
		finish(c)
	}
}

// choice is a flag that takes one of a few words.
type choice struct {
	value   string
	allowed []string
}

func (c *choice) String() string { return c.value }

// Set takes one of the allowed words.
func (c *choice) Set(s string) error {
	for _, word := range c.allowed {
		if s == word {
			c.value = s
			return nil
		}
	}
	return fmt.Errorf("must be one of %s", strings.Join(c.allowed, ", "))
}

// Type names the flag's type for help texts.
func (c *choice) Type() string { return "format" }
