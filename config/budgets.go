package config

// LeastMemoryBytes is what a node needs at all: two runs of blocks being built, and a response.
// A smaller budgets.memory_bytes is accepted with a warning and counts as this much.
const LeastMemoryBytes = 256 << 20

// outboundShare is the part of budgets.memory_bytes that the notifications of WebSockets may take.
const outboundShare = 8

// OutboundBytes is what counts as rpc.max_outbound_bytes: no more than an eighth of budgets.memory_bytes.
func (c *Config) OutboundBytes() uint64 {
	return min(uint64(c.RPC.MaxOutboundBytes), max(c.Budgets.MemoryBytes, LeastMemoryBytes)/outboundShare)
}

// SubscriptionEventBytes is what counts as rpc.max_subscription_event_bytes: no more than OutboundBytes.
func (c *Config) SubscriptionEventBytes() uint64 {
	return min(uint64(c.RPC.MaxSubscriptionEventBytes), c.OutboundBytes())
}

// Budgets is the [budgets] table.
type Budgets struct {
	// MemoryBytes bounds the memory of the whole process, up to a fixed overhead that does
	// not grow with the length of a range. Less than 256 MiB counts as 256 MiB.
	MemoryBytes uint64 `toml:"memory_bytes" jsonschema:"required,minimum=1"`
	// TemporaryDiskBytes bounds unfinished files below the data directory together. A fill that
	// needs more stops.
	TemporaryDiskBytes uint64 `toml:"temporary_disk_bytes" jsonschema:"required,minimum=1"`
	// PendingDeltaBytes bounds results that are computed and not yet committed.
	PendingDeltaBytes uint64 `toml:"pending_delta_bytes" jsonschema:"required,minimum=1"`
	// RecentRawSoftBytes is the size of the recent window at which old blocks start to go.
	RecentRawSoftBytes uint64 `toml:"recent_raw_soft_bytes" jsonschema:"required,minimum=1"`
	// RecentRawHardBytes is the size the recent window never passes.
	RecentRawHardBytes uint64 `toml:"recent_raw_hard_bytes" jsonschema:"required,minimum=1"`
	// SourceConcurrency bounds parallel reads from history sources.
	SourceConcurrency int `toml:"source_concurrency" jsonschema:"required,minimum=1"`
	// MapperConcurrency bounds parallel decoding, verification and mapping.
	MapperConcurrency int `toml:"mapper_concurrency" jsonschema:"required,minimum=1"`
	// HistoryMaterial sets how processors share what one of them acquired.
	HistoryMaterial HistoryMaterial `toml:"history_material"`
	// HistoryPipeline bounds the work between source and commit.
	HistoryPipeline HistoryPipeline `toml:"history_pipeline"`
	// Store bounds the store as a whole.
	Store StoreBudget `toml:"store"`
	// Artifacts bounds finalized results of processors.
	Artifacts ArtifactBudget `toml:"artifacts"`
	// Delivery bounds changes kept for consumers.
	Delivery DeliveryBudget `toml:"delivery"`
}

// HistoryMaterial is the [budgets.history_material] table.
type HistoryMaterial struct {
	// Mode turns sharing off, measures what it would save, or turns it on.
	Mode string `toml:"mode" jsonschema:"enum=disabled,enum=observe,enum=enabled" default:"disabled"`
	// MemoryBytes bounds shared material in memory.
	MemoryBytes HumanBytes `toml:"memory_bytes" default:"256MiB" leani:"nonzero"`
	// MaximumBufferedFramesPerAcquisition bounds the blocks one acquisition holds.
	MaximumBufferedFramesPerAcquisition int `toml:"maximum_buffered_frames_per_acquisition" jsonschema:"minimum=1" default:"256"`
	// MinimumPhysicalChunkBlocks is the shortest run worth an acquisition of its own.
	MinimumPhysicalChunkBlocks int `toml:"minimum_physical_chunk_blocks" jsonschema:"minimum=1" default:"1000"`
	// MaximumOverfetchRatio bounds fetched over requested material.
	MaximumOverfetchRatio float64 `toml:"maximum_overfetch_ratio" jsonschema:"minimum=1" default:"2"`
}

// HistoryPipeline is the [budgets.history_pipeline] table.
type HistoryPipeline struct {
	// MaximumActiveChunks bounds the runs of blocks in work at once. When absent, it is
	// budgets.mapper_concurrency where that is above 4.
	MaximumActiveChunks int `toml:"maximum_active_chunks" jsonschema:"minimum=1" default:"4"`
	// MaximumMappedBytes bounds decoded material between source and commit.
	MaximumMappedBytes HumanBytes `toml:"maximum_mapped_bytes" default:"256MiB" leani:"nonzero"`
	// Commit bounds one commit of history.
	Commit HistoryCommit `toml:"commit"`
}

// HistoryCommit is the [budgets.history_pipeline.commit] table. The limit that is reached first
// ends a commit.
type HistoryCommit struct {
	// MaximumBlocks bounds the blocks of a commit. No effect in this build.
	MaximumBlocks int `toml:"maximum_blocks" jsonschema:"minimum=1" default:"256"`
	// MaximumChanges bounds the change rows of a commit. No effect in this build.
	MaximumChanges int `toml:"maximum_changes" jsonschema:"minimum=1" default:"50000"`
	// MaximumEncodedBytes bounds the encoded size of a commit. No effect in this build.
	MaximumEncodedBytes HumanBytes `toml:"maximum_encoded_bytes" default:"32MiB" leani:"nonzero"`
	// MaximumDelay bounds how long a finished block waits for its commit. No effect in this
	// build.
	MaximumDelay HumanMilliseconds `toml:"maximum_delay" default:"250ms" leani:"nonzero"`
	// TargetWriterHold is how long a commit may keep other writers waiting. No effect in this
	// build.
	TargetWriterHold HumanMilliseconds `toml:"target_writer_hold" default:"100ms" leani:"nonzero"`
}

// StoreBudget is the [budgets.store] table.
type StoreBudget struct {
	// MaximumPhysicalBytes refuses writes that would take the store past this size on disk,
	// database and segment files together.
	// 0, the value when absent, sets no limit.
	MaximumPhysicalBytes HumanBytes `toml:"maximum_physical_bytes" leani:"nonzero"`
}

// ArtifactBudget is the [budgets.artifacts] table. Absent limits are 0 and limit nothing.
type ArtifactBudget struct {
	// MaximumRetainedBytes bounds kept artifacts.
	MaximumRetainedBytes HumanBytes `toml:"maximum_retained_bytes" leani:"nonzero"`
	// MaximumPendingBytes bounds artifacts that are not sealed yet.
	MaximumPendingBytes HumanBytes `toml:"maximum_pending_bytes" leani:"nonzero"`
}

// DeliveryBudget is the [budgets.delivery] table. Absent limits are 0 and limit nothing.
type DeliveryBudget struct {
	// MaximumRetainedBytes bounds all changes kept for consumers.
	MaximumRetainedBytes HumanBytes `toml:"maximum_retained_bytes" leani:"nonzero"`
	// MaximumHistoryRetainedBytes bounds the part of them that backfills produced.
	MaximumHistoryRetainedBytes HumanBytes `toml:"maximum_history_retained_bytes" leani:"nonzero"`
}
