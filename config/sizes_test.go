package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/leani-go/leani/internal/announced"
)

// SEC-012: settings take memory in proportion to their text, and at most so much for each problem with it.
func TestAnnouncedSizes(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "raw-history.toml"))
	if err != nil {
		t.Fatal(err)
	}
	announced.Sizes(t, 4<<20, 400, func(b []byte) { _, _ = Parse(b, "node.toml", baseDir) }, data)
}
