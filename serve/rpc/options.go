package rpc

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/leani-go/leani/api/ethjson"
	"github.com/leani-go/leani/chain"
)

// Options configure a Server. Store is required; everything else may be zero.
type Options struct {
	// Store is what answers are read from. The server does not close it.
	Store Store
	// History fetches blocks that the store does not hold. Without one they are refused.
	History History
	// Feed is where subscriptions come from. Without one they are refused.
	Feed Feed
	// Live tells how the node follows the head of the chain. It is safe for concurrent use. Without it the node
	// follows none.
	Live func() LiveStatus
	// Network gives chain id, fork schedule and blob prices. Default Ethereum Mainnet.
	Network *chain.Network
	// Limits bound what clients may ask for.
	Limits Limits
	// AllowedOrigins are web origins that may call besides loopback ones, as browsers write
	// them: "https://app.example.org", lower case, with port unless it is the scheme's own.
	AllowedOrigins []string
	// ClientVersion is the answer of web3_clientVersion. Default "leani/<os>-<arch>/<go
	// version>".
	ClientVersion string
	// LaneWorkers is the number of threads for heavy queries. Default one less than
	// GOMAXPROCS, so that a processor stays free for light ones, but at least one. With
	// GOMAXPROCS one above the number of processors heavy queries get them all and light
	// ones still wait for nobody: the kernel decides between threads by their priority.
	LaneWorkers int
	// Logger gets failures of the node, and at debug level those of connections. Default
	// slog.Default.
	Logger *slog.Logger

	// times are the periods of WebSockets; tests replace them.
	times socketTimes
	// now is the clock by which filters expire; tests replace it.
	now func() time.Time
	// newEncoder makes the encoder of an exchange; tests replace it.
	newEncoder func() encoder
}

// withDefaults fills what is zero.
func (o Options) withDefaults() Options {
	o.Limits = o.Limits.withDefaults()
	if o.Network == nil {
		o.Network = chain.Mainnet()
	}
	if o.Live == nil {
		o.Live = func() LiveStatus { return LiveStatus{} }
	}
	setDefault(&o.ClientVersion, fmt.Sprintf("leani/%s-%s/%s", runtime.GOOS, runtime.GOARCH, runtime.Version()))
	setDefault(&o.LaneWorkers, defaultLaneWorkers())
	setDefault(&o.Logger, slog.Default())
	if o.times == (socketTimes{}) {
		o.times = defaultSocketTimes()
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.newEncoder == nil {
		network := o.Network
		o.newEncoder = func() encoder { return ethjson.NewEncoder(network) }
	}
	return o
}

// validate reports everything that is wrong with options whose defaults are filled in.
func (o Options) validate() error {
	var problems []error
	if o.Store == nil {
		problems = append(problems, errors.New("option Store is missing"))
	}
	if o.LaneWorkers < 1 {
		problems = append(problems, fmt.Errorf("option LaneWorkers: got %d, want at least 1", o.LaneWorkers))
	}
	return errors.Join(append(problems, o.Limits.validate())...)
}
