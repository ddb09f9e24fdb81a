package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// child is a process that works until it is stopped: it says hello with a line on its output, ends
// when its input does, and writes its result as JSON before it ends.
type child struct {
	name  string
	hello string

	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Reader
}

// startChild starts a program with arguments, the first of which names the child, and waits for its
// hello.
func startChild(ctx context.Context, self, args []string) (*child, error) {
	all := append(append([]string(nil), self...), args...)
	c := &child{name: args[0], cmd: exec.CommandContext(ctx, all[0], all[1:]...)}
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.in, c.out = in, bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s ended before it was ready", c.name), c.in.Close(), c.cmd.Wait())
	}
	c.hello = strings.TrimSpace(line)
	return c, nil
}

// stop ends the child and reads its result.
func (c *child) stop(result any) error {
	err := errors.Join(c.in.Close(), json.NewDecoder(c.out).Decode(result), c.cmd.Wait())
	if err != nil {
		return fmt.Errorf("stop %s: %w", c.name, err)
	}
	return nil
}

// runChild is the other side: it calls run with a context that ends with the input, and writes what it
// returns.
func runChild(ctx context.Context, in io.Reader, out io.Writer, run func(ctx context.Context, ready func(hello string)) (any, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the input, or with the process
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	result, err := run(ctx, func(hello string) { _, _ = fmt.Fprintln(out, hello) })
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result)
}
