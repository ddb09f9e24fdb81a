package rpc

import (
	"net"
	"time"
)

// socketWriter sends what is queued on a socket. Small messages leave together.
type socketWriter struct {
	*socket
	buf []byte
	// notifications is the bytes of notifications in buf; answered tells that an answer is in it.
	notifications int64
	answered      bool
	// broken tells that a message was sent in part, so that nothing can follow.
	broken bool
	spare  []message
	// sending is what is being written, in vector.
	sending net.Buffers
	vector  [2][]byte
}

// write sends until the socket closes.
func (c *socket) write() {
	defer close(c.done)
	w := &socketWriter{socket: c}
	for {
		messages, open := w.take()
		if !open {
			w.farewell()
			return
		}
		for i := range messages {
			if !w.add(&messages[i]) {
				c.close(0, "")
				w.farewell()
				return
			}
		}
		if !w.flush() {
			c.close(0, "")
			w.farewell()
			return
		}
		if len(messages) > 0 {
			clear(messages)
			w.spare = messages[:0]
		}
		if cap(w.spare) > 1024 {
			w.spare = nil
		}
		if cap(w.buf) > socketBatch {
			w.buf = nil
		}
	}
}

// farewell sends the close frame in the time that is left for it, and ends the reading.
func (w *socketWriter) farewell() {
	w.mu.Lock()
	code, reason := w.mu.code, w.mu.reason
	w.mu.Unlock()
	if code != 0 && !w.broken {
		_, _ = w.net.Write(appendCloseFrame(nil, uint16(code), reason)) // whoever does not read sees the end
	}
	_ = w.net.SetReadDeadline(time.Now())
}

// take waits for something to send and takes all there is; false when the socket closes. Without messages nothing of the queue
// is the writer's.
func (w *socketWriter) take() (messages []message, open bool) {
	for {
		w.mu.Lock()
		if w.mu.closing {
			w.mu.Unlock()
			return nil, false
		}
		if w.mu.ping {
			w.mu.ping = false
			w.buf = appendControl(w.buf, opPing, "")
		}
		if w.mu.pong != nil {
			w.buf = appendControl(w.buf, opPong, *w.mu.pong)
			w.mu.pong = nil
		}
		if len(w.mu.queue) > 0 {
			messages, w.mu.queue, w.spare = w.mu.queue, w.spare, nil
		}
		w.mu.Unlock()
		if len(messages) > 0 || len(w.buf) > 0 {
			return messages, true
		}
		<-w.wake
	}
}

// add sends a message, or gathers it to be sent with others. It returns false when the connection fails.
func (w *socketWriter) add(m *message) bool {
	size := m.size()
	if len(w.buf)+size > socketBatch && len(w.buf) > 0 && !w.flush() {
		return false
	}
	w.buf = appendFrameHeader(w.buf, opText, size)
	if !m.notification() {
		w.answered = true
		if size > socketBatch {
			return w.flushAnswer(m.body)
		}
		w.buf = append(w.buf, m.body...)
		return true
	}
	w.buf = append(append(append(w.buf, m.opening...), m.body...), notificationEnd...)
	w.notifications += int64(size)
	return true
}

// flushAnswer sends a large answer in chunks with a deadline each, the first together with what was gathered.
func (w *socketWriter) flushAnswer(body []byte) bool {
	memory := w.server.service.memory
	sending := memory.send(w.net)
	defer memory.sent(sending)
	gathered := w.buf
	w.buf = w.buf[:0]
	for begun := false; len(body) > 0; begun = true {
		n := min(len(body), writeChunk)
		sent, ok := w.put(stallTimeout, gathered, body[:n])
		if !sent {
			w.broken = w.broken || begun
			return ok && !begun && w.flush()
		}
		sending.moved()
		gathered, body = nil, body[n:]
	}
	return w.flush()
}

// flush sends what was gathered, and gives back what it stood for.
func (w *socketWriter) flush() bool {
	if len(w.buf) > 0 {
		within := writeTimeout + time.Duration(len(w.buf)/leastRate)*time.Second
		if _, ok := w.put(within, w.buf, nil); !ok {
			return false
		}
	}
	w.buf = w.buf[:0]
	if w.notifications > 0 {
		w.mu.Lock()
		if !w.mu.closing { // else all was given back
			now := time.Now()
			w.mu.held -= w.notifications
			w.server.service.hub.queued.Add(-w.notifications)
			w.congestedLocked(now)
			w.movedLocked(now, w.notifications)
		}
		w.mu.Unlock()
		w.notifications = 0
	}
	if w.answered {
		w.answered = false
		w.sent <- struct{}{}
	}
	return true
}

// put writes within a time, with one system call if that can be. Once the socket closes it writes nothing, which
// is no failure.
func (w *socketWriter) put(within time.Duration, first, second []byte) (sent, ok bool) {
	w.mu.Lock()
	closing := w.mu.closing
	if !closing {
		_ = w.net.SetWriteDeadline(time.Now().Add(within))
	}
	w.mu.Unlock()
	if closing {
		return false, true
	}
	w.sending = append(w.vector[:0], first, second)
	if _, err := w.sending.WriteTo(w.net); err != nil {
		w.broken = true
		return false, false
	}
	return true, true
}
