package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/leani-go/leani/ingest/archive"
	"github.com/leani-go/leani/ingest/era"
)

// hostile is a text that clears a screen, sets a title, turns the direction of writing, and is no UTF-8.
const hostile = "a\x1b[2J\x1b]0;owned\x07\u009b31m\u202egnp.\u2066\x7f\xff\x9b"

// checkPlain requires that a text does nothing but show characters.
func checkPlain(t *testing.T, what, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%s: no UTF-8: %q", what, text)
	}
	for _, r := range text {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			t.Fatalf("%s: %U in %.500q", what, r, text)
		}
	}
}

// TestEscapingWriter: whatever is written in whatever pieces comes out plain, and JSON means the same as before.
//
// SEC-013
func TestEscapingWriter(t *testing.T) {
	whole := new(bytes.Buffer)
	if _, err := (&escapingWriter{out: whole}).Write([]byte(hostile + "🙂é\n\tb")); err != nil {
		t.Fatal(err)
	}
	const want = `a\u001b[2J\u001b]0;owned\u0007\u009b31m\u202egnp.\u2066\u007f` + "��🙂é\n\tb"
	if whole.String() != want {
		t.Errorf("got %q want %q", whole, want)
	}
	bytewise := new(bytes.Buffer)
	w := &escapingWriter{out: bytewise}
	for _, b := range []byte(hostile + "🙂é\n\tb") {
		if n, err := w.Write([]byte{b}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if bytewise.String() != want {
		t.Errorf("in pieces: got %q want %q", bytewise, want)
	}
	out := new(bytes.Buffer)
	name := strings.ToValidUTF8(hostile, "") + "\U000e0041"
	if err := printJSON(&escapingWriter{out: out}, map[string]string{"name": name}); err != nil {
		t.Fatal(err)
	}
	checkPlain(t, "JSON", out.String())
	var got map[string]string
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got["name"] != name {
		t.Errorf("got %q, %v", got, err)
	}
}

// FuzzEscaping gives any bytes, cut in two anywhere.
func FuzzEscaping(f *testing.F) {
	f.Add([]byte(hostile), 3)
	f.Add([]byte("🙂"), 2)
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		cut = max(0, min(cut, len(text)))
		out := new(bytes.Buffer)
		w := &escapingWriter{out: out}
		for _, part := range [][]byte{text[:cut], text[cut:], []byte("\n")} {
			if _, err := w.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		checkPlain(t, "written", out.String())
		if got, want := out.String(), string(appendEscaped(nil, string(text)+"\n")); got != want {
			t.Errorf("got %q want %q", got, want)
		}
		if p := plain(string(text)); strings.Contains(p, "\n") || len(p) > 12*longestText {
			t.Errorf("%d bytes: %.100q", len(p), p)
		}
	})
}

// TestLogsArePlain: messages, keys and values of all kinds are escaped and bounded in the log for people; lines of JSON
// are escaped.
//
// SEC-013
func TestLogsArePlain(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		log := newLogger(&out, asJSON, true, logFilter{})
		long := strings.Repeat(hostile, 10_000)
		log.With("of", hostile).WithGroup("g"+hostile).Warn("message "+hostile, "text", hostile, "cause", errors.New(hostile),
			"list", []string{hostile}, hostile, "key", slog.Group("group", "inner", hostile), "long", long, "lines", "one\ntwo")
		text := out.String()
		checkPlain(t, "log", text)
		if n := strings.Count(text, "\n"); n != 1 {
			t.Errorf("%d lines: %.500q", n, text)
		}
		if !asJSON && len(text) > 10*longestText {
			t.Errorf("%d bytes", len(text))
		}
		if asJSON {
			var record map[string]any
			if err := json.Unmarshal(out.Bytes(), &record); err != nil || record["of"] != strings.ToValidUTF8(hostile, "�") && record["of"] == nil {
				t.Errorf("%v: %v", err, record["of"])
			}
		}
	}
}

