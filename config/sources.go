package config

import "strings"

// SourceKind names a kind of history source.
type SourceKind string

// The kinds of history sources.
const (
	SourceXatu    SourceKind = "xatu"    // Parquet tables of the Xatu data set
	SourceEra     SourceKind = "era_e"   // era files (.ere, .erae, .era1)
	SourceArchive SourceKind = "archive" // normalized frame archive
)

// Trust is how far a source's material may be believed.
type Trust string

// The levels of trust.
const (
	// TrustedDataset takes the publisher's word for what cannot be recomputed.
	TrustedDataset Trust = "trusted_dataset"
	// VerifiedMaterial is proved against the commitments in block headers.
	VerifiedMaterial Trust = "verified_material"
)

// The kinds of live sources.
const (
	LiveP2P      = "p2p"      // peers on the execution network
	LiveScripted = "scripted" // events from a file
	LiveDisabled = "disabled" // none
)

// Sources is the [sources] table.
type Sources struct {
	// History lists where old blocks come from.
	History []HistorySource `toml:"history" jsonschema:"required,minItems=1"`
	// Live is where new blocks come from.
	Live LiveSource `toml:"live" jsonschema:"required"`
}

// HistorySource is one entry of [[sources.history]].
type HistorySource struct {
	// ID names the source in logs and reports; unique.
	ID string `toml:"id" jsonschema:"required,minLength=1"`
	// Kind is the kind of source.
	Kind SourceKind `toml:"kind" jsonschema:"required,enum=xatu,enum=era_e,enum=archive"`
	// Priority orders the sources: each block comes from the one with the lowest number that
	// holds it. Another one takes over where it fails.
	Priority uint16 `toml:"priority" jsonschema:"required,minimum=0,maximum=65535"`
	// Trust says how far the material is believed. What the material of an archive claims counts
	// as trusted_dataset at most.
	Trust Trust `toml:"trust" jsonschema:"required,enum=trusted_dataset,enum=verified_material"`
	// ChunkBlocks is the length of one read of headers, transactions or logs; xatu only.
	ChunkBlocks uint64 `toml:"chunk_blocks" jsonschema:"minimum=1,multipleOf=1000" default:"1000"`
	// BlobsChunkBlocks is the length of one read of blob rows; xatu only.
	BlobsChunkBlocks uint64 `toml:"blobs_chunk_blocks" jsonschema:"minimum=1,multipleOf=1000" default:"8000"`
	// BatchRows is the number of Parquet rows decoded at a time; xatu only.
	BatchRows int `toml:"batch_rows" jsonschema:"minimum=1" default:"8192"`
	// Manifest is the path of an archive's manifest; archive only.
	Manifest string `toml:"manifest" jsonschema:"minLength=1"`
	// Endpoint is the folder of an era_e source as a URI that ends in a slash: file: for a
	// local folder (file:///srv/era/ or, from the settings file's directory, file:era/),
	// https: for a mirror. The folder has a checksums_sha256.txt.
	Endpoint string `toml:"endpoint" jsonschema:"minLength=1"`
	// AllowInsecureHTTP accepts an http: endpoint beyond this machine.
	AllowInsecureHTTP bool `toml:"allow_insecure_http" default:"false"`

	// Folder is the absolute path of a file: endpoint, else empty. Load sets it.
	Folder string `toml:"-"`
}

// Place is where the source is, for messages: of a mirror scheme and host alone, because paths of
// endpoints often hold keys.
func (s *HistorySource) Place() string {
	switch {
	case s.Folder != "":
		return s.Folder
	case s.Manifest != "":
		return s.Manifest
	case s.Endpoint != "":
		return redact(s.Endpoint)
	}
	return string(s.Kind)
}

// Mirror tells whether the source is on a server.
func (s *HistorySource) Mirror() bool {
	return s.Kind == SourceEra && (strings.HasPrefix(s.Endpoint, "https:") || strings.HasPrefix(s.Endpoint, "http:"))
}

// Claim is the highest trust that the source's material may claim: no more than its entry says, nor
// than its kind can prove. Only material whose commitments are recomputed can be verified material; an
// archive gives what its writer had checked.
func (s *HistorySource) Claim() Trust {
	if s.Kind == SourceEra {
		return s.Trust
	}
	return TrustedDataset
}

