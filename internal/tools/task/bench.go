package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// benchCompare runs the same benchmarks on another revision and on this tree, and prints what
// benchstat says. The two take turns, so that a machine that gets slower or faster meanwhile
// does not favour one of them.
func benchCompare(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("bench-compare", flag.ContinueOnError)
	ref := flags.String("ref", "", "revision to compare with")
	bench := flags.String("bench", ".", "benchmarks to run (a pattern)")
	count := flags.Int("count", 6, "rounds; benchstat wants at least 6")
	pkg := flags.String("pkg", "./...", "packages")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *ref == "" {
		return errors.New("say which revision to compare with: make bench-compare REF=main")
	}
	dir, err := os.MkdirTemp("", "bench-compare-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	tree := filepath.Join(dir, "base")
	if err := command(ctx, "git", "worktree", "add", "--detach", tree, *ref).Run(); err != nil {
		return fmt.Errorf("check out %s: %w", *ref, err)
	}
	defer func() {
		err = errors.Join(err, command(context.WithoutCancel(ctx), "git", "worktree", "remove", "--force", tree).Run())
	}()

	if err := linkShared(dir); err != nil {
		return err
	}
	sides := []*benchSide{
		{name: "base", dir: tree, stores: filepath.Join(dir, "stores-base")},
		{name: "head", dir: ".", stores: filepath.Join(dir, "stores-head")},
	}
	for range *count {
		for _, side := range sides {
			if err := side.round(ctx, *bench, *pkg); err != nil {
				return err
			}
		}
	}
	statArgs := []string{"tool", "benchstat"}
	for _, side := range sides {
		path := filepath.Join(dir, side.name)
		if err := os.WriteFile(path+".txt", side.output.Bytes(), 0o600); err != nil {
			return err
		}
		statArgs = append(statArgs, side.name+"="+path+".txt")
	}
	fmt.Printf("base is %s\n", describe(ctx, tree))
	return command(ctx, "go", statArgs...).Run()
}

// linkShared makes the optional test data beside this tree visible beside the tree of the other
// revision, which lies in dir.
func linkShared(dir string) error {
	shared, err := filepath.Abs(filepath.Join("..", "shared"))
	if err != nil {
		return err
	}
	if _, err := os.Stat(shared); err != nil {
		return nil // benchmarks that need it are skipped in both trees
	}
	return os.Symlink(shared, filepath.Join(dir, "shared"))
}

// benchSide is one of the two trees with the results of its rounds.
type benchSide struct {
	name, dir string
	stores    string // kept from round to round; revisions may differ in their format
	output    bytes.Buffer
}

func (s *benchSide) round(ctx context.Context, bench, pkg string) error {
	cmd := command(ctx, "go", append([]string{"test", "-run", "^$", "-bench", bench, "-benchmem", "-count", "1"}, strings.Fields(pkg)...)...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "LEANI_BENCH_DIR="+s.stores)
	cmd.Stdout = io.MultiWriter(os.Stdout, &s.output)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("benchmarks of %s: %w", s.name, err)
	}
	return nil
}

// describe names the revision that is checked out in a tree.
func describe(ctx context.Context, tree string) string {
	out, err := exec.CommandContext(ctx, "git", "-C", tree, "log", "-1", "--format=%h %s").Output()
	if err != nil {
		return tree
	}
	return strings.TrimSpace(string(out))
}
