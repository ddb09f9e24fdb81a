package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newCompletion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "completion {bash|zsh|fish|powershell}",
		Short: "Print a completion script for a shell",
		Long: `Print a completion script for a shell.

For bash, put this into ~/.bashrc:

    source <(leani completion bash)`,
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.stdout)
			case "fish":
				return root.GenFishCompletion(a.stdout, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.stdout)
			}
			return fmt.Errorf("no completion for %s", args[0]) // OnlyValidArgs keeps it away
		}),
	}
}
