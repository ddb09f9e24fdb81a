package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// blockNumber is a flag that takes the number of a block.
type blockNumber uint64

func (b *blockNumber) String() string { return strconv.FormatUint(uint64(*b), 10) }

// Set takes a decimal number, or a hexadecimal one after 0x.
func (b *blockNumber) Set(s string) error {
	n, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return errors.New("write a block number such as 17034869")
	}
	*b = blockNumber(n)
	return nil
}

// Type names the flag's type for help texts.
func (b *blockNumber) Type() string { return "block" }

// chainNumber is a flag that takes a chain id.
type chainNumber uint64

func (c *chainNumber) String() string { return strconv.FormatUint(uint64(*c), 10) }

// Set takes a decimal number, or a hexadecimal one after 0x.
func (c *chainNumber) Set(s string) error {
	n, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return errors.New("write a chain id such as 1")
	}
	*c = chainNumber(n)
	return nil
}

// Type names the flag's type for help texts.
func (c *chainNumber) Type() string { return "id" }

// noArguments refuses what follows a command that takes flags only.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), suggestion(cmd, args[0]))
	}
	return fmt.Errorf("%s takes no argument, got %q", cmd.CommandPath(), strings.Join(args, " "))
}

// suggestion asks whether a command is meant that is spelt much like a word, or that the word begins; empty where there is none.
func suggestion(cmd *cobra.Command, word string) string {
	var names []string
	for _, name := range cmd.SuggestionsFor(word) {
		names = append(names, strconv.Quote(name))
	}
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}

// oneFile wants the name of one file.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("%s takes the name of one file, got %d", cmd.CommandPath(), len(args))
}
