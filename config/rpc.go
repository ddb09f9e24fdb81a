package config

// HistoricalMode says what becomes of requests for blocks that are not kept.
type HistoricalMode string

// The modes.
const (
	HistoricalOnDemand HistoricalMode = "on_demand" // blocks are fetched for the answer
	HistoricalDisabled HistoricalMode = "disabled"  // they are refused
)

// RPC is the [rpc] table: Ethereum JSON-RPC.
type RPC struct {
	// HTTPBind is where JSON-RPC over HTTP listens.
	HTTPBind SocketAddress `toml:"http_bind" jsonschema:"required"`
	// WSBind is where JSON-RPC over WebSocket listens.
	WSBind SocketAddress `toml:"ws_bind" jsonschema:"required"`
	// HistoricalMode fetches what is not kept from a history source, or does not.
	HistoricalMode HistoricalMode `toml:"historical_mode" jsonschema:"required,enum=on_demand,enum=disabled"`
	// MinimumRecentBlocks is how many newest blocks stay available.
	MinimumRecentBlocks uint64 `toml:"minimum_recent_blocks" jsonschema:"required,minimum=1"`
	// AllowUnauthenticatedRemote permits binds beyond loopback although JSON-RPC has no
	// authentication: for a trusted network, or a proxy that authenticates.
	AllowUnauthenticatedRemote bool `toml:"allow_unauthenticated_remote" default:"false"`
	// AllowedOrigins are browser origins besides those of this machine.
	AllowedOrigins []AllowedOrigin `toml:"allowed_origins"`
	// MaxBatchRequests bounds the calls of a batch; a longer one is refused whole.
	MaxBatchRequests int `toml:"max_batch_requests" jsonschema:"minimum=1" default:"100"`
	// MaxResponseBytes bounds the encoded response of a request, single or batch.
	MaxResponseBytes HumanBytes `toml:"max_response_bytes" default:"16MiB" leani:"nonzero"`
	// MaxLogResults bounds the logs of one answer.
	MaxLogResults int `toml:"max_log_results" jsonschema:"minimum=1" default:"10000"`
	// MaxLogAddresses bounds the addresses of a log filter.
	MaxLogAddresses int `toml:"max_log_addresses" jsonschema:"minimum=1" default:"1000"`
	// MaxLogTopicAlternatives bounds the alternatives at each topic position of a log filter.
	MaxLogTopicAlternatives int `toml:"max_log_topic_alternatives" jsonschema:"minimum=1" default:"1000"`
	// MaxSubscriptionsPerConnection bounds the subscriptions of a WebSocket.
	MaxSubscriptionsPerConnection int `toml:"max_subscriptions_per_connection" jsonschema:"minimum=1" default:"128"`
	// MaxWebsocketConnections bounds open WebSockets.
	MaxWebsocketConnections int `toml:"max_websocket_connections" jsonschema:"minimum=1" default:"256"`
	// MaxOutboundBytes bounds queued notifications of all WebSockets together. More than an eighth of
	// budgets.memory_bytes counts as that.
	MaxOutboundBytes HumanBytes `toml:"max_outbound_bytes" default:"64MiB" leani:"nonzero"`
	// MaxSubscriptionEventBytes bounds what one chain event may send to a WebSocket, and what
	// may lie unread on it.
	MaxSubscriptionEventBytes HumanBytes `toml:"max_subscription_event_bytes" default:"16MiB" leani:"nonzero"`
	// TransactionLocator is a retired key: any value is accepted and has no effect.
	TransactionLocator any `toml:"transaction_locator"`
}
