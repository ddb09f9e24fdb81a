package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// newHelp replaces cobra's help command, which takes an unknown topic for success.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]...",
		Short: "Explain a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				if topic == nil || len(rest) == 0 {
					topic, rest = cmd.Root(), args
				}
				return fmt.Errorf("unknown command %q%s", strings.Join(args, " "), suggestion(topic, rest[0]))
			}
			return topic.Help()
		},
	}
}
