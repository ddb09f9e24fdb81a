package config

import (
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/leani-go/leani/chain"
)

// The bounds of the rules below that no struct tag can carry.
const (
	minimumLease = time.Second
	maximumLease = 100 * 365 * 24 * time.Hour
	// maximumEncodedBatch leaves room for framing below the 65 MiB that clients accept as one
	// record.
	maximumEncodedBatch = 64 << 20
	// maximumQueuedBytes bounds queue sizes that travel as 32-bit counts.
	maximumQueuedBytes = math.MaxUint32
	// maximumLightClientPeers is the most peers a consensus light client may wait for.
	maximumLightClientPeers = 24
)

// rules checks what no single key shows: required parts of a form, and keys that contradict
// each other. Nothing here opens a file or a connection.
func (c *checker) rules() {
	c.form()
	c.binds()
	c.budgets()
	c.sources()
	c.finality()
	c.processors()
	c.batches()
}

// has tells whether the file writes the key.
func (c *checker) has(path string) bool { return c.doc.has(path) }

// conflict reports a rule that the value of a key breaks.
func (c *checker) conflict(at string, value any, message, fix string) {
	c.add(Problem{Kind: Conflict, Field: at, Value: render(value), Message: message, Fix: fix})
}

// starter tells which form the file has: a network or a preset without a chain is the starter
// form.
func (c *checker) starter() bool {
	return !c.has("chain") && (c.has("network") || c.has("blocks") || c.has("uniswap"))
}

// form checks the top-level keys of the file's form.
func (c *checker) form() {
	if c.starter() {
		for _, key := range []string{"network", "finality"} {
			if !c.has(key) {
				c.missing(key, "")
			}
		}
		for _, key := range []string{"budgets", "sources", "processors", "rpc", "raw_history", "artifact_storage"} {
			if c.has(key) {
				c.conflict(key, c.doc.tree[key], "belongs to the advanced form", "remove it, or write a chain table instead of network")
			}
		}
		if c.has("blocks") == c.has("uniswap") {
			c.add(Problem{Kind: Conflict, Field: "blocks", Message: "the starter form takes exactly one preset", Fix: "write either a blocks or a uniswap table"})
		}
		return
	}
	for _, key := range []string{"data_dir", "chain", "budgets", "sources", "finality", "rpc", "api"} {
		if !c.has(key) {
			c.missing(key, "")
		}
	}
	if list, ok := c.doc.tree["processors"].([]any); !c.has("processors") {
		c.add(Problem{Kind: Missing, Field: "processors", Message: "is required", Fix: "add the key; processors = [] makes a node that only keeps raw history"})
	} else if ok && len(list) == 0 && !c.config.RawHistory.Enabled {
		c.conflict("processors", []any{}, "may be empty only when raw history is kept", "set raw_history.enabled = true, or configure a processor")
	}
	if c.has("network") {
		c.conflict("network", c.config.Network, "belongs to the starter form", "remove it; chain names the network")
	}
	if c.config.Chain.ChainID == chain.MainnetChainID && c.has("chain.genesis") {
		c.conflict("chain.genesis", c.config.Chain.Genesis, "is for chains other than Mainnet, whose genesis is built in", "remove it")
	}
}

// binds checks that listeners differ and do not face the network by accident.
func (c *checker) binds() {
	rpc, api := &c.config.RPC, &c.config.API
	const proxy = "bind to 127.0.0.1, or set %s = true behind an authenticating proxy"
	if api.Bind.IsValid() && !api.Bind.Loopback() && api.BearerTokenEnv == "" && !api.AllowUnauthenticatedRemote {
		c.conflict("api.bind", api.Bind.String(), "is reachable from other machines without a token",
			"set api.bearer_token_env, "+fmt.Sprintf(proxy, "api.allow_unauthenticated_remote"))
	}
	listeners := []struct {
		at   string
		bind SocketAddress
	}{{"rpc.http_bind", rpc.HTTPBind}, {"rpc.ws_bind", rpc.WSBind}, {"api.bind", api.Bind}}
	for i, l := range listeners {
		if !l.bind.IsValid() {
			continue
		}
		if l.at != "api.bind" && !l.bind.Loopback() && !rpc.AllowUnauthenticatedRemote {
			c.conflict(l.at, l.bind.String(), "is reachable from other machines, and JSON-RPC has no authentication",
				fmt.Sprintf(proxy, "rpc.allow_unauthenticated_remote"))
		}
		for _, other := range listeners[:i] {
			if l.bind == other.bind && l.bind.Port() != 0 {
				c.conflict(l.at, l.bind.String(), "is also "+other.at, "give each listener its own address")
			}
		}
	}
	switch event, all := rpc.MaxSubscriptionEventBytes, rpc.MaxOutboundBytes; {
	case event > all:
		c.conflict("rpc.max_outbound_bytes", all.String(), "is below rpc.max_subscription_event_bytes",
			fmt.Sprintf("write at least %s", event))
	case all > maximumQueuedBytes:
		c.conflict("rpc.max_outbound_bytes", all.String(), "is too large", fmt.Sprintf("write at most %d", uint64(maximumQueuedBytes)))
	}
}

