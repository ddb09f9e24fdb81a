package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "rewrite the tracked inventory and docs/cli.md")

// inventory is the command tree in the form of docs/reference/generated/cli.json.
type inventory struct {
	SchemaVersion int              `json:"schemaVersion"`
	Command       inventoryCommand `json:"command"`
}

type inventoryCommand struct {
	Name        string              `json:"name"`
	About       string              `json:"about"`
	Usage       string              `json:"usage"`
	Arguments   []inventoryArgument `json:"arguments"`
	Subcommands []inventoryCommand  `json:"subcommands"`
}

type inventoryArgument struct {
	ID             string   `json:"id"`
	Long           *string  `json:"long"`
	Short          *string  `json:"short"`
	Help           string   `json:"help"`
	Required       bool     `json:"required"`
	Action         string   `json:"action"` // Set, SetTrue, Help, Version
	DefaultValues  []string `json:"defaultValues"`
	PossibleValues []string `json:"possibleValues"`
}

// testCommand is the real command tree over an empty process.
func testCommand() *cobra.Command {
	return newCommand(&process{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard,
		getenv: func(string) string { return "" }, backend: stored{}})
}

func describe(cmd *cobra.Command) inventoryCommand {
	out := inventoryCommand{Name: cmd.Name(), About: cmd.Short, Usage: cmd.UseLine(),
		Arguments: []inventoryArgument{}, Subcommands: []inventoryCommand{}}
	for word := range strings.FieldsSeq(strings.TrimPrefix(cmd.Use, cmd.Name())) {
		out.Arguments = append(out.Arguments, positional(cmd, word))
	}
	add := func(f *pflag.Flag) { out.Arguments = append(out.Arguments, describeFlag(f)) }
	cmd.LocalNonPersistentFlags().VisitAll(add)
	cmd.Root().PersistentFlags().VisitAll(add)
	for _, c := range cmd.Commands() {
		out.Subcommands = append(out.Subcommands, describe(c))
	}
	return out
}

// positional describes an argument such as FILE, [COMMAND]... or {bash|zsh}.
func positional(cmd *cobra.Command, word string) inventoryArgument {
	id, possible := strings.ToLower(strings.Trim(word, "[].")), []string{}
	if strings.HasPrefix(word, "{") {
		id, possible = "shell", slices.Clone(cmd.ValidArgs)
	}
	return inventoryArgument{ID: id, Required: !strings.HasPrefix(word, "["), Action: "Set",
		DefaultValues: []string{}, PossibleValues: possible}
}

func describeFlag(f *pflag.Flag) inventoryArgument {
	long, short := f.Name, f.Shorthand
	a := inventoryArgument{ID: strings.ReplaceAll(long, "-", "_"), Long: &long, Help: f.Usage, Action: "Set",
		DefaultValues: []string{}, PossibleValues: []string{}}
	if short != "" {
		a.Short = &short
	}
	_, a.Required = f.Annotations[cobra.BashCompOneRequiredFlag]
	switch {
	case f.Name == "help":
		a.Action = "Help"
	case f.Name == "version":
		a.Action = "Version"
	case f.Value.Type() == "bool":
		a.Action, a.DefaultValues, a.PossibleValues = "SetTrue", []string{f.DefValue}, []string{"true", "false"}
	default:
		if f.DefValue != "" && !a.Required {
			a.DefaultValues = []string{f.DefValue}
		}
		if c, ok := f.Value.(*choice); ok {
			a.PossibleValues = c.allowed
		}
	}
	return a
}

// CLI-021: the tracked inventory is what the command definitions say. Rewrite it with
// `make golden` and read the difference.
func TestInventory(t *testing.T) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(inventory{1, describe(testCommand())}); err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("..", "..", "docs", "reference", "generated", "cli.json"), b.Bytes())
}

// docs/cli.md is written from the same definitions.
func TestReferencePage(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(pageHead)
	page(&b, testCommand())
	golden(t, filepath.Join("..", "..", "docs", "cli.md"), b.Bytes())
}

const pageHead = `# Command line

This page is written from the command definitions by a test of cmd/leani (` + "`make golden`" + `). The same in a
form for programs: [reference/generated/cli.json](reference/generated/cli.json).

Results go to standard output, logs, progress and errors to standard error. Global flags may stand before
or after a command. Paths of flags start at the working directory. What ` + "`--json`" + ` prints:
[json-output.md](json-output.md).

| exit code | meaning |
| --- | --- |
| 0 | success; ` + "`serve`" + ` was stopped by one signal |
| 1 | a failure while running, or one signal to any other command: one or more lines that start with ` + "`error: `" + ` |
| 2 | the command line is wrong |
| 3 | ` + "`doctor`" + `: the settings file is unreadable or invalid |
| 130 | a second SIGINT or SIGTERM cut a running shutdown short |
`

func page(b *bytes.Buffer, cmd *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n", cmd.CommandPath())
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	fmt.Fprintf(b, "%s\n", text)
	if cmd.Runnable() && !cmd.HasSubCommands() {
		fmt.Fprintf(b, "\n    %s\n", cmd.UseLine())
	}
	rows := 0
	row := func(f *pflag.Flag) {
		if f.Name == "help" || f.Name == "version" {
			return
		}
		if rows++; rows == 1 {
			b.WriteString("\n| flag | default | meaning |\n| --- | --- | --- |\n")
		}
		name, usage := pflag.UnquoteUsage(f)
		fallback := f.DefValue
		if _, required := f.Annotations[cobra.BashCompOneRequiredFlag]; required {
			fallback = "required"
		} else if fallback != "" && fallback != "false" {
			fallback = "`" + fallback + "`"
		} else {
			fallback = ""
		}
		flag := "--" + f.Name
		if name != "" {
			flag += " " + strings.ToUpper(name)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", flag, fallback, usage)
	}
	cmd.LocalFlags().VisitAll(row)
	if cmd.Example != "" {
		fmt.Fprintf(b, "\nFor example:\n\n%s\n", indent(cmd.Example))
	}
	for _, c := range cmd.Commands() {
		page(b, c)
	}
}

// indent makes lines a code block.
func indent(s string) string {
	var out []string
	for line := range strings.SplitSeq(s, "\n") {
		out = append(out, "    "+strings.TrimSpace(line))
	}
	return strings.Join(out, "\n")
}

// golden compares with a tracked file, or rewrites it.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is stale: run make golden and read the difference", path)
	}
}
