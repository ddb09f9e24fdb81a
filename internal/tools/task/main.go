// Command task holds what the Makefile's recipes would otherwise be shell programs for.
//
//	task test [flags] [packages]             run tests, with a report of times and skipped tests
//	task fuzz [-time 10s] [packages]         run every fuzz target for a while
//	task golden                              rewrite the golden files of all packages
//	task bench-compare -ref REF [-bench X]   compare benchmarks with another revision
//	task fmt                                 let gofmt change files
//	task fmt-check                           list files that gofmt would change, and fail
//
// It runs in the project's root and prints the commands it runs.
package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	tasks := map[string]func(context.Context, []string) error{
		"test": test, "fuzz": fuzz, "golden": golden, "bench-compare": benchCompare, "fmt": format, "fmt-check": formatCheck,
	}
	if len(args) == 0 || tasks[args[0]] == nil {
		return fmt.Errorf("usage: task test|fuzz|golden|bench-compare|fmt|fmt-check [flags]")
	}
	return tasks[args[0]](ctx, args[1:])
}

// command prints and prepares a command with our output.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	fmt.Printf("%s %s\n", name, strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}

// formatCheck fails when gofmt would change a file.
func formatCheck(ctx context.Context, _ []string) error {
	files, err := goFiles(".")
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "gofmt", append([]string{"-l"}, files...)...).Output()
	if err != nil {
		return fmt.Errorf("gofmt: %w", err)
	}
	if len(out) > 0 {
		return fmt.Errorf("not formatted; run make fmt:\n%s", strings.TrimSpace(string(out)))
	}
	return nil
}

// format lets gofmt change files.
func format(ctx context.Context, _ []string) error {
	files, err := goFiles(".")
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "gofmt", append([]string{"-w"}, files...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("gofmt: %w\n%s", err, out)
	}
	return nil
}

// goFiles lists the Go files below a folder, but for those of npm packages: gofmt by itself would walk into them.
func goFiles(root string) (files []string, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git"):
			return filepath.SkipDir
		case entry.Type().IsRegular() && strings.HasSuffix(path, ".go"):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}
