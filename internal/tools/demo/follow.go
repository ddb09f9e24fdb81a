package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fasthttp/websocket"
)

const (
	// events is the named pipe from which the node learns of blocks, beside the settings.
	events = "events"
	// eraOfLive is the era file of the block that arrives, liveBlock its number.
	eraOfLive = "mainnet-22431083-22431084-noproofs.ere"
	liveBlock = 22_431_084
	// tellTimeout bounds how long the node may take to tell what happened.
	tellTimeout = 20 * time.Second
)

// extend turns on what the starter settings leave off: history on demand, and, where there are named pipes, a live source that reads one.
func (d *demo) extend() error {
	path := filepath.Join(d.dir, "leani.toml")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fmt.Printf("\n# In %s, blocks that are not stored are fetched for the answer", path)
	changes := [][2]string{{`historical_mode = "disabled"`, `historical_mode = "on_demand"`}}
	if d.live, err = makePipe(filepath.Join(d.dir, events)); err != nil {
		return err
	}
	if d.live {
		fmt.Print(", and new ones come from a script, which stands in for the network")
		changes = append(changes, [2]string{"[sources.live]\nkind = \"disabled\"", "[sources.live]\nkind = \"scripted\"\npath = \"" + events + "\""})
	}
	fmt.Println(":")
	for _, c := range changes {
		if !bytes.Contains(text, []byte(c[0])) {
			return fmt.Errorf("%s has no line %s", path, c[0])
		}
		text = bytes.Replace(text, []byte(c[0]), []byte(c[1]), 1)
		fmt.Printf("%s\n", c[1])
	}
	return os.WriteFile(path, text, 0o644)
}

// follow subscribes to heads and logs over a WebSocket, lets a block arrive, undoes it, and lets it arrive again.
func (d *demo) follow(ctx context.Context, n *runningNode) (err error) {
	if !d.live {
		fmt.Println("\n# Live blocks are left out: this system has no named pipes.")
		return nil
	}
	fmt.Printf("\n# Follow the head over a WebSocket, %s\n", n.ws)
	socket, _, err := websocket.DefaultDialer.DialContext(ctx, n.ws, nil)
	if err != nil {
		return err
	}
	defer func() { _ = socket.Close() }() // nothing is lost by then
	f := follower{socket: socket}
	stop := context.AfterFunc(ctx, func() { _ = socket.Close() })
	defer stop()
	for _, params := range []string{`["newHeads"]`, `["logs",{"address":"` + usdc + `","topics":["` + transferTopic + `"]}]`} {
		if err := f.subscribe(params); err != nil {
			return err
		}
	}

	era, err := filepath.Abs(filepath.Join(d.era, eraOfLive))
	if err != nil {
		return err
	}
	name, err := json.Marshal(era)
	if err != nil {
		return err
	}
	apply := fmt.Sprintf(`{"apply": {"era": %s, "fromBlock": %d, "toBlock": %[2]d}}`, name, liveBlock)
	var was told
	for _, step := range []struct {
		what, event string
		wait        func(told) bool
		show        func(told) string
	}{
		{"A block arrives", apply, told.hasHead, func(t told) string {
			was = t
			return fmt.Sprintf("block %d (%s) is the head, with %d USDC transfers", liveBlock, t.head, t.logs)
		}},
		{"The network drops it: a reorganization", fmt.Sprintf(`{"undo": {"number": %d}}`, liveBlock-1),
			func(t told) bool { return t.removed >= was.logs }, func(t told) string {
				return fmt.Sprintf("the same %d transfers are told again, with \"removed\": true", t.removed)
			}},
		{"It arrives again", apply, told.hasHead, func(t told) string {
			return fmt.Sprintf("block %d is the head, with %d USDC transfers", liveBlock, t.logs)
		}},
	} {
		fmt.Printf("\n# %s\n$ echo '%s' > %s\n", step.what, step.event, filepath.Join(d.dir, events))
		if err := d.tell(step.event); err != nil {
			return err
		}
		t, err := f.read(step.wait)
		if err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		fmt.Printf("  the socket says: %s\n", step.show(t))
	}
	return nil
}

// tell writes an event for the node to read.
func (d *demo) tell(event string) (err error) {
	// Opened for reading too, so that it does not wait for the node to open its side; nothing is read.
	pipe, err := os.OpenFile(filepath.Join(d.dir, events), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(pipe, event)
	if e := pipe.Close(); err == nil {
		err = e
	}
	return err
}

// follower reads the notifications of a WebSocket.
type follower struct{ socket *websocket.Conn }

// told is what notifications said.
type told struct {
	head          string // hash of the last head
	logs, removed int
}

func (t told) hasHead() bool { return t.head != "" }

// message is an answer or a notification.
type message struct {
	Error  json.RawMessage
	Params *struct {
		Result struct {
			Hash    string // of a head
			Removed *bool  // of a log
		}
	}
}

// subscribe makes a subscription.
func (f follower) subscribe(params string) error {
	request := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":%s}`, params)
	fmt.Printf("> %s\n", request)
	if err := f.socket.WriteMessage(websocket.TextMessage, []byte(request)); err != nil {
		return err
	}
	m, err := f.next(time.Now().Add(tellTimeout))
	if err == nil && m.Error != nil {
		err = fmt.Errorf("eth_subscribe: got the error %s", m.Error)
	}
	return err
}

// read takes notifications until what they say is enough. The logs of a new block come before its head.
func (f follower) read(enough func(told) bool) (t told, err error) {
	deadline := time.Now().Add(tellTimeout)
	for !enough(t) {
		m, err := f.next(deadline)
		switch {
		case err != nil:
			return t, err
		case m.Params == nil:
			continue
		case m.Params.Result.Removed == nil:
			t.head = m.Params.Result.Hash
		case *m.Params.Result.Removed:
			t.removed++
		default:
			t.logs++
		}
	}
	return t, nil
}

// next reads a message.
func (f follower) next(deadline time.Time) (m message, err error) {
	if err := f.socket.SetReadDeadline(deadline); err != nil {
		return m, err
	}
	_, text, err := f.socket.ReadMessage()
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(text, &m)
}
