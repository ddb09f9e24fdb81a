package layering

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/leani-go/leani/"

// pkg is what `go list` says about a package.
type pkg struct {
	ImportPath                         string
	Doc                                string
	Imports, TestImports, XTestImports []string
}

// name is the package's path below the module.
func (p pkg) name() string { return strings.TrimPrefix(p.ImportPath, module) }

// packages lists the packages of the module.
func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Imports,TestImports,XTestImports", module+"...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var list []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	if len(list) < 10 {
		t.Fatalf("only %d packages found", len(list))
	}
	return list
}

// top is the directory that decides a package's layer.
func top(name string) string {
	for _, dir := range []string{"internal/tools"} {
		if under(name, dir) {
			return dir
		}
	}
	first, _, _ := strings.Cut(name, "/")
	return first
}

// under tells whether a package is dir or lies below it.
func under(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// layers gives the layer of each top directory.
var layers = map[string]int{
	"chain": 0, "api": 0, "internal": 0,
	"keys": 1, "codec": 1,
	"segments": 2,
	"engine":   3,
	"serve":    4, "ingest": 4, "processors": 4, "delivery": 4,
	"config": 5, "cmd": 5,
	"internal/tools": 6, "bench": 6, "fuzz": 6, "clients": 6,
}

// sideways are the imports within a layer that are meant.
var sideways = map[[2]string]bool{
	{"api", "chain"}:            true, // wire types are made from the vocabulary
	{"api", "internal"}:         true,
	{"internal", "chain"}:       true, // tools for the vocabulary's material
	{"chain", "internal"}:       true,
	{"cmd", "config"}:           true, // assembly reads settings
	{"internal/tools", "bench"}: true,
}

// Imports between our packages point down.
func TestLayers(t *testing.T) {
	for _, p := range packages(t) {
		from := top(p.name())
		layer, known := layers[from]
		if !known {
			t.Errorf("%s: which layer is %s? add it to layers", p.name(), from)
			continue
		}
		for _, imported := range p.Imports {
			name, ours := strings.CutPrefix(imported, module)
			if !ours {
				continue
			}
			to := top(name)
			switch below := layers[to]; {
			case to == from || sideways[[2]string{from, to}]:
			case below > layer:
				t.Errorf("%s imports %s, which is above it: layer %d uses layer %d", p.name(), name, layer, below)
			case below == layer:
				t.Errorf("%s imports %s: packages of layer %d meet only in cmd", p.name(), name, layer)
			}
		}
	}
}

// rule keeps an import to the packages that are meant to have it.
type rule struct {
	what   string   // an import path; with /... everything below, too
	who    []string // directories whose packages may import it; =dir is the package alone
	tests  bool     // tests may, everywhere
	reason string
}

var rules = []rule{
	{module + "cmd/...", nil, false, "commands are assembly; what two of them share belongs below"},
	{module + "internal/tools/...", nil, false, "tools are commands"},
	{module + "bench/...", []string{"cmd", "internal/tools", "bench"}, false, "benchmarks use the product, not the other way round"},
	{module + "fuzz/...", nil, false, "fuzz targets use the product, not the other way round"},
	{module + "clients/...", []string{"clients"}, false, "tests of real clients use the product, not the other way round"},
	{module + "internal/shareddata", []string{"internal/chainfixture", "clients"}, true, "test data is for tests"},
	{module + "internal/chainfixture", nil, true, "test data is for tests"},
	{module + "internal/announced", nil, true, "lies are for tests"},
	{module + "internal/served", []string{"bench", "clients"}, true, "a node starts no nodes"},

	{"github.com/cockroachdb/pebble/v2", []string{"=engine"}, false, "engine is the store; nobody else sees Pebble's types, options or errors"},
	{"github.com/cockroachdb/pebble/v2/vfs/...", []string{"engine", "segments"}, true, "files are reached through the file system that the store was given"},
	{"github.com/valyala/fasthttp/...", []string{"serve"}, true, "request memory of fasthttp must not leave the servers"},
	{"net/http", []string{"ingest", "cmd", "internal/tools", "bench"}, true, "servers speak fasthttp; only sources fetch"},
	{"github.com/spf13/...", []string{"cmd"}, true, "flags end at the command line"},
	{"flag", []string{"cmd", "internal/tools", "bench"}, true, "flags end at the command line"},
	{"os/signal", []string{"cmd", "internal/tools", "bench"}, true, "signals end at the command line"},
	{"github.com/pelletier/go-toml/...", []string{"config"}, true, "settings are read in one place"},
	{"github.com/invopop/jsonschema", []string{"internal/tools"}, true, "the schema is made when the source changes, not when the node runs"},
	{"github.com/santhosh-tekuri/...", nil, true, "the loader checks settings; the schema validator only checks the loader"},
	{"github.com/lmittmann/tint", []string{"cmd"}, false, "how logs look is decided at the command line"},
	{"github.com/vbauerster/...", []string{"internal/progress"}, false, "progress has one look"},
	{"log", []string{"internal/tools"}, true, "the node logs through log/slog"},
	{"unsafe", []string{"internal/keccak"}, false, "reviewed uses only"},
	{"testing", []string{"internal/shareddata", "internal/chainfixture", "internal/announced", "bench", "clients"}, true, "test code stays out of the node"},
}

// pure packages do no I/O and no logging: what they do depends on their arguments alone.
var (
	pure     = []string{"chain", "api", "codec", "keys"}
	impurity = []string{"os", "io/fs", "net", "net/http", "log/slog", "path/filepath", "time", "math/rand/v2"}
)

// Imports that some packages must not have.
func TestRules(t *testing.T) {
	for _, p := range packages(t) {
		for _, r := range rules {
			allowed := slices.ContainsFunc(r.who, func(dir string) bool {
				alone, only := strings.CutPrefix(dir, "=")
				return p.name() == alone || !only && under(p.name(), dir)
			})
			imports := slices.Clone(p.Imports)
			if !r.tests {
				imports = slices.Concat(imports, p.TestImports, p.XTestImports)
			}
			for _, imported := range imports {
				if !allowed && r.covers(imported) && !sameCommand(p, imported) {
					t.Errorf("%s imports %s: %s", p.name(), imported, r.reason)
				}
			}
		}
		for _, imported := range p.Imports {
			if slices.Contains(pure, top(p.name())) && slices.Contains(impurity, imported) {
				t.Errorf("%s imports %s: the package does no I/O and reads no clock", p.name(), imported)
			}
		}
	}
}

func (r rule) covers(imported string) bool {
	dir, tree := strings.CutSuffix(r.what, "/...")
	return imported == dir || tree && strings.HasPrefix(imported, dir+"/")
}

// sameCommand tells whether an import stays within one command or tool, or is the external test
// of a package importing it.
func sameCommand(p pkg, imported string) bool {
	name, ours := strings.CutPrefix(imported, module)
	if !ours {
		return false
	}
	a, b := strings.Split(p.name(), "/"), strings.Split(name, "/")
	n := 2
	if a[0] == "internal" {
		n = 3
	}
	return len(a) >= n && len(b) >= n && slices.Equal(a[:n], b[:n])
}

// Every package says what it is.
func TestPackageComments(t *testing.T) {
	for _, p := range packages(t) {
		if strings.TrimSpace(p.Doc) == "" {
			t.Errorf("%s has no package comment", p.name())
		}
	}
}

// Every direct dependency has its reason in the first ADR.
func TestDependenciesHaveReasons(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "adr", "0001-dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "mod", "edit", "-json")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go mod edit: %v", err)
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
		Tool []struct{ Path string }
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	for _, r := range mod.Require {
		if name := strings.TrimPrefix(r.Path, "github.com/"); !r.Indirect && !bytes.Contains(text, []byte(name)) {
			t.Errorf("%s has no line in docs/adr/0001-dependencies.md", r.Path)
		}
	}
	for _, tool := range mod.Tool {
		if name, _, _ := strings.Cut(tool.Path, "/cmd/"); !bytes.Contains(text, []byte(name)) {
			t.Errorf("the tool %s has no line in docs/adr/0001-dependencies.md", tool.Path)
		}
	}
}

// The rules themselves hold water: a package that would break one is caught.
func TestRulesCatch(t *testing.T) {
	for _, c := range []struct{ what, imported string }{
		{module + "cmd/...", module + "cmd/leani"},
		{"github.com/cockroachdb/pebble/v2", "github.com/cockroachdb/pebble/v2"},
		{"github.com/valyala/fasthttp/...", "github.com/valyala/fasthttp/fasthttputil"},
	} {
		if !slices.ContainsFunc(rules, func(r rule) bool { return r.what == c.what && r.covers(c.imported) }) {
			t.Errorf("no rule %s catches %s", c.what, c.imported)
		}
	}
	if (rule{what: "github.com/cockroachdb/pebble/v2"}).covers("github.com/cockroachdb/pebble/v2/vfs") {
		t.Error("the rule for Pebble's root package covers its file system")
	}
	for from := range layers {
		if strings.HasPrefix(from, "internal/") && top(from) != from {
			t.Errorf("%s has no layer of its own", from)
		}
	}
}
