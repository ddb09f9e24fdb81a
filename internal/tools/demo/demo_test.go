package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestDemo runs the demo to its end: the first thing that somebody tries works, and checks what it shows.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the leani binary")
	}
	root := filepath.Join("..", "..", "..")
	binary := filepath.Join(t.TempDir(), "leani")
	build := exec.Command("go", "build", "-o", binary, "./cmd/leani")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d := demo{binary: binary, era: filepath.Join(root, "testdata", "era", "mainnet-mini"), dir: t.TempDir(), bind: "127.0.0.1:0"}
	for range 2 { // what the first run left is replaced
		if err := d.run(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
