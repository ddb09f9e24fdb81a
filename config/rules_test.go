package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRules proves the rules between keys. Each case changes a valid document; wrong is the
// key that must be reported with its conflict, or "" when the change must stay without problem
// (other than one of a missing capability).
func TestRules(t *testing.T) {
	const (
		full      = "everything"
		raw       = "raw-history"
		processor = `processors[0].`
	)
	for _, c := range []struct {
		rule, document, changes, wrong string
	}{
		{"CFG-330 API beyond loopback", full, `api.bind = "0.0.0.0:1"`, "api.bind"},
		{"CFG-330 with token", full, `api.bind = "0.0.0.0:1"; api.bearer_token_env = "TOKEN"`, ""},
		{"CFG-330 behind a proxy", full, `api.bind = "[::]:1"; api.allow_unauthenticated_remote = true`, ""},
		{"CFG-332 HTTP beyond loopback", raw, `rpc.http_bind = "10.0.0.1:1"`, "rpc.http_bind"},
		{"CFG-332 WebSocket beyond loopback", raw, `rpc.ws_bind = "[2001:db8::1]:1"`, "rpc.ws_bind"},
		{"CFG-332 behind a proxy", raw, `rpc.http_bind = "10.0.0.1:1"; rpc.allow_unauthenticated_remote = true`, ""},
		{"CFG-332 mapped loopback", raw, `rpc.http_bind = "[::ffff:127.0.0.1]:1"`, ""},
		{"SEC-002 one setting does not open the other", raw, `rpc.http_bind = "10.0.0.1:1"; api.allow_unauthenticated_remote = true`, "rpc.http_bind"},
		{"listeners differ", raw, `rpc.ws_bind = "127.0.0.1:8545"`, "rpc.ws_bind"},
		{"listeners differ from the API", raw, `api.bind = "127.0.0.1:8546"`, "api.bind"},
		{"ports of the system's choice do not collide", raw, `rpc.http_bind = "127.0.0.1:0"; rpc.ws_bind = "127.0.0.1:0"`, ""},
		{"CFG-333", raw, `rpc.max_outbound_bytes = "1MiB"; rpc.max_subscription_event_bytes = "2MiB"`, "rpc.max_outbound_bytes"},
		{"CFG-333 equal", raw, `rpc.max_outbound_bytes = "2MiB"; rpc.max_subscription_event_bytes = "2MiB"`, ""},
		{"scripted without a path", raw, `sources.live.kind = "scripted"`, "sources.live.path"},
		{"scripted", raw, `sources.live.kind = "scripted"; sources.live.path = "events.jsonl"`, ""},
		{"path of no script", raw, `sources.live.path = "events.jsonl"`, "sources.live.path"},
		{"CFG-334", raw, `budgets.recent_raw_soft_bytes = 2; budgets.recent_raw_hard_bytes = 1`, "budgets.recent_raw_soft_bytes"},
		{"CFG-334 equal", raw, `budgets.recent_raw_soft_bytes = 2; budgets.recent_raw_hard_bytes = 2`, ""},
		{"history is part of delivery", full, `budgets.delivery = {maximum_retained_bytes = "1MiB", maximum_history_retained_bytes = "2MiB"}`, "budgets.delivery.maximum_history_retained_bytes"},

		{"source ids are unique", full, `sources.history[1].id = "xatu"`, "sources.history[1].id"},
		{"CFG-357 chunk_blocks", full, `sources.history[0].chunk_blocks = 1500`, "sources.history[0].chunk_blocks"},
		{"CFG-357 blobs_chunk_blocks", full, `sources.history[0].blobs_chunk_blocks = 1500`, "sources.history[0].blobs_chunk_blocks"},
		{"CFG-358 xatu key on an archive", full, `sources.history[1].batch_rows = 10`, "sources.history[1].batch_rows"},
		{"CFG-358 xatu key on era files", full, `sources.history[2].chunk_blocks = 1000`, "sources.history[2].chunk_blocks"},
		{"CFG-358 archive key on xatu", full, `sources.history[0].manifest = "m.json"`, "sources.history[0].manifest"},
		{"CFG-358 era key on an archive", full, `sources.history[1].endpoint = "file:era/"`, "sources.history[1].endpoint"},
		{"xatu is Mainnet only", full, `chain.chain_id = 11155111`, "sources.history[0].kind"},
		{"plain HTTP within this machine", full, `sources.history[2].endpoint = "http://127.0.0.1:80/era/"`, ""},
		{"SRC-025 plain HTTP elsewhere", full, `sources.history[2].endpoint = "http://10.0.0.1/era/"`, "sources.history[2].endpoint"},
		{"SRC-025 allowed", full, `sources.history[2].endpoint = "http://10.0.0.1/era/"; sources.history[2].allow_insecure_http = true`, ""},

		{"live needs finality", full, `finality = {kind = "disabled"}`, "sources.live.kind"},
		{"discovery ports differ", full, `sources.live.discovery_port = 9200`, "sources.live.discv5_port"},
		{"discovery ports of the system's choice", full, `sources.live.discovery_port = 0; sources.live.discv5_port = 0`, ""},
		{"finality needs a checkpoint", full, `finality.checkpoint = ""`, "finality.checkpoint"},
		{"agreement within endpoints", full, `finality.minimum_agreement = 3`, "finality.minimum_agreement"},
		{"endpoints differ", full, `finality.endpoints = ["https://one.example/", "https://one.example/"]`, "finality.endpoints[1]"},
		{"light client peers", full, `finality.kind = "consensus_p2p"; finality.minimum_peers = 25`, "finality.minimum_peers"},
		{"light client keys", full, `finality.minimum_peers = 2`, "finality.minimum_peers"},
		{"CFG-359 CFG-360 historical only", raw, `sources.live.kind = "disabled"; finality.kind = "disabled"`, ""},
		{"disabled finality with an empty checkpoint", raw, `finality.checkpoint = ""; finality.endpoints = []`, ""},

		{"CFG-340 instances are unique", full, `processors = [{instance = "a"}, {instance = "a"}]`, "processors[1].instance"},
		{"CFG-340 consumers are unique", full, processor + `delivery.consumers = [{id = "a", required = true, lease_ttl = 5}, {id = "a", required = true, lease_ttl = 5}]`, processor + "delivery.consumers[1].id"},
		{"CFG-342 window required", full, processor + `artifacts.mode = "window"`, processor + "artifacts.window"},
		{"CFG-342 window refused", full, processor + `artifacts.window = {max_blocks = 5}`, processor + "artifacts.window"},
		{"CFG-342 window", full, processor + `artifacts = {mode = "window", window = {max_blocks = 5}}`, ""},
		{"CFG-343 window required", full, processor + `output.mode = "window"`, processor + "output.window"},
		{"CFG-343 window refused", full, processor + `output.window = {max_rows = 5}`, processor + "output.window"},
		{"CFG-343 no limit", full, processor + `output = {mode = "window", window = {}}`, processor + "output.window"},
		{"CFG-343 window", full, processor + `output = {mode = "window", window = {max_rows = 5}}`, ""},
		{"CFG-344 required consumer", full, processor + `delivery.mode = "window"`, processor + "delivery.consumers[0].required"},
		{"CFG-344 optional consumer", full, processor + `delivery = {mode = "window", consumers = [{id = "a", required = false, lease_ttl = 5}]}`, ""},
		{"CFG-345 nothing to consume", full, processor + `delivery = {mode = "none", consumers = [{id = "a", required = false, lease_ttl = 5}]}`, processor + "delivery.consumers"},
		{"nobody acknowledges", full, processor + `delivery = {mode = "until_acknowledged"}`, processor + "delivery.mode"},
		{"gap fill needs on_demand", full, processor + `history_mode = "automatic"`, processor + "live_gap_fill"},
		{"gap fill needs pause", full, processor + `delivery.on_limit = "fail"`, processor + "live_gap_fill"},
		{"CFG-347 too long", full, processor + `live_gap_fill.max_blocks = 7201`, processor + "live_gap_fill.max_blocks"},
		{"CFG-352 undo none", full, processor + `undo = {mode = "none", safety_blocks = 0}`, processor + "undo.mode"},
		{"CFG-352 undo none without live", full, processor + `undo.mode = "none"; sources.live.kind = "disabled"`, ""},
		{"CFG-353 finalized needs no undo", full, processor + `publish = "finalized"; ` + processor + `undo = {mode = "none", safety_blocks = 0}`, ""},
		{"CFG-354 window with defaults", full, processor + `delivery = {mode = "window"}`, ""},
		{"CFG-355 pruning", full, processor + `delivery.pruning = {interval = "30s"}`, processor + "delivery.pruning.retain_acknowledged_age"},
		{"CFG-356 batch without compression", full, ``, ""},
		{"CFG-356 batch without a limit", full, `api.delivery.live_batches = {target_encoded_bytes = "1KiB"}`, "api.delivery.live_batches.maximum_events"},
		{"CFG-378 a bare word for a table", full, processor + `output = "latest"`, processor + "output"},
		{"checkpointed state", full, processor + `checkpoint = {mode = "none", keep = 1}`, processor + "checkpoint.mode"},
		{"checkpoints are kept", full, processor + `checkpoint.keep = 0`, processor + "checkpoint.keep"},
		{"tiered artifacts", full, `artifact_storage.backend = "tiered_segments"; ` + processor + `artifacts = {mode = "window", window = {max_blocks = 1}}`, processor + "artifacts.mode"},

		{"empty processors with raw history", raw, `processors = []`, ""},
		{"empty processors without", raw, `raw_history.enabled = false`, "processors"},
		{"genesis on Mainnet", raw, `chain.genesis = "genesis.json"`, "chain.genesis"},
		{"genesis elsewhere", raw, `chain = {name = "lab", chain_id = 424242, genesis = "genesis.json.gz"}`, ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			doc := loadTree(t, c.document)
			doc.change(t, c.changes)
			_, problems := check(t, doc.text(t))
			problems = slices.DeleteFunc(problems, func(p Problem) bool { return p.Kind == Unavailable })
			switch found := slices.ContainsFunc(problems, func(p Problem) bool { return p.Field == c.wrong }); {
			case c.wrong == "" && len(problems) > 0:
				t.Errorf("refused: %v", problems)
			case c.wrong != "" && !found:
				t.Errorf("%s was not reported: %v", c.wrong, problems)
			}
		})
	}
}

