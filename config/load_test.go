package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// CFG-304: paths start at the directory of the settings file, whatever the working directory.
func TestPathsResolveBesideTheFile(t *testing.T) {
	dir := t.TempDir()
	doc := loadTree(t, "raw-history")
	doc.change(t, `chain = {name = "lab", chain_id = 424242, genesis = "genesis.json.gz"}; sources.history[0].endpoint = "file:../era%20files/"`)
	path := filepath.Join(dir, "leani.toml")
	if err := os.WriteFile(path, doc.text(t), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ got, want string }{
		{cfg.DataDir, filepath.Join(dir, "data")},
		{cfg.Chain.Genesis, filepath.Join(dir, "genesis.json.gz")},
		{cfg.Sources.History[0].Folder, filepath.Join(filepath.Dir(dir), "era files")},
		{cfg.Chain.FilePrefix(), "lab"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}

	archive := loadTree(t, "everything")
	full, _ := check(t, archive.text(t))
	if got, want := full.Sources.History[1].Manifest, filepath.Join(baseDir, "archive/manifest.json"); got != want {
		t.Errorf("manifest: got %s, want %s", got, want)
	}
	if got := full.Chain.FilePrefix(); got != "mainnet" {
		t.Errorf("file prefix of chain 1: got %s", got)
	}
}

// All problems are reported at once, in the order of the file, each with its place.
func TestProblemsAreReportedTogether(t *testing.T) {
	const doc = `config_version = 1
data_dir = ""
colour = "green"

[chain]
name = "mainnet"
chain_id = "1"

[[sources.history]]
id = "a"

[[sources.history]]
kind = "tape"
`
	_, err := Parse([]byte(doc), "node.toml", baseDir)
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	got := e.Error()
	last := -1
	for _, want := range []string{
		`node.toml: budgets: is required; add the key`,
		`node.toml:2:1: data_dir = "": is empty; write a value or remove the key`,
		`node.toml:3:1: colour: is not a known key`,
		`node.toml:7:1: chain.chain_id = "1": has the wrong type; write an integer without quotes`,
		`node.toml:9:11: sources.history[0].kind: is required; add the key`,
		`node.toml:13:1: sources.history[1].kind = "tape": is not one of the accepted values; write one of "xatu", "era_e", "archive"`,
	} {
		at := strings.Index(got, want)
		if at < 0 {
			t.Errorf("missing: %s", want)
		}
		if at < last {
			t.Errorf("out of order: %s", want)
		}
		last = at
	}
	if t.Failed() {
		t.Log("\n" + got)
	}
}

// CFG-301: one TOML document, of version 1.
func TestVersionAndSyntax(t *testing.T) {
	for doc, want := range map[string]string{
		"config_version = 2":           "config_version = 2: is not supported; write 1",
		"data_dir = \"x\"":             "config_version: is required",
		"config_version = 1\n[chain":   "node.toml:2:",
		"a = 1\na = 2":                 "node.toml:2:",
		"config_version = {}":          "config_version = {…}: has the wrong type",
		"config_version = 1\r\nx.y=[}": "node.toml:2:",
	} {
		_, err := Parse([]byte(doc), "node.toml", baseDir)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", doc, err, want)
		}
	}
}

// CFG-376: the starter form has a data directory and an API address without writing them; the
// advanced form must write them (TestFields).
func TestStarterDefaults(t *testing.T) {
	doc := loadTree(t, "starter")
	doc.remove("data_dir")
	doc.remove("api")
	cfg, problems := check(t, doc.text(t))
	for _, p := range problems {
		if p.Kind != Unavailable {
			t.Error(p)
		}
	}
	if got, want := cfg.DataDir, filepath.Join(baseDir, "data"); got != want {
		t.Errorf("data_dir: got %s, want %s", got, want)
	}
	if got := cfg.API.Bind.String(); got != "127.0.0.1:18080" {
		t.Errorf("api.bind: got %s", got)
	}
}

// A file that cannot be read gives one problem with the path and the system's reason once.
func TestUnreadableFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.toml")
	_, err := Load(path)
	var e *Error
	if !errors.As(err, &e) || len(e.Problems) != 1 || e.Problems[0].Kind != Unreadable {
		t.Fatalf("got %v", err)
	}
	want := "failed to read configuration at " + path + ": no such file or directory"
	if got := e.Problems[0].Message; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	large := filepath.Join(t.TempDir(), "large.toml")
	if err := os.WriteFile(large, make([]byte, maximumFileBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(large); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("large file: got %v", err)
	}
}