// LiveSource is the [sources.live] table. All but the first two keys tune the peer-to-peer
// source.
type LiveSource struct {
	// Kind is "p2p" to follow the head of the chain over devp2p, "scripted" to read events from a file (an
	// extension of this node, for tests and demonstrations), or "disabled".
	Kind string `toml:"kind" jsonschema:"required,enum=p2p,enum=scripted,enum=disabled"`
	// MinimumPeers is how many peers must be connected before the source is ready.
	MinimumPeers uint64 `toml:"minimum_peers" jsonschema:"required,minimum=0"`
	// Path is the file of events of a scripted source; scripted only. An extension of this node.
	Path string `toml:"path" jsonschema:"minLength=1"`
	// BodyServingPeerTarget is how many peers that serve bodies are sought.
	BodyServingPeerTarget uint64 `toml:"body_serving_peer_target" jsonschema:"minimum=0" default:"4"`
	// PreferredPeers is how many peers are sought in all.
	PreferredPeers uint64 `toml:"preferred_peers" jsonschema:"minimum=0" default:"8"`
	// MaxOutboundPeers bounds outgoing connections.
	MaxOutboundPeers uint64 `toml:"max_outbound_peers" jsonschema:"minimum=0" default:"32"`
	// MaxConcurrentDials bounds connection attempts at a time.
	MaxConcurrentDials uint64 `toml:"max_concurrent_dials" jsonschema:"minimum=0" default:"8"`
	// ListenerPort is the TCP port for peers; 0 lets the system choose.
	ListenerPort uint16 `toml:"listener_port" jsonschema:"minimum=0,maximum=65535" default:"30303"`
	// DiscoveryPort is the UDP port of discovery v4; 0 lets the system choose.
	DiscoveryPort uint16 `toml:"discovery_port" jsonschema:"minimum=0,maximum=65535" default:"30303"`
	// Discv5Port is the UDP port of discovery v5; 0 lets the system choose.
	Discv5Port uint16 `toml:"discv5_port" jsonschema:"minimum=0,maximum=65535" default:"9200"`
	// EnableDiscv5 turns discovery v5 on.
	EnableDiscv5 bool `toml:"enable_discv5" default:"true"`
	// NAT says how the public address is found, such as "any".
	NAT string `toml:"nat"`
	// TrustedPeers are enode URLs that are always admitted.
	TrustedPeers []string `toml:"trusted_peers"`
	// BootstrapDNSTree is a signed list of peers in DNS (EIP-1459). It only helps to find
	// peers: what they send is verified like anything else.
	BootstrapDNSTree string `toml:"bootstrap_dns_tree" jsonschema:"pattern=^enrtree://"`
	// PeerRefillIntervalMS is the pause between two searches for peers.
	PeerRefillIntervalMS uint64 `toml:"peer_refill_interval_ms" jsonschema:"minimum=1" default:"5000"`
	// PeerRecoveryTimeoutSeconds is how long a search for lost peers may last.
	PeerRecoveryTimeoutSeconds uint64 `toml:"peer_recovery_timeout_seconds" jsonschema:"minimum=1" default:"60"`
	// StallTimeoutSeconds is how long the lane may stand still, with finality ready, before
	// the process exits for its supervisor to restart it.
	StallTimeoutSeconds uint64 `toml:"stall_timeout_seconds" jsonschema:"minimum=360,maximum=2592000" default:"600"`
	// MaterialRequestConcurrency bounds parallel requests for bodies and receipts.
	MaterialRequestConcurrency uint64 `toml:"material_request_concurrency" jsonschema:"minimum=1" default:"4"`
	// MaterialRequestBlocks is how many blocks one such request asks for.
	MaterialRequestBlocks uint64 `toml:"material_request_blocks" jsonschema:"minimum=1,maximum=16" default:"4"`
	// RequestTimeoutSeconds bounds one request to a peer.
	RequestTimeoutSeconds uint64 `toml:"request_timeout_seconds" jsonschema:"minimum=1" default:"10"`
	// RequestRetries bounds the repeats of one request.
	RequestRetries uint64 `toml:"request_retries" jsonschema:"minimum=1" default:"3"`
	// RequestRetryBackoffMS is the pause before the first repeat.
	RequestRetryBackoffMS uint64 `toml:"request_retry_backoff_ms" jsonschema:"minimum=1" default:"250"`
	// HistoryHeaderRequestConcurrency bounds parallel requests for old headers.
	HistoryHeaderRequestConcurrency uint64 `toml:"history_header_request_concurrency" jsonschema:"minimum=1" default:"2"`
	// HistoryHeaderRequestBlocks is how many headers one such request asks for.
	HistoryHeaderRequestBlocks uint64 `toml:"history_header_request_blocks" jsonschema:"minimum=1" default:"512"`
	// PersistentRetries keeps trying after the repeats are used up.
	PersistentRetries bool `toml:"persistent_retries" default:"true"`
	// RetryBackoffMaxSeconds bounds the pause between such tries.
	RetryBackoffMaxSeconds uint64 `toml:"retry_backoff_max_seconds" jsonschema:"minimum=1" default:"60"`
	// PeerStoreFlushSeconds is how often known peers are written down.
	PeerStoreFlushSeconds uint64 `toml:"peer_store_flush_seconds" jsonschema:"minimum=1" default:"60"`
	// PeerStoreMaxEntries bounds the known peers.
	PeerStoreMaxEntries uint64 `toml:"peer_store_max_entries" jsonschema:"minimum=1" default:"1024"`
	// ArchiveReconciliationBlocks is how many of the newest final blocks are compared with a
	// history source.
	ArchiveReconciliationBlocks uint64 `toml:"archive_reconciliation_blocks" jsonschema:"minimum=1" default:"1024"`
	// ArchiveReconciliationIntervalSeconds is how often.
	ArchiveReconciliationIntervalSeconds uint64 `toml:"archive_reconciliation_interval_seconds" jsonschema:"minimum=1" default:"300"`
	// HistoryFallbackBlocks is the longest run of newest final blocks that peers may serve as
	// history; 0, the value when absent, lets them serve every gap.
	HistoryFallbackBlocks uint64 `toml:"history_fallback_blocks" jsonschema:"minimum=1"`
	// HandoffOverlapBlocks is how many blocks history and live source both cover.
	HandoffOverlapBlocks uint64 `toml:"handoff_overlap_blocks" jsonschema:"minimum=1" default:"32"`
}
