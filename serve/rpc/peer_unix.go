//go:build unix

package rpc

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watchPeer calls gone, once, when the client of a connection has closed it. Nothing is read: when more of it lies there, a
// request that was sent ahead, the client counts as being there. Nobody else reads until stop has returned.
//
// A client that has closed its sending side alone looks the same as one that is gone until something is sent to it. It counts as
// gone unless it has said that its request was its last: then it had nothing more to send, and only a reset tells that it is gone.
func watchPeer(conn net.Conn, last bool, gone func()) (stop func()) {
	if wrapped, ok := conn.(interface{ UnsafeConn() net.Conn }); ok {
		conn = wrapped.UnsafeConn()
	}
	c, ok := conn.(syscall.Conn)
	if !ok {
		return func() {}
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return func() {}
	}
	_ = conn.SetReadDeadline(time.Time{}) // that of the request, which has been read, would end the watch
	done := make(chan struct{})
	go func() { // ends by the deadline that stop sets, or by the end of the connection
		defer close(done)
		var one [1]byte
		closed := false
		err := raw.Read(func(fd uintptr) (known bool) {
			n, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
			if err == unix.EAGAIN || err == unix.EINTR {
				return false // wait
			}
			closed = err != nil || n == 0 && !last || n == 0 && hungUp(fd)
			return closed || n > 0
		})
		if err == nil && closed {
			gone()
		}
	}()
	return func() {
		_ = conn.SetReadDeadline(time.Unix(1, 0))
		<-done
		_ = conn.SetReadDeadline(time.Time{}) // the next request has its own
	}
}

// hungUp tells whether a socket is closed in both directions.
func hungUp(fd uintptr) bool {
	ask := []unix.PollFd{{Fd: int32(fd)}}
	_, err := unix.Poll(ask, 0)
	return err == nil && ask[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
}
