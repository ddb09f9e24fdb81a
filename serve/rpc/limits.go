package rpc

import (
	"errors"
	"fmt"
	"time"
)

// Every limit of the JSON-RPC surface stands in this file: what an operator may set in Limits,
// with its default, and below it what is fixed.

// Limits bounds what one client and all clients together may ask of the node. The zero value
// of a field selects its default. Sizes are bytes of encoded JSON.
type Limits struct {
	// MaxBatchRequests is the most calls of one batch; a longer batch is refused whole with
	// -32600. Default 100.
	MaxBatchRequests int
	// MaxResponseBytes is the most bytes of one response or batch response; the call that
	// would pass it and all later ones get -32005. Default 16 MiB.
	MaxResponseBytes int
	// MaxLogResults is the most logs of one eth_getLogs answer; more get -32005 with a range
	// that works. Default 10,000, the figure that client libraries split their queries by.
	MaxLogResults int
	// MaxLogAddresses is the most addresses of a log filter, repeats included; more get -32602.
	// Default 1,000.
	MaxLogAddresses int
	// MaxLogTopicAlternatives is the most alternatives at one topic position, repeats included;
	// more get -32602. Default 1,000.
	MaxLogTopicAlternatives int

	// MaxWebSocketConnections is the most open WebSockets; further upgrades get HTTP 503. Default 256.
	MaxWebSocketConnections int
	// MaxSubscriptions is the most subscriptions of a WebSocket; more get -32005. Default 128.
	MaxSubscriptions int
	// MaxOutboundBytes bounds the notifications that are queued or being sent, all WebSockets together; beyond it
	// the one that holds most is closed with 1013. Default 64 MiB.
	MaxOutboundBytes int
	// SubscriptionBytes bounds the addresses and topics of all subscriptions together; more get -32005. Default 16 MiB.
	SubscriptionBytes int
	// MaxEventBytes bounds the notifications of one chain event on a WebSocket, which is closed with 1008 beyond it,
	// and its unsent notifications, with 1013. At most MaxOutboundBytes. Default 16 MiB.
	MaxEventBytes int

	// RequestTime bounds the work on one HTTP request, waiting included; what is not answered
	// by then gets -32005. fasthttp does not tell when a client has gone, so this is also how
	// long work for nobody can go on, but for history on demand, during which connections are watched. Default 30 s, a common time-out of client libraries.
	RequestTime time.Duration
	// HistoryTime bounds the work on a request that fetches history on demand, from then on and waiting included; beyond it
	// the call gets -32004. It does not shorten RequestTime. Default 60 s.
	HistoryTime time.Duration
	// MaxConnections is the most open connections; further ones get HTTP 503. An idle one
	// costs a goroutine and two buffers, about 24 KiB. Default 1,024.
	MaxConnections int
	// InFlightResponseBytes bounds the memory of large responses that are built or being
	// sent, all clients together; those up to 1 MiB have an eighth of it besides. Requests wait for room and fail with -32005 when none comes
	// in time. At least MaxResponseBytes. Default 128 MiB; a program with a memory budget
	// derives it from that.
	InFlightResponseBytes int
	// InFlightRequestBytes bounds the memory of large request bodies in the same way. At
	// least 1 MiB. Default 32 MiB; as for responses.
	InFlightRequestBytes int
	// LaneQueue is the most heavy queries that wait for a worker; further ones get -32005.
	// Default 1,024: they are already bounded by the connections.
	LaneQueue int

	// MaxFilters is the most installed filters of all clients; eth_newFilter and eth_newBlockFilter fail with -32005
	// beyond it. Default 1,024.
	MaxFilters int
	// FilterBytes bounds the memory of installed filters: their criteria, and the logs of recent blocks that they
	// remember. No filter is installed beyond it; logs that do not fit are forgotten. Default 32 MiB.
	FilterBytes int
}