func (c *checker) budgets() {
	b := &c.config.Budgets
	if b.RecentRawSoftBytes > b.RecentRawHardBytes {
		c.conflict("budgets.recent_raw_soft_bytes", b.RecentRawSoftBytes, "is above budgets.recent_raw_hard_bytes",
			fmt.Sprintf("write at most %d", b.RecentRawHardBytes))
	}
	if d := b.Delivery; c.has("budgets.delivery.maximum_retained_bytes") && d.MaximumHistoryRetainedBytes > d.MaximumRetainedBytes {
		c.conflict("budgets.delivery.maximum_history_retained_bytes", d.MaximumHistoryRetainedBytes.String(),
			"is above budgets.delivery.maximum_retained_bytes", fmt.Sprintf("write at most %s", d.MaximumRetainedBytes))
	}
}

func (c *checker) sources() {
	ids := map[string]string{}
	for i := range c.config.Sources.History {
		s, at := &c.config.Sources.History[i], element("sources.history", i)
		if first, taken := ids[s.ID]; taken && s.ID != "" {
			c.conflict(at+".id", s.ID, "is also "+first, "give each source its own id")
		}
		ids[s.ID] = at + ".id"
		c.sourceKeys(at, s)
		if s.Kind == SourceXatu && c.config.Chain.ChainID > chain.MainnetChainID {
			c.conflict(at+".kind", string(s.Kind), "serves only chain id 1", "use an era_e or archive source")
		}
		if s.Kind == SourceEra && c.has(at+".endpoint") {
			c.endpoint(at, s)
		}
	}
	live := &c.config.Sources.Live
	const script = "sources.live.path"
	switch present := c.has(script); {
	case present && live.Kind != LiveScripted && live.Kind != "":
		c.conflict(script, lookup(c.doc.tree, script), "is a key of a scripted source", "remove it, or change sources.live.kind")
	case !present && live.Kind == LiveScripted:
		c.add(Problem{Kind: Missing, Field: script, Message: "is required for a scripted source", Fix: "add the key",
			Line: c.doc.at["sources.live"].line, Column: c.doc.at["sources.live"].column})
	}
	if live.Kind == "p2p" {
		if c.config.Finality.Kind == FinalityDisabled {
			c.conflict("sources.live.kind", live.Kind, "needs a finality source", `configure finality, or write "disabled"`)
		}
		if live.EnableDiscv5 && live.DiscoveryPort == live.Discv5Port && live.Discv5Port != 0 {
			c.conflict("sources.live.discv5_port", live.Discv5Port, "is also sources.live.discovery_port", "choose another port, or 0")
		}
	}
}

// sourceKeys checks that a source has the keys of its kind and no others.
func (c *checker) sourceKeys(at string, s *HistorySource) {
	keys := []struct {
		name     string
		kind     SourceKind
		required bool
	}{
		{"chunk_blocks", SourceXatu, false}, {"blobs_chunk_blocks", SourceXatu, false}, {"batch_rows", SourceXatu, false},
		{"manifest", SourceArchive, true}, {"endpoint", SourceEra, true},
	}
	for _, k := range keys {
		path := at + "." + k.name
		switch present := c.has(path); {
		case present && s.Kind != k.kind && s.Kind != "":
			v := lookup(c.doc.tree, path)
			if uri, ok := v.(string); ok && k.name == "endpoint" {
				v = redact(uri)
			}
			c.conflict(path, v, fmt.Sprintf("is a key of %s sources", k.kind), "remove it, or change the source's kind")
		case !present && k.required && s.Kind == k.kind:
			c.add(Problem{Kind: Missing, Field: path, Message: fmt.Sprintf("is required for %s sources", k.kind), Fix: "add the key",
				Line: c.doc.at[at].line, Column: c.doc.at[at].column})
		}
	}
}

