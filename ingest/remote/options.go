package remote

import (
	"context"
	"crypto/x509"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Options configure a Folder. The zero value is ready.
type Options struct {
	// AllowInsecure accepts a base URL that is not encrypted. Addresses of this machine are
	// accepted anyway.
	AllowInsecure bool
	// Connections bounds the requests under way. Default 4.
	Connections int
	// Attempts is how many times a request is made before its failure counts. Default 7, which
	// with the waits between them lasts half a minute at least.
	Attempts int
	// ConnectTimeout bounds how long a connection may take, and again its TLS handshake. Default
	// 10 s.
	ConnectTimeout time.Duration
	// HeaderTimeout bounds the time from a request to the header of its response. Default 30 s.
	HeaderTimeout time.Duration
	// IdleTimeout is the time in which a body has to bring 64 KiB, or its end. Default 30 s.
	IdleTimeout time.Duration
	// Backoff is the wait before the first repeat, which doubles each time up to MaximumBackoff.
	// Up to half of it is left out at random. Defaults 500 ms and 30 s.
	Backoff, MaximumBackoff time.Duration
	// MaximumRetryAfter bounds the wait that a server may ask for. Default 2 min.
	MaximumRetryAfter time.Duration
	// PieceBytes is how much of a large file one request asks for. Default 16 MiB.
	PieceBytes int64

	// Retrying is told of each failure that is followed by a repeat, and how long that waits. Calls
	// overlap. Nil tells nobody.
	Retrying func(err error, wait time.Duration)
	// Jitter gives numbers from 0 up to 1. Default a random source.
	Jitter func() float64
	// Dial makes connections. Default a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Proxy names the proxy of a request. Default that of the environment (HTTPS_PROXY, HTTP_PROXY,
	// NO_PROXY).
	Proxy func(*http.Request) (*url.URL, error)
	// RootCAs verify the certificates of servers. Default those of the system.
	RootCAs *x509.CertPool
}

// Limits that are not for tuning.
const (
	// minimumProgress is what a body has to bring in each Options.IdleTimeout: 2 KiB a second with
	// the default, a tenth of what a modem brings.
	minimumProgress = 64 << 10
	// maximumRedirects of one request.
	maximumRedirects = 5
	// maximumHeaderBytes of a response.
	maximumHeaderBytes = 64 << 10
	// copyBytes is the size of the buffer between a body and the disk.
	copyBytes = 128 << 10
)

func (o Options) withDefaults() Options {
	setDefault(&o.Connections, 4)
	setDefault(&o.Attempts, 7)
	setDefault(&o.ConnectTimeout, 10*time.Second)
	setDefault(&o.HeaderTimeout, 30*time.Second)
	setDefault(&o.IdleTimeout, 30*time.Second)
	setDefault(&o.Backoff, 500*time.Millisecond)
	setDefault(&o.MaximumBackoff, 30*time.Second)
	setDefault(&o.MaximumRetryAfter, 2*time.Minute)
	setDefault(&o.PieceBytes, 16<<20)
	if o.Retrying == nil {
		o.Retrying = func(error, time.Duration) {}
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: o.ConnectTimeout}).DialContext
	}
	if o.Proxy == nil {
		o.Proxy = http.ProxyFromEnvironment
	}
	return o
}

func setDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}
