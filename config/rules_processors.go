package config

import (
	"fmt"
	"time"
)

// processors checks the policies of each processor. What depends on the chosen factory (known
// ids and versions, settings, block-local or ordered) is checked where factories are known.
func (c *checker) processors() {
	instances := map[string]string{}
	for i := range c.config.Processors {
		p, at := &c.config.Processors[i], element("processors", i)
		if first, taken := instances[p.Instance]; taken && p.Instance != "" {
			c.conflict(at+".instance", p.Instance, "is also "+first, "give each processor its own instance name")
		}
		instances[p.Instance] = at + ".instance"

		c.window(at+".artifacts", p.Artifacts.Mode, "max_blocks", "max_age", "max_bytes")
		c.window(at+".output", p.Output.Mode, "max_blocks", "max_age", "max_rows", "max_bytes")
		c.delivery(at+".delivery", &p.Delivery)

		if p.State.Mode == "checkpointed" && p.Checkpoint.Mode == "none" {
			c.conflict(at+".checkpoint.mode", p.Checkpoint.Mode, "cannot go with checkpointed state", `write "automatic"`)
		}
		if p.Checkpoint.Mode == "automatic" && p.Checkpoint.Keep == 0 {
			c.conflict(at+".checkpoint.keep", p.Checkpoint.Keep, "would keep no checkpoint", "write at least 1")
		}
		if p.Undo.Mode == "none" && p.Publish != "finalized" && c.config.Sources.Live.Kind == "p2p" {
			c.conflict(at+".undo.mode", p.Undo.Mode, "could not take back a reorganised block", `write "unfinalized", or publish = "finalized"`)
		}
		if p.LiveGapFill != nil {
			if p.HistoryMode != "on_demand" {
				c.conflict(at+".live_gap_fill", map[string]any{}, "needs history on demand", `set history_mode = "on_demand"`)
			}
			if p.Delivery.OnLimit != "pause" {
				c.conflict(at+".live_gap_fill", map[string]any{}, "needs delivery that pauses at its limit", `set delivery.on_limit = "pause"`)
			}
		}
		if c.config.ArtifactStorage.Backend == "tiered_segments" && p.Artifacts.Mode == "window" {
			c.conflict(at+".artifacts.mode", p.Artifacts.Mode, "does not work with tiered_segments", `write "full", or artifact_storage.backend = "sqlite"`)
		}
	}
}

// window checks that a window table is there exactly in window mode, with exactly one limit.
func (c *checker) window(at, mode string, limits ...string) {
	table := at + ".window"
	switch present := c.has(table); {
	case mode != "window" && present:
		c.conflict(table, map[string]any{}, "goes only with window mode", `remove it, or set mode = "window"`)
	case mode == "window" && !present:
		c.missing(table, at)
	case present:
		n := 0
		for _, limit := range limits {
			if c.has(table + "." + limit) {
				n++
			}
		}
		if n != 1 {
			c.conflict(table, map[string]any{}, fmt.Sprintf("has %d limits", n), "write exactly one limit")
		}
	}
}

// delivery checks consumers and fills in the limits that depend on the mode.
func (c *checker) delivery(at string, d *DeliveryPolicy) {
	if d.Mode == "window" || d.Mode == "best_effort" {
		if !c.has(at + ".max_bytes") {
			d.MaxBytes = 64 << 20
		}
		if !c.has(at + ".max_age") {
			d.MaxAge = HumanDuration(24 * time.Hour)
		}
	}
	if d.Mode == "none" && len(d.Consumers) > 0 {
		c.conflict(at+".consumers", []any{}, "have nothing to consume in mode none", "remove them, or change the mode")
	}
	ids, required := map[string]bool{}, false
	for i, consumer := range d.Consumers {
		at := element(at+".consumers", i)
		if ids[consumer.ID] {
			c.conflict(at+".id", consumer.ID, "appears twice", "give each consumer its own id")
		}
		ids[consumer.ID] = true
		required = required || consumer.Required
		if consumer.Required && d.Mode != "until_acknowledged" && d.Mode != "none" {
			c.conflict(at+".required", true, "needs delivery until acknowledged", `set delivery.mode = "until_acknowledged", or required = false`)
		}
		if ttl := time.Duration(consumer.LeaseTTL); c.has(at+".lease_ttl") && (ttl < minimumLease || ttl > maximumLease) {
			c.conflict(at+".lease_ttl", ttl.String(), "is out of range", "write a span from 1 second to 36500 days")
		}
	}
	if d.Mode == "until_acknowledged" && !required {
		c.conflict(at+".mode", d.Mode, "has no consumer to wait for", "add a consumer with required = true")
	}
}
