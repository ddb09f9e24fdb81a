package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
)

var fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// fuzz runs every fuzz target of the given packages, one after the other.
func fuzz(ctx context.Context, args []string) error {
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
	n := 0
	for _, p := range packages {
		for _, target := range p.find(fuzzTarget) {
			if err := fuzzOne(ctx, p.ImportPath, target, *each); err != nil {
				return err
			}
			n++
		}
	}
	fmt.Printf("%d fuzz targets passed\n", n)
	return nil
}

func fuzzOne(ctx context.Context, pkg, target, each string) error {
	var output bytes.Buffer
	cmd := command(ctx, "go", "test", "-run", "^$", "-fuzz", "^"+target+"$", "-fuzztime", each, pkg)
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
	return fmt.Errorf("%s of %s failed: %w", target, pkg, err)
}