// URIs are shown without path and credentials: they may hold keys.
func TestProblemsHideSecrets(t *testing.T) {
	for _, changes := range []string{
		`sources.history[0].endpoint = "https://user:secret@mirror.example/era/"`,
		`sources.history[0].endpoint = "https://mirror.example/secret"`,
		`sources.history[0].endpoint = "http://mirror.example/secret/"`,
		`sources.history[0].endpoint = "https://mirror.example/secret/"; sources.history[0].kind = "archive"`,
		`finality = {kind = "beacon_api", endpoints = ["https://beacon.example/secret", "https://beacon.example/secret", "ftp://x/secret"]}`,
	} {
		doc := loadTree(t, "raw-history")
		doc.change(t, changes)
		_, err := Parse(doc.text(t), "node.toml", baseDir)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", changes, err)
		}
	}
}

// CFG-305, CFG-306, CFG-307, CFG-308: the grammars of the value types.
func TestScalars(t *testing.T) {
	for _, c := range []struct {
		of   scalar
		in   any
		want any
	}{
		{new(HumanBytes), "16MiB", HumanBytes(16 << 20)},
		{new(HumanBytes), "3KB", HumanBytes(3000)},
		{new(HumanBytes), int64(5), HumanBytes(5)},
		{new(HumanBytes), "9000000000GiB", nil},
		{new(HumanBytes), "99999999999999999999B", nil},
		{new(HumanBytes), "+1B", nil},
		{new(HumanBytes), "1 B", nil},
		{new(HumanDuration), "5m", HumanDuration(5 * time.Minute)},
		{new(HumanDuration), "24h", HumanDuration(24 * time.Hour)},
		{new(HumanDuration), int64(7), HumanDuration(7 * time.Second)},
		{new(HumanDuration), "7ms", nil},
		{new(HumanMilliseconds), "250ms", HumanMilliseconds(250 * time.Millisecond)},
		{new(HumanMilliseconds), int64(7), HumanMilliseconds(7 * time.Millisecond)},
		{new(SocketAddress), "[::1]:80", nil}, // compared by text below
		{new(SocketAddress), "node.example:80", nil},
		{new(AllowedOrigin), "HTTPS://App.Example:8443/", AllowedOrigin("https://app.example:8443")},
		{new(AllowedOrigin), "https://app.example:443", AllowedOrigin("https://app.example")},
		{new(AllowedOrigin), "http://[::1]:80/", AllowedOrigin("http://[::1]")},
		{new(AllowedOrigin), "http://app.example:443", AllowedOrigin("http://app.example:443")},
		{new(AllowedOrigin), "*", nil},
		{new(AllowedOrigin), "null", nil},
		{new(AllowedOrigin), "https://app.example:99999", nil},
		{new(AllowedHost), "Node.Example", AllowedHost("node.example")},
		{new(AllowedHost), "node.example:80", nil},
	} {
		err := c.of.fromTOML(c.in)
		var got any
		switch v := c.of.(type) {
		case *HumanBytes:
			got = *v
		case *HumanDuration:
			got = *v
		case *HumanMilliseconds:
			got = *v
		case *AllowedOrigin:
			got = *v
		case *AllowedHost:
			got = *v
		case *SocketAddress:
			if c.in == "[::1]:80" && (err != nil || v.String() != "[::1]:80") {
				t.Errorf("%v: got %v, %v", c.in, v, err)
			}
			continue
		}
		if (err == nil) != (c.want != nil) || err == nil && got != c.want {
			t.Errorf("%T %v: got %v, %v, want %v", c.of, c.in, got, err, c.want)
		}
	}
}

// What String prints, fromTOML reads back.
func TestHumanBytesRoundTrip(t *testing.T) {
	for _, n := range []HumanBytes{0, 1, 1023, 1024, 1 << 20, 3 << 30, 1<<30 + 1, 1 << 40} {
		var back HumanBytes
		if err := back.fromTOML(n.String()); err != nil || back != n {
			t.Errorf("%d: %s gives %d, %v", n, n, back, err)
		}
	}
}

// FuzzParse: any document gives a Config or an *Error with problems; never a panic.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"raw-history", "everything", "starter"} {
		data, err := os.ReadFile(filepath.Join("testdata", name+".toml"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("uniswap = {markets = [{}, {}]}\nsources.history = [{kind = \"era_e\", endpoint = \"file:%zz/\"}]"))
	f.Add([]byte("\"\".\"a b\" = 1\n[[a]]\n[[a.b]]\n[a.b.c]\nd.e = [[{f = 1}]]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := Parse(data, "node.toml", baseDir)
		var e *Error
		switch {
		case err == nil && cfg == nil:
			t.Error("neither settings nor error")
		case err == nil && !filepath.IsAbs(cfg.DataDir):
			t.Errorf("relative data directory %q", cfg.DataDir)
		case err != nil && (!errors.As(err, &e) || len(e.Problems) == 0 || cfg != nil):
			t.Errorf("got %v, %v", cfg, err)
		}
	})
}
