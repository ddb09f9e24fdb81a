package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fasthttp/websocket"
)

// watcher is a WebSocket with subscriptions. Its first one is that of heads.
type watcher struct {
	run    *run
	number int
	conn   *websocket.Conn
	byID   map[string]*subscribed
	list   []*subscribed // in the order in which they were made
	buffer []byte

	logs     uint64 // that were told
	expected uint64 // notifications in all
	got      atomic.Uint64
	times    [2][]time.Duration // from the script to a head, by half
}

// subscribed is one subscription; follows is nil for heads.
type subscribed struct {
	follows *followed
	stream  stream
}

// notificationBegin and notificationMiddle are what stands before and behind the id in a notification.
const (
	notificationBegin  = `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"`
	notificationMiddle = `","result":`
	notificationEnd    = `}}`
	idLength           = 34
)

// pingEvery is after how many heads a client sends a ping, as many do of their own.
const pingEvery = 4

// subscribeBatch is how many subscriptions are made with one message.
const subscribeBatch = 64

// newWatcher connects and makes the subscriptions.
func newWatcher(ctx context.Context, r *run, number int) (*watcher, error) {
	conn, err := dial(ctx, r.node.process.WebSocket, 32<<10)
	if err != nil {
		return nil, err
	}
	w := &watcher{run: r, number: number, conn: conn, byID: make(map[string]*subscribed), buffer: make([]byte, 0, 8<<10)}
	w.list = append(w.list, new(subscribed))
	w.expected = r.scenario.heads
	for i := 1; i < r.options.Subscriptions; i++ {
		f := r.scenario.filters[filterOf(number, i)]
		w.list = append(w.list, &subscribed{follows: f})
		w.expected += f.all.count
	}
	for part := range slices.Chunk(w.list, subscribeBatch) {
		if err := w.subscribe(part); err != nil {
			return nil, errors.Join(fmt.Errorf("socket %d: %w", number, err), conn.Close())
		}
	}
	return w, nil
}

func dial(ctx context.Context, url string, buffer int) (*websocket.Conn, error) {
	dialer := websocket.Dialer{ReadBufferSize: buffer, WriteBufferSize: 4 << 10}
	conn, response, err := dialer.DialContext(ctx, url, nil)
	if err != nil {
		return nil, fmt.Errorf("open WebSocket: %w", err)
	}
	return conn, response.Body.Close()
}

func (w *watcher) subscribe(list []*subscribed) error {
	body := []byte("[")
	for i, s := range list {
		params := []byte(`["newHeads"]`)
		if s.follows != nil {
			params = s.follows.params
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"jsonrpc":"2.0","id":%d,"method":"eth_subscribe","params":%s}`, i, params)
	}
	if err := w.conn.WriteMessage(websocket.TextMessage, append(body, ']')); err != nil {
		return err
	}
	message, err := w.read()
	if err != nil {
		return err
	}
	var answers []struct {
		ID     int
		Result string
	}
	if err := json.Unmarshal(message, &answers); err != nil || len(answers) != len(list) {
		return fmt.Errorf("subscribe: %w: %.200s", err, message)
	}
	for i, a := range answers {
		if a.ID != i || len(a.Result) != idLength {
			return fmt.Errorf("subscribe: %.200s", message)
		}
		w.byID[a.Result] = list[i]
	}
	return nil
}

// read reads a message, which is valid until the next one.
func (w *watcher) read() ([]byte, error) {
	_, r, err := w.conn.NextReader()
	if err != nil {
		return nil, err
	}
	w.buffer = w.buffer[:0]
	for {
		if len(w.buffer) == cap(w.buffer) {
			w.buffer = slices.Grow(w.buffer, cap(w.buffer))
		}
		n, err := r.Read(w.buffer[len(w.buffer):cap(w.buffer)])
		w.buffer = w.buffer[:len(w.buffer)+n]
		if err == io.EOF {
			return w.buffer, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

const lastCall, lastAnswer = `{"jsonrpc":"2.0","id":"last","method":"net_version"}`, `{"jsonrpc":"2.0","id":"last","result":"730002"}`

// watch reads notifications until all have come, makes sure that no more follow, and compares them.
func (w *watcher) watch() error {
	for w.got.Load() < w.expected {
		message, err := w.read()
		if err != nil {
			return w.failed("%d of %d notifications: %w", w.got.Load(), w.expected, err)
		}
		if err := w.take(message); err != nil {
			return err
		}
		w.got.Add(1)
	}
	if err := w.conn.WriteMessage(websocket.TextMessage, []byte(lastCall)); err != nil {
		return w.failed("%w", err)
	}
	switch message, err := w.read(); {
	case err != nil:
		return w.failed("after all notifications: %w", err)
	case string(message) != lastAnswer:
		return w.failed("after all notifications: %q", message)
	}
	for i, s := range w.list {
		want := w.run.heads
		if s.follows != nil {
			want = s.follows.all
		}
		if s.stream != want {
			return w.failed("subscription %d got %d notifications with the sum %x, want %d with %x: %s", i, s.stream.count, s.stream.sum, want.count, want.sum, s.params())
		}
	}
	return nil
}

func (s *subscribed) params() []byte {
	if s.follows == nil {
		return []byte("heads")
	}
	return s.follows.params
}

func (w *watcher) failed(format string, args ...any) error {
	return fmt.Errorf("socket %d: "+format, append([]any{w.number}, args...)...)
}

// take takes a notification.
func (w *watcher) take(message []byte) error {
	const fixed = len(notificationBegin) + idLength + len(notificationMiddle) + len(notificationEnd)
	if len(message) < fixed || !bytes.HasPrefix(message, []byte(notificationBegin)) {
		return w.failed("got %.300s", message)
	}
	id := message[len(notificationBegin) : len(notificationBegin)+idLength]
	s := w.byID[string(id)]
	if s == nil {
		return w.failed("a notification of no subscription: %.300s", message)
	}
	s.stream.add(message[len(notificationBegin)+idLength+len(notificationMiddle) : len(message)-len(notificationEnd)])
	if s.follows != nil {
		w.logs++
		return nil
	}
	return w.takeHead(s.stream.count - 1)
}

// takeHead takes the n-th head: all logs of its block have been told before, and none of the next ones.
func (w *watcher) takeHead(n uint64) error {
	if n >= w.run.scenario.heads {
		return w.failed("more heads than there are")
	}
	want := uint64(0)
	for _, s := range w.list[1:] {
		want += uint64(s.follows.before[n])
	}
	if w.logs != want {
		return w.failed("%d logs were told before head %d, want %d", w.logs, n, want)
	}
	half := w.run.half.Load()
	w.times[half] = append(w.times[half], time.Since(w.run.toldAt(n)))
	if n%pingEvery == uint64(w.number%pingEvery) {
		if err := w.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(patience)); err != nil {
			return w.failed("%w", err)
		}
	}
	return nil
}