// TestAvailability: what the schema has and this build does not is refused by name, with the
// way out. SRC-001: all kinds are known.
func TestAvailability(t *testing.T) {
	for _, c := range []struct{ document, changes, field string }{
		{"raw-history", `sources.history = [{id = "x", kind = "xatu", priority = 1, trust = "trusted_dataset"}]`, "sources.history[0].kind"},
		{"raw-history", `artifact_storage = {}`, "artifact_storage"},
		{"raw-history", `api.delivery = {}`, "api.delivery"},
		{"raw-history", `budgets.artifacts = {}`, "budgets.artifacts"},
		{"raw-history", `budgets.delivery = {}`, "budgets.delivery"},
		{"raw-history", `budgets.history_material = {mode = "enabled"}`, "budgets.history_material.mode"},
		{"everything", ``, "processors"},
		{"everything", ``, "sources.live.kind"},
		{"everything", ``, "finality.kind"},
		{"everything", `finality = {kind = "consensus_p2p", checkpoint = "0x` + strings.Repeat("1f", 32) + `", checkpoint_slot = 1}`, "finality.kind"},
		{"starter", ``, "network"},
		{"starter", ``, "blocks"},
		{"starter-uniswap", ``, "uniswap"},
	} {
		doc := loadTree(t, c.document)
		doc.change(t, c.changes)
		_, problems := check(t, doc.text(t))
		found := false
		for _, p := range problems {
			if p.Kind != Unavailable {
				t.Errorf("%s %s: %v", c.document, c.changes, p)
			}
			if p.Field == c.field && p.Fix != "" && strings.Contains(p.Message, "not available in this build") {
				found = true
			}
		}
		if !found {
			t.Errorf("%s %s: %s not refused: %v", c.document, c.changes, c.field, problems)
		}
	}
}

