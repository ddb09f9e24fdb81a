package rpc

import (
	"log/slog"
	"sync/atomic"

	"github.com/leani-go/leani/chain"
)

// service is what all calls share: it answers requests and knows no transport. It is safe for
// concurrent use.
type service struct {
	store         Store
	history       History // nil without
	live          func() LiveStatus
	network       *chain.Network
	newEncoder    func() encoder
	limits        Limits
	clientVersion string
	log           *slog.Logger

	methods, socketMethods map[string]method
	hub                    *hub
	lane                   *lane
	memory                 *memory
	filters                *filterTable

	// failures counts answers with -32603 that were the node's fault.
	failures atomic.Uint64
}

// newService takes options that are complete and valid.
func newService(o Options) *service {
	s := &service{
		store:         o.Store,
		history:       o.History,
		live:          o.Live,
		network:       o.Network,
		newEncoder:    o.newEncoder,
		limits:        o.Limits,
		clientVersion: o.ClientVersion,
		log:           o.Logger,
		methods:       methodTable(),
		socketMethods: socketMethodTable(),
		lane:          newLane(o.LaneWorkers, o.Limits.LaneQueue),
		memory:        newMemory(&o.Limits),
		filters:       newFilterTable(&o.Limits, o.now),
	}
	s.hub = newHub(s, &o)
	return s
}

// close ends the workers. No call may run any more.
func (s *service) close() { s.lane.close() }
