package config

// API is the [api] table: the native HTTP interface.
type API struct {
	// Bind is where the native interface listens.
	Bind SocketAddress `toml:"bind" jsonschema:"required" default:"127.0.0.1:18080"`
	// BearerTokenEnv names the environment variable that holds the bearer token. Absent, the
	// interface asks for no token.
	BearerTokenEnv string `toml:"bearer_token_env" jsonschema:"minLength=1"`
	// AllowUnauthenticatedRemote permits a bind beyond loopback without a token: for a proxy
	// that authenticates.
	AllowUnauthenticatedRemote bool `toml:"allow_unauthenticated_remote" default:"false"`
	// AllowedHosts are names besides localhost that a Host header may carry. Addresses always
	// pass.
	AllowedHosts []AllowedHost `toml:"allowed_hosts"`
	// AllowedOrigins are browser origins besides those of this machine.
	AllowedOrigins []AllowedOrigin `toml:"allowed_origins"`
	// Delivery sets how changes are cut into batches.
	Delivery APIDelivery `toml:"delivery"`
}

// APIDelivery is the [api.delivery] table.
type APIDelivery struct {
	// HistoryBatches are those of backfills. Absent: 4MiB, 16MiB, 20000 events, 8192 blocks,
	// 50ms, 4 batches or 64MiB buffered, gzip.
	HistoryBatches *DeliveryBatch `toml:"history_batches"`
	// LiveBatches are those of the head of the chain. Absent: 64KiB, 1MiB, 1000 events, 8
	// blocks, 10ms, 2 batches or 2MiB buffered, gzip.
	LiveBatches *DeliveryBatch `toml:"live_batches"`
}

// DeliveryBatch is one of the api.delivery tables. All keys but compression are required.
type DeliveryBatch struct {
	// TargetEncodedBytes is the size at which a batch is sent.
	TargetEncodedBytes HumanBytes `toml:"target_encoded_bytes" jsonschema:"required" leani:"nonzero"`
	// MaximumEncodedBytes is the size a batch never passes, at most 64 MiB.
	MaximumEncodedBytes HumanBytes `toml:"maximum_encoded_bytes" jsonschema:"required" leani:"nonzero"`
	// MaximumEvents bounds the events of a batch.
	MaximumEvents uint64 `toml:"maximum_events" jsonschema:"required,minimum=1"`
	// MaximumProcessedBlocks bounds the blocks of a batch.
	MaximumProcessedBlocks uint64 `toml:"maximum_processed_blocks" jsonschema:"required,minimum=1"`
	// MaximumDelay bounds how long an event waits for its batch.
	MaximumDelay HumanMilliseconds `toml:"maximum_delay" jsonschema:"required" leani:"nonzero"`
	// MaximumBufferedBatches bounds the batches prepared for a slow reader.
	MaximumBufferedBatches uint64 `toml:"maximum_buffered_batches" jsonschema:"required,minimum=1"`
	// MaximumBufferedBytes bounds their size.
	MaximumBufferedBytes HumanBytes `toml:"maximum_buffered_bytes" jsonschema:"required" leani:"nonzero"`
	// Compression is the encoding of batches.
	Compression string `toml:"compression" jsonschema:"enum=none,enum=gzip" default:"none"`
}
