package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// testPackage is a package with the texts of its test files.
type testPackage struct {
	ImportPath                string
	Dir                       string
	TestGoFiles, XTestGoFiles []string
	texts                     [][]byte
}

// testPackages lists packages that have tests.
func testPackages(ctx context.Context, patterns []string) ([]testPackage, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"}, patterns...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var list []testPackage
	for d := json.NewDecoder(out); ; {
		var p testPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, errors.Join(fmt.Errorf("go list: %w", err), cmd.Wait())
		}
		for _, name := range append(p.TestGoFiles, p.XTestGoFiles...) {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				return nil, errors.Join(err, cmd.Wait())
			}
			p.texts = append(p.texts, text)
		}
		list = append(list, p)
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	return list, nil
}

// find lists what the first group of a pattern matches in the package's tests.
func (p testPackage) find(pattern *regexp.Regexp) []string {
	var out []string
	for _, text := range p.texts {
		for _, match := range pattern.FindAllSubmatch(text, -1) {
			out = append(out, string(match[1]))
		}
	}
	return out
}
