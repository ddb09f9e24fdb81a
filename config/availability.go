package config

import (
	"fmt"
	"strconv"
	"strings"
)

// availability refuses what the schema knows and this build cannot do, and names what it
// accepts without effect. Each capability that arrives removes its lines here.
func (c *checker) availability() {
	for _, key := range []string{"network", "blocks", "uniswap"} {
		if c.has(key) && c.starter() {
			c.unavailable(key, "write the advanced form: see docs/configuration.md")
		}
	}
	if len(c.config.Processors) > 0 {
		c.unavailable("processors", "write processors = []")
	}
	for _, table := range []string{"artifact_storage", "api.delivery", "budgets.artifacts", "budgets.delivery"} {
		if c.has(table) {
			c.unavailable(table, "remove the table")
		}
	}
	if m := c.config.Budgets.HistoryMaterial.Mode; m != "disabled" && c.has("budgets.history_material.mode") {
		c.unavailable("budgets.history_material.mode", `write "disabled"`)
	}
	for i, s := range c.config.Sources.History {
		if s.Kind == SourceXatu {
			c.unavailable(element("sources.history", i)+".kind", `use an "era_e" or "archive" source`)
		}
	}
	if c.config.Sources.Live.Kind == "p2p" {
		c.unavailable("sources.live.kind", `write "disabled"`)
	}
	if k := c.config.Finality.Kind; k == FinalityBeaconAPI || k == FinalityConsensusP2P {
		c.unavailable("finality.kind", `write "disabled"`)
	}
	c.inactive()
}

const unavailableText = "not available in this build"

func (c *checker) unavailable(at, fix string) {
	c.add(Problem{Kind: Unavailable, Field: at, Value: render(lookup(c.doc.tree, at)), Message: unavailableText, Fix: fix})
}

// inactive warns of settings that are accepted and do nothing: the schema requires them, or they
// limit something that this build never does or that another setting bounds.
func (c *checker) inactive() {
	const (
		noAPI     = "has no effect: this build has no native HTTP interface"
		noRecent  = "has no effect: without a live source there are no recent blocks"
		noChanges = "has no effect: this build has no processors"
		inBytes   = "has no effect: blocks in work are bounded in bytes, by budgets.history_pipeline.maximum_mapped_bytes"
		noSharing = "has no effect: nothing is shared while budgets.history_material.mode is disabled"
		oneRun    = "has no effect: a commit is a run of blocks that ends at a multiple of 1,024, at raw_history.maximum_segment_physical_bytes, when memory requires it, or after about two seconds"
	)
	for _, w := range []Warning{
		{"raw_history.maximum_source_frames", inBytes},
		{"raw_history.maximum_buffered_frames", inBytes},
		{"budgets.history_material.memory_bytes", noSharing},
		{"budgets.history_material.maximum_buffered_frames_per_acquisition", noSharing},
		{"budgets.history_material.minimum_physical_chunk_blocks", noSharing},
		{"budgets.history_material.maximum_overfetch_ratio", noSharing},
		{"budgets.history_pipeline.commit.maximum_blocks", oneRun},
		{"budgets.history_pipeline.commit.maximum_changes", noChanges},
		{"budgets.history_pipeline.commit.maximum_encoded_bytes", oneRun},
		{"budgets.history_pipeline.commit.maximum_delay", oneRun},
		{"budgets.history_pipeline.commit.target_writer_hold", "has no effect: files are written before their commit, which only adds their rows"},
		{"budgets.pending_delta_bytes", noChanges},
		{"rpc.transaction_locator", "is retired and has no effect; remove it"},
		{"api.bind", noAPI},
		{"api.bearer_token_env", noAPI},
		{"api.allow_unauthenticated_remote", noAPI},
		{"api.allowed_hosts", noAPI},
		{"api.allowed_origins", noAPI},
	} {
		if c.has(w.Field) {
			c.config.Warnings = append(c.config.Warnings, w)
		}
	}
	for _, field := range []string{"budgets.recent_raw_hard_bytes", "budgets.recent_raw_soft_bytes", "rpc.minimum_recent_blocks"} {
		if c.has(field) && c.config.Sources.Live.Kind == LiveDisabled {
			c.config.Warnings = append(c.config.Warnings, Warning{field, noRecent})
		}
	}
	for i := range c.config.Sources.History {
		s, at := &c.config.Sources.History[i], element("sources.history", i)
		if s.Kind == SourceArchive && s.Trust != s.Claim() {
			c.config.Warnings = append(c.config.Warnings, Warning{at + ".trust",
				fmt.Sprintf("is %s and counts as %s, the most that an archive can claim", s.Trust, s.Claim())})
		}
		if s.AllowInsecureHTTP && !strings.HasPrefix(s.Endpoint, "http:") {
			c.config.Warnings = append(c.config.Warnings, Warning{at + ".allow_insecure_http", "has no effect: the endpoint is not an http: one"})
		}
	}
	const chunks = "budgets.history_pipeline.maximum_active_chunks"
	if n, workers := c.config.Budgets.HistoryPipeline.MaximumActiveChunks, c.config.Budgets.MapperConcurrency; c.has(chunks) && n < workers {
		c.config.Warnings = append(c.config.Warnings, Warning{chunks,
			fmt.Sprintf("is %d and leaves part of budgets.mapper_concurrency, which is %d, idle", n, workers)})
	}
	if memory := c.config.Budgets.MemoryBytes; memory < LeastMemoryBytes && c.has("budgets.memory_bytes") {
		c.config.Warnings = append(c.config.Warnings, Warning{"budgets.memory_bytes",
			fmt.Sprintf("is %d and counts as %d, the least that a node works with", memory, LeastMemoryBytes)})
	}
	for _, l := range []struct {
		at             string
		written, count uint64
	}{
		{"rpc.max_outbound_bytes", uint64(c.config.RPC.MaxOutboundBytes), c.config.OutboundBytes()},
		{"rpc.max_subscription_event_bytes", uint64(c.config.RPC.MaxSubscriptionEventBytes), c.config.SubscriptionEventBytes()},
	} {
		if l.count < l.written && c.has(l.at) {
			c.config.Warnings = append(c.config.Warnings, Warning{l.at,
				fmt.Sprintf("is %d and counts as %d, an eighth of budgets.memory_bytes", l.written, l.count)})
		}
	}
}

// lookup is the value at a path of the tree that the document's keys produced.
func lookup(tree map[string]any, path string) any {
	var v any = tree
	for part := range strings.SplitSeq(path, ".") {
		name, index, indexed := strings.Cut(strings.TrimSuffix(part, "]"), "[")
		t, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = t[name]
		if indexed {
			list, ok := v.([]any)
			i, err := strconv.Atoi(index)
			if !ok || err != nil || i >= len(list) {
				return nil
			}
			v = list[i]
		}
	}
	return v
}
