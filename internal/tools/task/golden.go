package main

import (
	"context"
	"regexp"
	"slices"
)

// goldenFlag finds the flag with which tests rewrite their golden files.
var goldenFlag = regexp.MustCompile(`flag\.Bool\("(update|rewrite)"`)

// golden rewrites the golden files of every package whose tests can.
func golden(ctx context.Context, _ []string) error {
	packages, err := testPackages(ctx, []string{"./..."})
	if err != nil {
		return err
	}
	for _, p := range packages {
		names := p.find(goldenFlag)
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if err := command(ctx, "go", "test", p.ImportPath, "-"+name).Run(); err != nil {
				return err
			}
		}
	}
	return nil
}
