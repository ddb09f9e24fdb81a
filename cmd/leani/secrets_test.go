package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leani-go/leani/config"
)

// TestLoopback: a node listens for this machine alone unless its settings say otherwise, with those that init writes and
// with those that nobody wrote.
//
// SEC-001
func TestLoopback(t *testing.T) {
	l := newLab(t, bundled(t))
	path := filepath.Join(l.dir, "fresh", "leani.toml")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l.must("init", "--config", path)
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, bind := range map[string]config.SocketAddress{"rpc.http_bind": c.RPC.HTTPBind, "rpc.ws_bind": c.RPC.WSBind, "api.bind": c.API.Bind} {
		if !bind.Loopback() {
			t.Errorf("%s = %s", name, bind)
		}
	}
	if c.RPC.HTTPBind.String() != "127.0.0.1:8545" || c.RPC.WSBind.String() != "127.0.0.1:8546" || c.API.Bind.String() != "127.0.0.1:18080" {
		t.Errorf("binds: %s %s %s", c.RPC.HTTPBind, c.RPC.WSBind, c.API.Bind)
	}
	s := l.serve()
	for _, url := range []string{s.url, s.ws} {
		if !strings.Contains(url, "://127.0.0.1:") {
			t.Errorf("listens on %s", url)
		}
	}
	l.stopped(s)
}

// impatient keeps what a command writes, and kills it when it begins to ask a server again and again.
type impatient struct {
	cmd  *exec.Cmd
	text bytes.Buffer
}

// Write implements io.Writer.
func (w *impatient) Write(b []byte) (int, error) {
	if w.text.Write(b); bytes.Count(w.text.Bytes(), []byte("asked again")) > 1 {
		_ = w.cmd.Process.Kill()
	}
	return len(b), nil
}

// TestSecrets: what may be a secret of an endpoint (credentials, a path that holds a key, a query, a proxy) is in no output, no
// message and no log of any command, at any level and in any form.
func TestSecrets(t *testing.T) {
	skipWithRace(t)
	t.Parallel()
	const secret = "hunter2"
	refusing := mirrorOf(t, newLab(t, bundled(t))) // of an empty folder
	refusing = strings.Replace(refusing, "/path/secret/", "/"+secret+"/", 1)
	for name, source := range map[string]string{
		"credentials":            entryOf("mirror", "1", "https://user:"+secret+"@mirror.invalid/era/"),
		"user":                   entryOf("mirror", "1", "https://"+secret+"@mirror.invalid/era/"),
		"query":                  entryOf("mirror", "1", "https://mirror.invalid/era/?key="+secret),
		"fragment":               entryOf("mirror", "1", "https://mirror.invalid/era/#"+secret),
		"path without a slash":   entryOf("mirror", "1", "https://mirror.invalid/"+secret),
		"open path":              entryOf("mirror", "1", "http://mirror.invalid/"+secret+"/"),
		"no URL":                 entryOf("mirror", "1", "https://mirror.invalid:"+secret+"/"),
		"another scheme":         entryOf("mirror", "1", "ftp://user:"+secret+"@mirror.invalid/"),
		"a path":                 entryOf("mirror", "1", "https://127.0.0.1:1/"+secret+"/"),
		"behind a proxy":         entryOf("mirror", "1", "https://mirror.invalid/"+secret+"/"),
		"a server that has none": entryOf("mirror", "1", refusing),
		"an archive":             strings.Replace(entryOf("mirror", "1", "https://user:"+secret+"@mirror.invalid/"), "era_e", "archive", 1),
		"another key":            strings.Replace(entryOf("mirror", "1", "https://mirror.invalid/"), "endpoint", "password = \""+secret+"\"\nendpoint", 1),
	} {
		l := newLab(t, bundled(t))
		l.sourcesOf(source)
		for _, args := range [][]string{
			{"doctor"}, {"doctor", "--json"}, {"history", "sources"}, {"history", "sources", "--json"}, {"history", "status", "--json"},
			append(fillArgs(bundledSpans[0]), "--json"), {"--log-format", "json", "history", "fill", "--from-block", "1", "--to-block", "2"},
		} {
			cmd := l.command(append([]string{"--log-filter", "trace"}, args...)...)
			cmd.Env = append(cmd.Env, "HTTPS_PROXY=http://user:"+secret+"@127.0.0.1:1/")
			out := &impatient{cmd: cmd}
			cmd.Stdout, cmd.Stderr = out, out // one writer: one goroutine
			_ = cmd.Run()
			if text := out.text.String(); strings.Contains(text, secret) || text == "" {
				t.Errorf("%s: leani %s prints %s", name, strings.Join(args, " "), text)
			}
		}
	}
	// A token is named by its variable, and one in the file is not repeated.
	l := newLab(t, bundled(t))
	l.set("api", "bearer_token", `"`+secret+`"`)
	if o := l.run("doctor"); o.code != exitInvalid || !strings.Contains(o.err, "api.bearer_token") || strings.Contains(o.out+o.err, secret) {
		t.Errorf("code %d: %s%s", o.code, o.out, o.err)
	}
}

// TestSecretsOnDemand: a node that fetches history for its answers gives nothing of an endpoint away either, neither to clients
// nor in the log, whether the mirror has the blocks, has them damaged, or is gone.
func TestSecretsOnDemand(t *testing.T) {
	skipWithRace(t)
	t.Parallel()
	const secret = "hunter2"
	whole := newLab(t, bundled(t))
	for name, endpoint := range map[string]string{
		"delivers": mirrorOf(t, whole), "damaged": mirrorOf(t, whole, "17034869"), "has none": mirrorOf(t, newLab(t, bundled(t)), "checksums"),
		"is gone": "https://127.0.0.1:1/path/secret/",
	} {
		endpoint = strings.Replace(endpoint, "/path/secret/", "/path/"+secret+"/", 1)
		l := newLab(t, bundled(t))
		l.must(fillArgs(bundledSpans[2])...)
		l.sourcesOf(entryOf("mirror", "1", endpoint))
		l.onDemand()
		s := l.serve("LEANI_LOG=trace")
		for _, body := range []string{
			fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["%#x",false]}`, bundledSpans[0].From),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"%#x","toBlock":"%#x"}]}`, bundledSpans[0].From, bundledSpans[0].From),
			`{"jsonrpc":"2.0","id":1,"method":"leani_getCapabilities"}`,
		} {
			response, err := http.Post(s.url, "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			var told bytes.Buffer
			if err := response.Write(&told); err != nil { // which closes the body
				t.Fatal(err)
			}
			if text := told.String(); strings.Contains(text, secret) || strings.Contains(text, "/path") {
				t.Errorf("%s: got %s", name, text)
			} else if name == "delivers" && !strings.Contains(text, `"result":`) {
				t.Errorf("the mirror is not asked: %s", text)
			}
		}
		l.stopped(s)
		if text := s.log.String(); strings.Contains(text, secret) {
			t.Errorf("%s: log %s", name, text)
		}
	}
}
