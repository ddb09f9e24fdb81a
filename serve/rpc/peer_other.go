//go:build !unix

package rpc

import "net"

// watchPeer cannot tell here.
func watchPeer(net.Conn, bool, func()) (stop func()) { return func() {} }
