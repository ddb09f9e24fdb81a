package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
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
	cmd     *exec.Cmd
	exited  chan struct{} // closed once the process has ended
	script  *os.File
	heads   chan *types.Header

	mu  sync.Mutex
	log bytes.Buffer
}

// Start makes a node that has blocks of a chain as history and follows a script that is empty so far: Apply,
// Undo and Finalize write it.
func Start(c *Chain, o Options) *Node {
	tb := c.tb
	tb.Helper()
	n := &Node{tb: tb, chain: c, dir: tb.TempDir(), program: binary.path(tb), exited: make(chan struct{}), heads: make(chan *types.Header, 1<<12)}
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
func (n *Node) Log() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log.String()
}

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
	cmd := n.command("--log-format", "json", "serve")
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		n.tb.Fatal(err)
	}
	n.cmd = cmd
	listening := make(chan string, 2)
	go func() { // ends with the process
		defer close(n.exited)
		lines := bufio.NewScanner(stderr)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			n.mu.Lock()
			n.log.Write(append(lines.Bytes(), '\n'))
			n.mu.Unlock()
			var record struct{ Msg, URL string }
			if json.Unmarshal(lines.Bytes(), &record) == nil && record.Msg == "listening" {
				listening <- record.URL
			}
		}
		_ = cmd.Wait() // stop looks at the state
	}()
	n.tb.Cleanup(n.stop)
	for n.HTTP == "" || n.WebSocket == "" {
		select {
		case url := <-listening:
			if strings.HasPrefix(url, "ws") {
				n.WebSocket = url
			} else {
				n.HTTP = url
			}
		case <-n.exited:
			n.tb.Fatalf("serve ended before it listened\n%s", n.Log())
		case <-time.After(Patience):
			n.tb.Fatalf("serve does not listen\n%s", n.Log())
		}
	}
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
	select {
	case <-n.exited:
		n.tb.Errorf("the node ended by itself: %s", n.cmd.ProcessState)
		return
	default:
	}
	err := n.cmd.Process.Signal(os.Interrupt)
	select {
	case <-n.exited:
		if n.cmd.ProcessState.ExitCode() != 0 {
			n.tb.Errorf("the node ended with %s", n.cmd.ProcessState)
		}
	case <-time.After(Patience):
		n.tb.Errorf("the node does not end: %v", errors.Join(err, n.cmd.Process.Kill()))
		<-n.exited
	}
}