const (
	// maxRequestBytes is the largest HTTP body; larger ones get HTTP 413.
	maxRequestBytes = 1 << 20
	// maxDrainBytes is how much of a body that is too large is read and thrown away so that
	// the client, which writes before it reads, gets to see the 413 instead of a reset. What
	// goes beyond it is cut off.
	maxDrainBytes = 8 << 20
	// maxHeaderBytes is the largest request line and headers; larger ones get HTTP 431. Ours
	// are a few hundred bytes, browsers and proxies send a few thousand.
	maxHeaderBytes = 8 << 10
	// maxNesting is how deep arrays and objects of a request may nest. A log query in a batch
	// needs six levels, the state overrides of methods we refuse about ten. It fits a 64-bit
	// stack of one bit a level.
	maxNesting = 64
	// maxTopics is the most positions of a topic filter: no log has more topics.
	maxTopics = 4

	// readTimeout is how long a client may take for one request, header and body. Slower ones
	// hold a connection and up to 1 MiB.
	readTimeout = 30 * time.Second
	// idleTimeout is how long a connection may stay open between requests. It is longer than
	// the usual pool settings of clients and proxies, so that they close first and never race
	// with us.
	idleTimeout = 120 * time.Second
	// writeTimeout is how long a client may take to read a response up to largeResponse.
	writeTimeout = 30 * time.Second
	// stallTimeout is how long a client may take to read each writeChunk of a larger response.
	// A reader slower than 26 KiB/s is cut off; it would hold the memory of its response from
	// others.
	stallTimeout = 10 * time.Second
	// scarceTimeout takes its place while others wait for the memory of responses.
	scarceTimeout = 2 * time.Second
	// writeChunk is the unit in which larger responses are handed to the connection. Bigger
	// ones save no measurable time.
	writeChunk = 256 << 10
	// largeResponse divides responses that are sent in one piece from those sent in chunks.
	largeResponse = 1 << 20

	// handshakeTimeout is how long a client may take to ask for a WebSocket.
	handshakeTimeout = 10 * time.Second
	// maxFilterBytes bounds the addresses and topics of all subscriptions of a WebSocket: as much as one request can
	// bring.
	maxFilterBytes = 1 << 20
	// leastRate is how many bytes of a notification a client has to read in a second, beyond writeTimeout.
	leastRate = 64 << 10
	// socketBatch is how much of small messages is sent with one system call.
	socketBatch = 64 << 10

	// unmeteredBytes of every request body and every response do not count against the
	// in-flight limits, so that small traffic never waits for large. The connection limit
	// bounds them.
	unmeteredBytes = 64 << 10

	// mediumBytes is how large a response may get that does not stand in line for memory with larger ones. All of these together
	// have a mediumShare-th part of InFlightResponseBytes, besides that.
	mediumBytes = 1 << 20
	mediumShare = 8

	// laneCost is the number of candidate rows from which a log query counts as heavy and runs
	// in the low-priority lane. Below it a query takes at most a few milliseconds, which is
	// what a rare query may have to wait for.
	laneCost = 4096
	// filterExpiry is how long an installed filter lives without being polled, as in go-ethereum.
	filterExpiry = 5 * time.Minute
	// rememberedBlocks is how many of the newest blocks a filter remembers to tell them as removed: four epochs, twice
	// as many as there are between the head and the finalized block when the chain is well.
	rememberedBlocks = 128
	// maxRememberedBytes bounds the logs that one filter remembers.
	maxRememberedBytes = 4 << 20
	// maxFilterAdvance is how many new blocks a poll looks at; the next one goes on behind them.
	maxFilterAdvance = 1 << 16

	// deadlineStride is after how many logs a running query looks at the clock itself, in case
	// a store looks rarely.
	deadlineStride = 256
)

