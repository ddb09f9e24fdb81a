package config

// PageCompression names the codec of cold pages.
type PageCompression string

// The page codecs.
const (
	CompressionNone    PageCompression = "none"
	CompressionSnappy  PageCompression = "snappy"
	CompressionDeflate PageCompression = "deflate"
	CompressionZstd    PageCompression = "zstd"
)

// PartialMaterial says what becomes of blocks that a source does not have whole.
type PartialMaterial string

// What becomes of them.
const (
	PartialRefuse PartialMaterial = "refuse"
	PartialKeep   PartialMaterial = "keep"
)

// RawHistory is the [raw_history] table: the chain's own material, kept in sealed files.
type RawHistory struct {
	// Enabled keeps raw history.
	Enabled bool `toml:"enabled" default:"false"`
	// MaximumLogicalBytes bounds the blocks that are kept, counted before compression and
	// without indexes and senders.
	MaximumLogicalBytes HumanBytes `toml:"maximum_logical_bytes" default:"8GiB" leani:"nonzero"`
	// MaximumPhysicalBytes bounds what is kept, counted on disk with indexes and senders.
	MaximumPhysicalBytes HumanBytes `toml:"maximum_physical_bytes" default:"8GiB" leani:"nonzero"`
	// MaximumFrameLogicalBytes bounds one block, counted before compression. A fill stops at
	// a larger one.
	MaximumFrameLogicalBytes HumanBytes `toml:"maximum_frame_logical_bytes" default:"64MiB" leani:"nonzero"`
	// MaximumSegmentLogicalBytes cuts a segment once its blocks reach this size before
	// compression.
	MaximumSegmentLogicalBytes HumanBytes `toml:"maximum_segment_logical_bytes" default:"256MiB" leani:"nonzero"`
	// MaximumSegmentPhysicalBytes cuts a segment once its file reaches this size.
	MaximumSegmentPhysicalBytes HumanBytes `toml:"maximum_segment_physical_bytes" default:"256MiB" leani:"nonzero"`
	// ReaderConnections bounds the heavy log queries that read the store at the same time. They
	// also leave a processor free.
	ReaderConnections int `toml:"reader_connections" jsonschema:"minimum=1" default:"4"`
	// MaximumSourceFrames bounds the blocks asked of a source at once. No effect in this
	// build.
	MaximumSourceFrames int `toml:"maximum_source_frames" jsonschema:"minimum=1" default:"64"`
	// MaximumBufferedFrames bounds the blocks between decoding and writing. No effect in this
	// build.
	MaximumBufferedFrames int `toml:"maximum_buffered_frames" jsonschema:"minimum=1" default:"64"`
	// Compression is the codec of pages that log queries do not touch. An extension of this
	// node.
	Compression PageCompression `toml:"compression" jsonschema:"enum=none,enum=snappy,enum=deflate,enum=zstd" default:"snappy"`
	// Partial says what a fill does with blocks that the sources have not as a whole: end with an
	// error, or keep what there is of them, apart from the history that answers requests. An
	// extension of this node.
	Partial PartialMaterial `toml:"partial" jsonschema:"enum=refuse,enum=keep" default:"refuse"`
}

// ArtifactStorage is the [artifact_storage] table: where finalized results of processors live.
type ArtifactStorage struct {
	// Backend is the main store ("sqlite", the name the schema has for it) or immutable files.
	Backend string `toml:"backend" jsonschema:"enum=sqlite,enum=tiered_segments" default:"sqlite"`
	// SegmentTargetBlocks is how many blocks one artifact file holds.
	SegmentTargetBlocks int `toml:"segment_target_blocks" jsonschema:"minimum=1" default:"1000"`
	// Compression is the codec of artifact files.
	Compression PageCompression `toml:"compression" jsonschema:"enum=none,enum=snappy,enum=deflate" default:"snappy"`
	// MaximumArtifactLogicalBytes bounds the artifact of one block before compression.
	MaximumArtifactLogicalBytes HumanBytes `toml:"maximum_artifact_logical_bytes" default:"16MiB" leani:"nonzero"`
	// MaximumSegmentLogicalBytes bounds an artifact file before compression.
	MaximumSegmentLogicalBytes HumanBytes `toml:"maximum_segment_logical_bytes" default:"256MiB" leani:"nonzero"`
	// MaximumSegmentPhysicalBytes bounds an artifact file on disk.
	MaximumSegmentPhysicalBytes HumanBytes `toml:"maximum_segment_physical_bytes" default:"256MiB" leani:"nonzero"`
	// CompactionInterval is the pause between two rounds of sealing artifacts.
	CompactionInterval HumanMilliseconds `toml:"compaction_interval" default:"30s" leani:"nonzero"`
	// MaximumSegmentsPerCycle bounds the files one round writes.
	MaximumSegmentsPerCycle int `toml:"maximum_segments_per_cycle" jsonschema:"minimum=1" default:"4"`
}