// TestOutputIsPlain runs commands on names and contents that others chose: settings, a folder of era files, an archive, a
// data directory, arguments.
//
// SEC-013 SEC-012
func TestOutputIsPlain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	name := strings.ReplaceAll(hostile, "/", "")
	long := strings.Repeat(name, 20) // of a line, not of a file's name
	digest := strings.Repeat("ab", 32)
	l := newLab(t, bundled(t))
	settings := string(readFile(t, l.config))
	asJSON, _ := json.Marshal(strings.ToValidUTF8(long, ""))
	quoted := string(asJSON)
	for what, text := range map[string]string{
		"unknown key":   settings + "\n" + quoted + " = 1\n",
		"unknown value": strings.Replace(settings, `kind = "era_e"`, `kind = `+quoted, 1),
		"no TOML":       settings + "\n" + long,
		"raw controls":  settings + "\nx = \"" + hostile + "\"",
		"data dir":      strings.Replace(settings, "data_dir", "data_dirs", 1) + "\ndata_dir = " + quoted,
		"source":        strings.Replace(settings, `endpoint = "`, `endpoint = "file:///no`+strings.Trim(quoted, `"`), 1),
	} {
		path := write("settings/"+what+name+".toml", text)
		for _, args := range [][]string{{"doctor"}, {"doctor", "--json"}, {"history", "sources"}, {"history", "status"}, {"serve"}, {"history", "fill", "--from-block", "0", "--to-block", "1"}} {
			checkOutput(t, what, append([]string{"--config", path}, args...))
		}
	}
	write("catalog/"+era.CatalogName, digest+"  mainnet-"+name+"-00000-00000000.era1\n")
	write("catalog/mainnet-"+name+"-00000-00000000.era1", hostile)
	write("row/"+era.CatalogName, long+"  mainnet-00000-00000000.era1\n")
	for _, folder := range []string{"catalog", "row"} {
		path := write("settings/"+folder+".toml", endpointOf(t, settings, "file://"+filepath.Join(dir, folder)+"/"))
		for _, args := range [][]string{{"history", "sources"}, {"history", "sources", "--json"}, {"history", "fill", "--from-block", "0", "--to-block", "1"}} {
			checkOutput(t, folder, append([]string{"--config", path}, args...))
		}
	}
	for what, text := range map[string]string{
		"member":  `{` + quoted + `: 1}`,
		"format":  `{"format": ` + quoted + `}`,
		"no JSON": long,
	} {
		checkOutput(t, "archive: "+what, []string{"archive", "verify", write("archive-"+what+name+"/"+archive.ManifestName, text)})
	}
	segment := write(name+".seg", hostile+strings.Repeat("\x1b", 8192))
	for _, args := range [][]string{
		{name}, {"--" + name}, {"history", "fill", "--from-block", name}, {"serve", name}, {"--log-filter", name, "doctor"}, {"--log-format", name, "doctor"},
		{"segment", "check", segment}, {"segment", "dump", segment}, {"archive", "verify", filepath.Join(dir, name)},
		{"--config", filepath.Join(dir, name, "x"), "serve"},
	} {
		checkOutput(t, strings.Join(args, " "), args)
	}
	// What the quarantine lists is named by others.
	l.must(fillArgs(bundledSpans[0])...)
	if err := os.WriteFile(filepath.Join(l.data(), "segments", "data", name+".seg"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		checkOutput(t, "stray file", []string{"--config", l.config, "history", "fill", "--from-block", "0", "--to-block", "0"})
		checkOutput(t, "stray file", []string{"--config", l.config, "db", "inspect"})
		checkOutput(t, "stray file", []string{"--config", l.config, "db", "verify"})
	}
}

// checkOutput runs a command and requires that it says something plain, in lines of bounded length.
func checkOutput(t *testing.T, what string, args []string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	run(append([]string{"leani"}, args...), strings.NewReader(""), &stdout, &stderr)
	checkPlain(t, what+": stdout", stdout.String())
	checkPlain(t, what+": stderr", stderr.String())
	if stdout.Len()+stderr.Len() == 0 {
		t.Errorf("%s: says nothing", what)
	}
	for line := range strings.Lines(stdout.String() + stderr.String()) {
		if len(line) > 8*longestText {
			t.Errorf("%s: a line of %d bytes: %.200q", what, len(line), line)
		}
	}
}

// endpointOf gives the settings another folder of era files.
func endpointOf(t *testing.T, settings, endpoint string) string {
	t.Helper()
	var lines []string
	replaced := false
	for line := range strings.Lines(settings) {
		if strings.HasPrefix(line, "endpoint = ") {
			line, replaced = "endpoint = \""+endpoint+"\"\n", true
		}
		lines = append(lines, line)
	}
	if !replaced {
		t.Fatalf("no endpoint in %s", settings)
	}
	return strings.Join(lines, "")
}
