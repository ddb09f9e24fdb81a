package config

// Processor is one entry of [[processors]].
type Processor struct {
	// ID names the factory.
	ID string `toml:"id" jsonschema:"required,minLength=1"`
	// Instance names this use of it; unique in the node.
	Instance string `toml:"instance" jsonschema:"required,minLength=1"`
	// Version is the factory's version.
	Version string `toml:"version" jsonschema:"required,minLength=1"`
	// HistoryControl says who starts work on old blocks.
	HistoryControl string `toml:"history_control" jsonschema:"enum=node_owned,enum=application_subscriptions" default:"node_owned"`
	// HistoryMode fills history by itself or only when asked.
	HistoryMode string `toml:"history_mode" jsonschema:"enum=automatic,enum=on_demand" default:"automatic"`
	// RequireRetainedInput limits work on history to material the node keeps.
	RequireRetainedInput bool `toml:"require_retained_input" default:"false"`
	// StartBlock is the first block the results speak about.
	StartBlock uint64 `toml:"start_block" jsonschema:"required,minimum=0"`
	// Publish is the confidence a block needs before consumers see it.
	Publish string `toml:"publish" jsonschema:"enum=unattested,enum=attested,enum=finalized" default:"unattested"`
	// State sets how private state is kept.
	State StatePolicy `toml:"state" jsonschema:"required"`
	// Artifacts sets which finalized map results are kept.
	Artifacts ArtifactPolicy `toml:"artifacts"`
	// Output sets which results can be queried.
	Output OutputPolicy `toml:"output" jsonschema:"required"`
	// Delivery sets how changes reach consumers.
	Delivery DeliveryPolicy `toml:"delivery" jsonschema:"required"`
	// Checkpoint sets when state is saved whole.
	Checkpoint CheckpointPolicy `toml:"checkpoint" jsonschema:"required"`
	// Undo sets how long blocks can be taken back.
	Undo UndoPolicy `toml:"undo" jsonschema:"required"`
	// Coverage tunes the record of what was processed.
	Coverage CoveragePolicy `toml:"coverage"`
	// LiveGapFill fills gaps that appear while following the head. Absent, they are only
	// announced.
	LiveGapFill *LiveGapFill `toml:"live_gap_fill"`
	// Settings belong to the factory, which checks them.
	Settings map[string]any `toml:"settings"`
}

// StatePolicy is the processors.state table.
type StatePolicy struct {
	// Mode keeps private state block by block, or saves it at checkpoints.
	Mode string `toml:"mode" jsonschema:"required,enum=durable,enum=checkpointed"`
}

// ArtifactPolicy is the processors.artifacts table.
type ArtifactPolicy struct {
	// Mode keeps no artifacts, a window of them, or all.
	Mode string `toml:"mode" jsonschema:"enum=none,enum=window,enum=full" default:"none"`
	// Window is required in window mode and refused otherwise.
	Window *ArtifactWindow `toml:"window"`
}

// ArtifactWindow is the processors.artifacts.window table, with exactly one key.
type ArtifactWindow struct {
	// MaxBlocks keeps the newest blocks.
	MaxBlocks uint64 `toml:"max_blocks" jsonschema:"minimum=1"`
	// MaxAge keeps what is younger.
	MaxAge HumanDuration `toml:"max_age" leani:"nonzero"`
	// MaxBytes keeps the newest up to a size.
	MaxBytes HumanBytes `toml:"max_bytes" leani:"nonzero"`
}

// OutputPolicy is the processors.output table.
type OutputPolicy struct {
	// Mode keeps nothing, the newest row of each key, a window of rows, or all.
	Mode string `toml:"mode" jsonschema:"required,enum=none,enum=latest,enum=window,enum=full"`
	// Window is required in window mode and refused otherwise.
	Window *OutputWindow `toml:"window"`
}

// OutputWindow is the processors.output.window table, with exactly one key.
type OutputWindow struct {
	// MaxBlocks keeps the newest blocks.
	MaxBlocks uint64 `toml:"max_blocks" jsonschema:"minimum=1"`
	// MaxAge keeps what is younger.
	MaxAge HumanDuration `toml:"max_age" leani:"nonzero"`
	// MaxRows keeps the newest rows.
	MaxRows uint64 `toml:"max_rows" jsonschema:"minimum=1"`
	// MaxBytes keeps the newest up to a size.
	MaxBytes HumanBytes `toml:"max_bytes" leani:"nonzero"`
}