// endpoint checks an era_e endpoint, and finds the folder of a local one.
func (c *checker) endpoint(at string, s *HistorySource) {
	at += ".endpoint"
	const forms = `write a folder such as "file:era/" or "file:///srv/era/", or an https: URI`
	u, err := url.Parse(s.Endpoint)
	switch {
	case err != nil || u.Scheme == "":
		c.invalid(at, redact(s.Endpoint), "is not a URI", forms)
	case !strings.HasSuffix(s.Endpoint, "/"):
		c.invalid(at, redact(s.Endpoint), "does not end in a slash", "add the slash: an endpoint is a folder")
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		c.invalid(at, redact(s.Endpoint), "has more than scheme, host and path", forms)
	case u.Scheme == "file":
		folder := u.Path
		if u.Opaque != "" {
			folder, err = url.PathUnescape(u.Opaque)
		}
		if err != nil || folder == "" || u.Host != "" && u.Host != "localhost" || strings.ContainsRune(folder, 0) {
			c.invalid(at, redact(s.Endpoint), "is not a local folder", forms)
			return
		}
		s.Folder = folder
	case u.Scheme == "https" && u.Host != "":
	case u.Scheme == "http" && u.Host != "":
		if !s.AllowInsecureHTTP && !loopbackHost(u.Hostname()) {
			c.conflict(at, redact(s.Endpoint), "is not encrypted", "use https:, or set allow_insecure_http = true")
		}
	default:
		c.invalid(at, redact(s.Endpoint), "has an unknown scheme", forms)
	}
}

// redact leaves scheme, host and port of a URI: paths and credentials of endpoints often hold
// keys, and problems end up in logs. Local folders stay as they are.
func redact(endpoint string) string {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return "…"
	case u.Host == "":
		return endpoint
	}
	return u.Scheme + "://" + u.Host + "/…"
}

func loopbackHost(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

func (c *checker) finality() {
	f := &c.config.Finality
	if f.Kind == "" || f.Kind == FinalityDisabled {
		return
	}
	const here = "finality"
	switch {
	case !c.has("finality.checkpoint"):
		c.missing("finality.checkpoint", here)
	case strings.Trim(f.Checkpoint, "0x") == "":
		c.conflict("finality.checkpoint", f.Checkpoint, "is no block root", "write the root of a trusted finalized block")
	}
	if !c.has("finality.checkpoint_slot") {
		c.missing("finality.checkpoint_slot", here)
	}
	if f.Kind == FinalityConsensusP2P {
		if f.MinimumPeers > maximumLightClientPeers {
			c.conflict("finality.minimum_peers", f.MinimumPeers, "is too large", fmt.Sprintf("write at most %d", maximumLightClientPeers))
		}
		return
	}
	for _, key := range []string{"bootnodes", "minimum_peers", "discovery_port"} {
		if at := "finality." + key; c.has(at) {
			c.conflict(at, lookup(c.doc.tree, at), "is a key of consensus_p2p finality", "remove it, or change finality.kind")
		}
	}
	if len(f.Endpoints) == 0 {
		c.add(Problem{Kind: Missing, Field: "finality.endpoints", Message: "needs at least one beacon node", Fix: "add a URL"})
		return
	}
	for i, e := range f.Endpoints {
		at := element("finality.endpoints", i)
		if u, err := url.Parse(e); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			c.invalid(at, redact(e), "is not an http or https URL", "write the base URL of a beacon node")
		}
		if slices.Contains(f.Endpoints[:i], e) {
			c.conflict(at, redact(e), "appears twice", "remove one of them")
		}
	}
	if f.MinimumAgreement > uint64(len(f.Endpoints)) {
		c.conflict("finality.minimum_agreement", f.MinimumAgreement, "is above the number of endpoints", fmt.Sprintf("write at most %d", len(f.Endpoints)))
	}
}

func (c *checker) batches() {
	for _, lane := range []struct {
		at    string
		batch *DeliveryBatch
	}{
		{"api.delivery.history_batches", c.config.API.Delivery.HistoryBatches},
		{"api.delivery.live_batches", c.config.API.Delivery.LiveBatches},
	} {
		at, b := lane.at, lane.batch
		if b == nil {
			continue
		}
		if b.TargetEncodedBytes > b.MaximumEncodedBytes {
			c.conflict(at+".target_encoded_bytes", b.TargetEncodedBytes.String(), "is above maximum_encoded_bytes", fmt.Sprintf("write at most %s", b.MaximumEncodedBytes))
		}
		if b.MaximumEncodedBytes > maximumEncodedBatch {
			c.conflict(at+".maximum_encoded_bytes", b.MaximumEncodedBytes.String(), "is more than clients accept", "write at most 64MiB")
		}
		if b.MaximumEncodedBytes > b.MaximumBufferedBytes {
			c.conflict(at+".maximum_buffered_bytes", b.MaximumBufferedBytes.String(), "is below maximum_encoded_bytes", fmt.Sprintf("write at least %s", b.MaximumEncodedBytes))
		}
		if b.MaximumBufferedBytes > maximumQueuedBytes {
			c.conflict(at+".maximum_buffered_bytes", b.MaximumBufferedBytes.String(), "is too large", fmt.Sprintf("write at most %d", uint64(maximumQueuedBytes)))
		}
	}
}
