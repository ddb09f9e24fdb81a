package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// A competing block with other logs replaces one, and the node answers with what was made.
func TestFork(t *testing.T) {
	c := Chainlab(t)
	n := Start(c, Options{Filled: 100, Settings: map[string]string{"max_log_results": "50000"}})
	n.Apply(c.Span(100, 103)...)
	token := common.HexToAddress("0x00000000000000000000000000000000000f0f0f")
	fork := c.Fork(c.Block(101), c.Block(102), func(d *Draft) {
		d.Receipts[0].Logs = append(d.Receipts[0].Logs, &types.Log{Address: token, Topics: []common.Hash{TransferTopic}, Data: []byte{7}})
	})
	next := c.Fork(fork, c.Block(103), nil)
	n.ApplyBranch(fork, next)

	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	client, err := ethclient.DialContext(ctx, n.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	found, err := client.FilterLogs(ctx, ethereum.FilterQuery{Addresses: []common.Address{token}})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].BlockHash != fork.Hash() {
		t.Errorf("logs of the fork: %v", found)
	}
	for _, want := range []*Block{c.Block(101), fork, next} {
		got, err := client.BlockReceipts(ctx, rpc.BlockNumberOrHashWithHash(want.Hash(), true))
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range got {
			if r.TxHash != want.Receipts[i].TxHash || len(r.Logs) != len(want.Receipts[i].Logs) || r.GasUsed != want.Receipts[i].GasUsed {
				t.Errorf("block %d: receipt %d: %+v, want %+v", want.NumberU64(), i, r, want.Receipts[i])
			}
		}
	}
	n.Undo(c.Block(101))
	n.Apply(c.Block(102))
	if h, err := client.HeaderByNumber(ctx, nil); err != nil || h.Hash() != c.Block(102).Hash() {
		t.Errorf("newest block %v, %v", h, err)
	}
}

// A script is asked and answers, and ends when it is told to.
func TestSession(t *testing.T) {
	dir := t.TempDir()
	const script = `
import { createInterface } from 'node:readline'
console.log(JSON.stringify({ ready: process.env.GREETING }))
for await (const line of createInterface({ input: process.stdin })) console.log(line)
`
	if err := os.WriteFile(filepath.Join(dir, "echo.mjs"), []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	NeedNode(t)
	s := Script(t, dir, "echo.mjs", "GREETING=hello")
	var greeting string
	if s.Expect("ready", &greeting); greeting != "hello" {
		t.Errorf("ready %q", greeting)
	}
	var sum int
	if s.Ask("sum", 12, &sum); sum != 12 {
		t.Errorf("sum %d", sum)
	}
	s.End()
}

// outcome notes how a test would end.
type outcome struct {
	testing.TB
	skipped, failed string
}

func (o *outcome) Helper() {}

func (o *outcome) Skipf(format string, args ...any) {
	o.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (o *outcome) Fatalf(format string, args ...any) {
	o.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// Without Node.js tests are skipped, or fail where it is required; packages that are installed are not installed again.
func TestNodeModules(t *testing.T) {
	end := func() *outcome {
		o := &outcome{TB: t}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			NodeModules(o, "..")
		}()
		<-ended
		return o
	}
	if o := end(); o.failed != "" {
		t.Fatal(o.failed)
	} else if o.skipped != "" {
		t.Skip(o.skipped)
	}
	npm := t.TempDir()
	for _, name := range []string{"node", "npm"} {
		if err := os.WriteFile(filepath.Join(npm, name), []byte("#!/bin/false\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", npm)
	if o := end(); o.skipped != "" || o.failed != "" {
		t.Errorf("installed again: %+v", o)
	}
	t.Setenv("PATH", t.TempDir())
	for _, required := range []string{"", "1"} {
		t.Setenv(RequireVariable, required)
		o := end()
		said := o.skipped + o.failed
		if !strings.Contains(said, "node is not installed") || (o.failed != "") != (required == "1") || o.failed != "" && o.skipped != "" {
			t.Errorf("%s=%s: %+v", RequireVariable, required, o)
		}
	}
}