// DeliveryPolicy is the processors.delivery table.
type DeliveryPolicy struct {
	// Mode keeps no changes, some, a window, or each until it is acknowledged.
	Mode string `toml:"mode" jsonschema:"required,enum=none,enum=best_effort,enum=window,enum=until_acknowledged"`
	// Emit delivers every change, or only the result of a bounded job.
	Emit string `toml:"emit" jsonschema:"enum=changes,enum=job_result" default:"changes"`
	// MaxBytes bounds kept changes. When absent it is 64 MiB in the modes window and
	// best_effort, and no limit (0) otherwise.
	MaxBytes HumanBytes `toml:"max_bytes" leani:"nonzero"`
	// MaxAge bounds their age. When absent it is 24 hours in the modes window and best_effort,
	// and no limit (0) otherwise.
	MaxAge HumanDuration `toml:"max_age" leani:"nonzero"`
	// OnLimit is what happens at a limit.
	OnLimit string `toml:"on_limit" jsonschema:"enum=pause,enum=fail,enum=expire_and_reset" default:"pause"`
	// Pruning tunes how old changes are removed. Absent, a built-in policy applies.
	Pruning *DeliveryPruning `toml:"pruning"`
	// Consumers are created at start.
	Consumers []Consumer `toml:"consumers"`
}

// DeliveryPruning is the processors.delivery.pruning table. All keys are required.
type DeliveryPruning struct {
	// Interval is the pause between two rounds.
	Interval HumanDuration `toml:"interval" jsonschema:"required" leani:"nonzero"`
	// MinimumBatchBlocks is the least worth a round.
	MinimumBatchBlocks uint64 `toml:"minimum_batch_blocks" jsonschema:"required,minimum=1"`
	// MinimumBatchChanges is the least worth a round.
	MinimumBatchChanges uint64 `toml:"minimum_batch_changes" jsonschema:"required,minimum=1"`
	// MaximumDeleteChanges bounds one round.
	MaximumDeleteChanges uint64 `toml:"maximum_delete_changes" jsonschema:"required,minimum=1"`
	// RetainFinalizedBlocks keeps the changes of so many newest final blocks.
	RetainFinalizedBlocks uint64 `toml:"retain_finalized_blocks" jsonschema:"required,minimum=1"`
	// RetainAcknowledgedAge keeps acknowledged changes for a while.
	RetainAcknowledgedAge HumanDuration `toml:"retain_acknowledged_age" jsonschema:"required"`
}

// Consumer is one entry of processors.delivery.consumers.
type Consumer struct {
	// ID names the consumer; unique within the instance.
	ID string `toml:"id" jsonschema:"required,minLength=1,maxLength=128"`
	// Required keeps changes until this consumer acknowledged them.
	Required bool `toml:"required" jsonschema:"required"`
	// LeaseTTL is how long an idle session stays valid: 1 second to 100 years of 365 days.
	LeaseTTL HumanDuration `toml:"lease_ttl" jsonschema:"required"`
}

// CheckpointPolicy is the processors.checkpoint table.
type CheckpointPolicy struct {
	// Mode saves state never or regularly.
	Mode string `toml:"mode" jsonschema:"required,enum=none,enum=automatic"`
	// Keep is how many checkpoints stay.
	Keep uint64 `toml:"keep" jsonschema:"required,minimum=0"`
}

// UndoPolicy is the processors.undo table.
type UndoPolicy struct {
	// Mode keeps no undo records, or those of blocks that are not final.
	Mode string `toml:"mode" jsonschema:"required,enum=none,enum=unfinalized"`
	// SafetyBlocks keeps them for so many blocks past finality.
	SafetyBlocks uint64 `toml:"safety_blocks" jsonschema:"required,minimum=0"`
}

// CoveragePolicy is the processors.coverage table.
type CoveragePolicy struct {
	// VerificationSegmentBlocks is the length of a segment of compacted coverage.
	VerificationSegmentBlocks uint64 `toml:"verification_segment_blocks" jsonschema:"minimum=1" default:"8192"`
}

// LiveGapFill is the processors.live_gap_fill table.
type LiveGapFill struct {
	// MaxBlocks is the longest gap that is filled.
	MaxBlocks uint64 `toml:"max_blocks" jsonschema:"required,minimum=1,maximum=7200"`
}
