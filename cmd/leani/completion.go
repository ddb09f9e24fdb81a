package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// describePlainly takes the quotes out of the descriptions of flags, by which help finds what a value is called: completion shows
// descriptions as they are.
func describePlainly(cmd *cobra.Command) {
	plainly := func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) }
	cmd.Flags().VisitAll(plainly)
	cmd.PersistentFlags().VisitAll(plainly)
	for _, c := range cmd.Commands() {
		describePlainly(c)
	}
}

func newCompletion(a *app) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion {bash|zsh|fish|powershell}",
		Short: "Print a completion script for a shell",
		Long: `Print a completion script for a shell.

For bash, with the package bash-completion installed, put this into ~/.bashrc:

    source <(leani completion bash)

For zsh, this into ~/.zshrc, below compinit:

    source <(leani completion zsh)

For fish, this into ~/.config/fish/config.fish:

    leani completion fish | source`,
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && slices.Contains(shells, args[0]) {
				return nil
			}
			return fmt.Errorf("name one shell: %s", strings.Join(shells, ", "))
		},
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
			return fmt.Errorf("no completion for %s", args[0]) // Args keeps it away
		}),
	}
}
