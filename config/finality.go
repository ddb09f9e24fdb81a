package config

// The kinds of finality sources.
const (
	FinalityBeaconAPI    = "beacon_api"    // beacon nodes over HTTP
	FinalityConsensusP2P = "consensus_p2p" // a light client on the consensus network
	FinalityDisabled     = "disabled"      // nothing is ever verified as final
)

// Finality is the [finality] table. With kind "disabled" the other keys may be absent (an
// extension of this node).
type Finality struct {
	// Kind is the kind of finality source.
	Kind string `toml:"kind" jsonschema:"required,enum=beacon_api,enum=consensus_p2p,enum=disabled"`
	// Checkpoint is the trusted consensus block root to start from. It may be empty when
	// finality is disabled.
	Checkpoint string `toml:"checkpoint" jsonschema:"pattern=^(0x[0-9a-fA-F]{64})?$"`
	// CheckpointSlot is the slot of that block.
	CheckpointSlot uint64 `toml:"checkpoint_slot" jsonschema:"minimum=1"`
	// Endpoints are base URLs of beacon nodes.
	Endpoints []string `toml:"endpoints"`
	// MinimumAgreement is how many endpoints must agree on a final head.
	MinimumAgreement uint64 `toml:"minimum_agreement" jsonschema:"minimum=1" default:"1"`
	// Bootnodes replaces the built-in list of consensus bootnodes; consensus_p2p only.
	Bootnodes []string `toml:"bootnodes"`
	// MinimumPeers is how many consensus peers are needed; consensus_p2p only.
	MinimumPeers uint64 `toml:"minimum_peers" jsonschema:"minimum=0" default:"1"`
	// DiscoveryPort is the UDP port of consensus discovery; consensus_p2p only.
	DiscoveryPort uint16 `toml:"discovery_port" jsonschema:"minimum=0,maximum=65535" default:"9000"`
}