// TestWarnings: required keys without effect are named, and so are limits of what is missing and
// values that count as another one.
func TestWarnings(t *testing.T) {
	doc := loadTree(t, "raw-history")
	doc.set("rpc.transaction_locator", true)
	doc.set("raw_history.maximum_logical_bytes", int64(5))
	doc.set("budgets.memory_bytes", int64(5))
	doc.change(t, `budgets.history_pipeline = {commit = {maximum_delay = "1s"}}`)
	cfg, problems := check(t, doc.text(t))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var got []string
	for _, w := range cfg.Warnings {
		got = append(got, w.Field)
	}
	want := []string{"budgets.history_pipeline.commit.maximum_delay", "budgets.pending_delta_bytes", "rpc.transaction_locator", "api.bind", "budgets.recent_raw_hard_bytes", "budgets.recent_raw_soft_bytes", "rpc.minimum_recent_blocks", "budgets.memory_bytes"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Several sources, mirrors and archives are accepted; what counts as another value is named.
//
// SRC-004, SRC-005, CFG-099, CFG-105
func TestSources(t *testing.T) {
	doc := loadTree(t, "raw-history")
	doc.change(t, `sources.history = [`+
		`{id = "a", kind = "era_e", priority = 1, trust = "verified_material", endpoint = "https://mirror.example/secret/"}, `+
		`{id = "b", kind = "era_e", priority = 0, trust = "trusted_dataset", endpoint = "file:b/", allow_insecure_http = true}, `+
		`{id = "c", kind = "archive", priority = 65535, trust = "verified_material", manifest = "c.json"}]`)
	cfg, problems := check(t, doc.text(t))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var warned []string
	for _, w := range cfg.Warnings {
		if strings.HasPrefix(w.Field, "sources.") {
			warned = append(warned, w.Field)
		}
	}
	if want := []string{"sources.history[1].allow_insecure_http", "sources.history[2].trust"}; !slices.Equal(warned, want) {
		t.Errorf("warnings about %v, want %v", warned, want)
	}
	for i, want := range []struct {
		place  string
		mirror bool
		claim  Trust
	}{
		{"https://mirror.example/…", true, VerifiedMaterial},
		{"/b", false, TrustedDataset},
		{"c.json", false, TrustedDataset},
	} {
		s := &cfg.Sources.History[i]
		if !strings.HasSuffix(s.Place(), want.place) || s.Mirror() != want.mirror || s.Claim() != want.claim {
			t.Errorf("source %d: %s, mirror %t, claim %s", i, s.Place(), s.Mirror(), s.Claim())
		}
	}
}

// What WebSockets may have queued is part of the memory of the process: more than an eighth of it counts as that, with a warning where it
// was written.
func TestOutboundBytes(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		changes         string
		outbound, event uint64
		warned          []string
	}{
		{`budgets.memory_bytes = 536870912`, 64 * mib, 16 * mib, nil},
		{`budgets.memory_bytes = 268435456`, 32 * mib, 16 * mib, nil},
		{`budgets.memory_bytes = 1`, 32 * mib, 16 * mib, nil},
		{`budgets.memory_bytes = 268435456; rpc.max_outbound_bytes = "33MiB"`, 32 * mib, 16 * mib, []string{"rpc.max_outbound_bytes"}},
		{`budgets.memory_bytes = 536870912; rpc.max_outbound_bytes = "256MiB"; rpc.max_subscription_event_bytes = "128MiB"`, 64 * mib, 64 * mib,
			[]string{"rpc.max_outbound_bytes", "rpc.max_subscription_event_bytes"}},
		{`budgets.memory_bytes = 4294967296; rpc.max_outbound_bytes = "256MiB"; rpc.max_subscription_event_bytes = "128MiB"`, 256 * mib, 128 * mib, nil},
	} {
		doc := loadTree(t, "raw-history")
		doc.change(t, c.changes)
		cfg, problems := check(t, doc.text(t))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		var warned []string
		for _, w := range cfg.Warnings {
			if strings.HasPrefix(w.Field, "rpc.max_") {
				warned = append(warned, w.Field)
			}
		}
		if got, event := cfg.OutboundBytes(), cfg.SubscriptionEventBytes(); got != c.outbound || event != c.event || !slices.Equal(warned, c.warned) {
			t.Errorf("%s: got %d and %d, warnings about %v", c.changes, got, event, warned)
		}
	}
}

// A written limit of chunks is kept as it is, with a warning where it leaves workers idle.
// CFG-079
func TestActiveChunks(t *testing.T) {
	for _, c := range []struct {
		changes string
		want    int
		warned  bool
	}{
		{`budgets.mapper_concurrency = 2`, 4, false},
		{`budgets.mapper_concurrency = 9`, 9, false},
		{`budgets.mapper_concurrency = 9; budgets.history_pipeline = {maximum_active_chunks = 3}`, 3, true},
		{`budgets.mapper_concurrency = 2; budgets.history_pipeline = {maximum_active_chunks = 30}`, 30, false},
	} {
		doc := loadTree(t, "raw-history")
		doc.change(t, c.changes)
		cfg, problems := check(t, doc.text(t))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		warned := slices.ContainsFunc(cfg.Warnings, func(w Warning) bool { return w.Field == "budgets.history_pipeline.maximum_active_chunks" })
		if got := cfg.Budgets.HistoryPipeline.MaximumActiveChunks; got != c.want || warned != c.warned {
			t.Errorf("%s: got %d, warned %t", c.changes, got, warned)
		}
	}
}

// CFG-354: the limits of a delivery window depend on the mode when they are absent.
func TestDeliveryDefaults(t *testing.T) {
	for mode, want := range map[string]string{
		"window": "64MiB 24h0m0s", "best_effort": "64MiB 24h0m0s", "none": "0B 0s", "until_acknowledged": "0B 0s",
	} {
		doc := loadTree(t, "everything")
		doc.change(t, `processors[0].delivery = {mode = "`+mode+`"}`)
		cfg, _ := check(t, doc.text(t))
		d := cfg.Processors[0].Delivery
		if got := fmt.Sprintf("%v %v", d.MaxBytes, time.Duration(d.MaxAge)); got != want {
			t.Errorf("%s: got %s, want %s", mode, got, want)
		}
	}
}