// socketTimes are the periods of WebSockets. Tests shorten them.
type socketTimes struct {
	// sweep is how often connections are looked at.
	sweep time.Duration
	// ping is after how long a silence a client is pinged, silence after how long it is closed.
	ping, silence time.Duration
	// congestion is how long a client may have more than a quarter of MaxEventBytes unsent.
	congestion time.Duration
	// closing is how long the close frame may take, and the client to close its side after that.
	closing time.Duration
	// refresh is how old the view of an idle chain gets.
	refresh time.Duration
	// paceEvent is how long after the event before an event is told at the latest, as far as it is up to the hub; paceSocket
	// how long the hub waits for a client until that has taken a quarter of MaxEventBytes, or has caught up; paceStalled after what
	// time without a write that ended a client does not count as reading.
	paceEvent, paceSocket, paceStalled time.Duration
}

func defaultSocketTimes() socketTimes {
	return socketTimes{
		sweep: time.Second, ping: 30 * time.Second, silence: 90 * time.Second, congestion: 30 * time.Second,
		closing: time.Second, refresh: 10 * time.Second,
		paceEvent: 500 * time.Millisecond, paceSocket: 2 * time.Second, paceStalled: 250 * time.Millisecond,
	}
}

// withDefaults fills the fields that are zero.
func (l Limits) withDefaults() Limits {
	setDefault(&l.MaxBatchRequests, 100)
	setDefault(&l.MaxResponseBytes, 16<<20)
	setDefault(&l.MaxLogResults, 10_000)
	setDefault(&l.MaxLogAddresses, 1_000)
	setDefault(&l.MaxLogTopicAlternatives, 1_000)
	setDefault(&l.MaxWebSocketConnections, 256)
	setDefault(&l.MaxSubscriptions, 128)
	setDefault(&l.MaxOutboundBytes, 64<<20)
	setDefault(&l.SubscriptionBytes, 16<<20)
	setDefault(&l.MaxEventBytes, min(16<<20, l.MaxOutboundBytes))
	setDefault(&l.RequestTime, 30*time.Second)
	setDefault(&l.HistoryTime, 60*time.Second)
	setDefault(&l.MaxConnections, 1_024)
	setDefault(&l.InFlightResponseBytes, max(128<<20, l.MaxResponseBytes))
	setDefault(&l.InFlightRequestBytes, 32<<20)
	setDefault(&l.LaneQueue, 1_024)
	setDefault(&l.MaxFilters, 1_024)
	setDefault(&l.FilterBytes, 32<<20)
	return l
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate reports everything that is wrong with limits whose defaults are filled in.
func (l Limits) validate() error {
	var problems []error
	for _, field := range []struct {
		name  string
		value int64
		least int64
	}{
		{"MaxBatchRequests", int64(l.MaxBatchRequests), 1},
		{"MaxResponseBytes", int64(l.MaxResponseBytes), 1},
		{"MaxLogResults", int64(l.MaxLogResults), 1},
		{"MaxLogAddresses", int64(l.MaxLogAddresses), 1},
		{"MaxLogTopicAlternatives", int64(l.MaxLogTopicAlternatives), 1},
		{"MaxWebSocketConnections", int64(l.MaxWebSocketConnections), 1},
		{"MaxSubscriptions", int64(l.MaxSubscriptions), 1},
		{"SubscriptionBytes", int64(l.SubscriptionBytes), 1},
		{"MaxEventBytes", int64(l.MaxEventBytes), 1},
		{"MaxOutboundBytes", int64(l.MaxOutboundBytes), int64(l.MaxEventBytes)},
		{"RequestTime", int64(l.RequestTime), 1},
		{"HistoryTime", int64(l.HistoryTime), 1},
		{"MaxConnections", int64(l.MaxConnections), 1},
		{"InFlightResponseBytes", int64(l.InFlightResponseBytes), int64(l.MaxResponseBytes)},
		{"InFlightRequestBytes", int64(l.InFlightRequestBytes), maxRequestBytes},
		{"LaneQueue", int64(l.LaneQueue), 1},
		{"MaxFilters", int64(l.MaxFilters), 1},
		{"FilterBytes", int64(l.FilterBytes), 1},
	} {
		if field.value < field.least {
			problems = append(problems, fmt.Errorf("limit %s: got %d, want at least %d", field.name, field.value, field.least))
		}
	}
	return errors.Join(problems...)
}
