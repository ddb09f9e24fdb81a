package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/leani-go/leani/internal/served"
)

// Options say what Start starts.
type Options struct {
	// First is the first block of the node's history, Filled one past the last; there is at least one before the node
	// serves.
	First, Filled uint64
	// Settings are keys of the table [rpc] with their values as TOML, for example "max_log_results": "50".
	Settings map[string]string
}

// Node is a running `leani serve` in a folder of its own. It is driven by one goroutine and ends with its test.
type Node struct {
	// HTTP and WebSocket are the URLs of its listeners.
	HTTP, WebSocket string

	tb      testing.TB
	chain   *Chain
	dir     string
	program string
	process *served.Process
	script  *os.File
	heads   chan *types.Header
}

// Start makes a node that has blocks of a chain as history and follows a script that is empty so far: Apply,
// Undo and Finalize write it.
func Start(c *Chain, o Options) *Node {
	tb := c.tb
	tb.Helper()
	n := &Node{tb: tb, chain: c, dir: tb.TempDir(), program: binary.path(tb), heads: make(chan *types.Header, 1<<12)}
	n.configure(o)
	n.run("history", "fill", "--from-block", fmt.Sprint(o.First), "--to-block", fmt.Sprint(o.Filled-1))
	n.serve()
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("log of the node:\n%s", n.Log())
		}
	})
	return n
}

// Log is what the node has logged so far.
func (n *Node) Log() string { return n.process.Log() }

// configure writes settings, and the chain's file and the script beside them.
func (n *Node) configure(o Options) {
	n.tb.Helper()
	n.run("init", "--chain-name", "chainlab", "--chain-id", fmt.Sprint(ChainID), "--rpc-bind", "127.0.0.1:0", "--genesis", n.chain.genesis)
	path := filepath.Join(n.dir, "leani.toml")
	text, err := os.ReadFile(path)
	if err != nil {
		n.tb.Fatal(err)
	}
	changes := map[string]string{
		"[sources.live]\nkind = \"disabled\"\n": "[sources.live]\nkind = \"scripted\"\npath = \"events.jsonl\"\n",
	}
	rpcTable := "[rpc]\n"
	for key, value := range o.Settings {
		text = regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(key)+` = .*\n`).ReplaceAll(text, nil)
		rpcTable += key + " = " + value + "\n"
	}
	changes["[rpc]\n"] = rpcTable
	for from, to := range changes {
		if !bytes.Contains(text, []byte(from)) {
			n.tb.Fatalf("the settings have no %q", from)
		}
		text = bytes.Replace(text, []byte(from), []byte(to), 1)
	}
	era := filepath.Join(n.dir, "era")
	catalog, err := os.ReadFile(filepath.Join(filepath.Dir(n.chain.path), "checksums_sha256.txt"))
	err = errors.Join(err,
		os.WriteFile(path, text, 0o644),
		os.Mkdir(era, 0o755),
		os.Symlink(n.chain.path, filepath.Join(era, filepath.Base(n.chain.path))),
		os.WriteFile(filepath.Join(era, "checksums_sha256.txt"), catalog, 0o644),
		syscall.Mkfifo(filepath.Join(n.dir, "events.jsonl"), 0o600))
	if err != nil {
		n.tb.Fatal(err)
	}
}

func (n *Node) command(args ...string) *exec.Cmd {
	cmd := exec.Command(n.program, append([]string{"--config", filepath.Join(n.dir, "leani.toml")}, args...)...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	return cmd
}

// run runs a command that has to succeed.
func (n *Node) run(args ...string) {
	n.tb.Helper()
	if out, err := n.command(args...).CombinedOutput(); err != nil {
		n.tb.Fatalf("leani %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// serve starts the process, waits for both listeners, and subscribes to heads.
func (n *Node) serve() {
	n.tb.Helper()
	p, err := served.Start(n.command("--log-format", "json", "serve"), Patience)
	if err != nil {
		n.tb.Fatal(err)
	}
	n.process, n.HTTP, n.WebSocket = p, p.HTTP, p.WebSocket
	n.tb.Cleanup(n.stop)
	if n.script, err = os.OpenFile(filepath.Join(n.dir, "events.jsonl"), os.O_WRONLY, 0); err != nil {
		n.tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	client, err := rpc.DialContext(ctx, n.WebSocket)
	if err != nil {
		n.tb.Fatal(err)
	}
	n.tb.Cleanup(client.Close)
	if _, err := client.EthSubscribe(ctx, n.heads, "newHeads"); err != nil {
		n.tb.Fatal(err)
	}
}

// stop ends the process, which has to end well.
func (n *Node) stop() {
	if n.script != nil {
		_ = n.script.Close() // a read of a pipe ends with its writer
	}
	if err := n.process.Stop(Patience); err != nil {
		n.tb.Error(err)
	}
}
