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
	"regexp"
	"strings"
)

var fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// fuzz runs every fuzz target of the given packages, one after the other.
func fuzz(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	each := flags.String("time", "10s", "time for each target, or a number of runs such as 1000x")
	if err := flags.Parse(args); err != nil {
		return err
	}
	patterns := flags.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	packages, err := testPackages(ctx, patterns)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fuzz-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("go env GOCACHE: %w", err)
	}
	n := 0
	for _, p := range packages {
		targets := p.find(fuzzTarget)
		if len(targets) == 0 {
			continue
		}
		// As `go test -fuzz` does it, but compiled once for all targets of the package.
		binary := filepath.Join(dir, "fuzz.test")
		if err := command(ctx, "go", "test", "-c", "-fuzz", "^Fuzz", "-o", binary, p.ImportPath).Run(); err != nil {
			return fmt.Errorf("compile fuzz targets of %s: %w", p.ImportPath, err)
		}
		corpus := filepath.Join(strings.TrimSpace(string(cache)), "fuzz", p.ImportPath)
		for _, target := range targets {
			if err := fuzzOne(ctx, p, binary, corpus, target, *each); err != nil {
				return err
			}
			n++
		}
	}
	fmt.Printf("%d fuzz targets passed\n", n)
	return nil
}

// fuzzOne runs one target of a package's fuzz binary. Inputs that reach new code go to the corpus
// folder, those that fail to testdata of the package.
func fuzzOne(ctx context.Context, p testPackage, binary, corpus, target, each string) error {
	var output bytes.Buffer
	cmd := command(ctx, binary, "-test.run", "^$", "-test.fuzz", "^"+target+"$", "-test.fuzztime", each, "-test.fuzzcachedir", corpus)
	cmd.Dir = p.Dir
	cmd.Stdout = io.MultiWriter(os.Stdout, &output)
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case bytes.Contains(output.Bytes(), []byte("context deadline exceeded")) && !bytes.Contains(output.Bytes(), []byte("Failing input")):
		// The toolchain reports running out of time as failure when it happens between two
		// inputs (golang/go#48591). No input failed.
		return nil
	}
	return fmt.Errorf("%s of %s failed: %w", target, p.ImportPath, err)
}
