package load

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/leani-go/leani/bench"
	"github.com/leani-go/leani/internal/served"
)

// patience is how long a run waits for what is sure to come, so that a broken node ends it.
const patience = 2 * time.Minute

// node is a `leani serve` in a folder of its own.
type node struct {
	program, dir string
	process      *served.Process // nil before it listens
	script       *os.File
}

const settingsFile = "leani.toml"

func (n *node) era() string { return filepath.Join(n.dir, "era") }

// settings makes the settings of a node, and the folder for its era file.
func (n *node) settings(ctx context.Context, o *Options) error {
	err := n.run(ctx, "init", "--chain-name", chainName, "--chain-id", strconv.Itoa(bench.CorpusChainID), "--rpc-bind", "127.0.0.1:0")
	if err != nil {
		return err
	}
	path := filepath.Join(n.dir, settingsFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, change := range [][2]string{
		{"[sources.live]\nkind = \"disabled\"\n", "[sources.live]\nkind = \"scripted\"\npath = \"events.jsonl\"\n"},
		{"minimum_recent_blocks = 128\n", "minimum_recent_blocks = 16\n"},
		{"memory_bytes = 536870912 ", fmt.Sprintf("memory_bytes = %d ", o.MemoryBytes)},
	} {
		if !bytes.Contains(text, []byte(change[0])) {
			return fmt.Errorf("the settings have no %q", change[0])
		}
		text = bytes.Replace(text, []byte(change[0]), []byte(change[1]), 1)
	}
	return errors.Join(os.WriteFile(path, text, 0o644), os.Mkdir(n.era(), 0o755), syscall.Mkfifo(filepath.Join(n.dir, "events.jsonl"), 0o600))
}

// writeChecksums writes the list of the digests of an era file beside it.
func writeChecksums(folder, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	line := fmt.Sprintf("%x  %s\n", sha256.Sum256(content), filepath.Base(path))
	return os.WriteFile(filepath.Join(folder, "checksums_sha256.txt"), []byte(line), 0o644)
}

func (n *node) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, n.program, append([]string{"--config", filepath.Join(n.dir, settingsFile)}, args...)...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	return cmd
}

// run runs a command that has to succeed.
func (n *node) run(ctx context.Context, args ...string) error {
	if out, err := n.command(ctx, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("leani %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// serve starts the process and waits until it listens.
func (n *node) serve(ctx context.Context) (err error) {
	n.process, err = served.Start(n.command(context.WithoutCancel(ctx), "--log-format", "json", "serve"), patience)
	if err != nil {
		return err
	}
	n.script, err = os.OpenFile(filepath.Join(n.dir, "events.jsonl"), os.O_WRONLY, 0)
	return err
}

// stop ends the process, which has to end well and must not have reported a failure.
func (n *node) stop() error {
	if n.process == nil {
		return nil
	}
	var err error
	if n.script != nil {
		err = n.script.Close()
	}
	err = errors.Join(err, n.process.Stop(patience))
	if log := n.process.Log(); err != nil || strings.Contains(log, `"level":"ERROR"`) {
		err = errors.Join(err, fmt.Errorf("log of the node:\n%s", log))
	}
	return err
}

// usage is what the process has used.
type usage struct {
	peak      int64         // resident memory
	processor time.Duration // of all its threads, until it was asked
}

// usage reads what the process has used so far.
func (n *node) usage() usage {
	return usage{peak: bench.PeakMemoryOf(n.process.PID()), processor: bench.ProcessorTimeOf(n.process.PID())}
}
