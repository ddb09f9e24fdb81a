package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// A filter sets one level for everything and others for components.
func TestLogFilter(t *testing.T) {
	for _, c := range []struct{ filter, want string }{
		{"info", "main-info history-info rpc-info"},
		{"warn,history=debug", "history-debug history-info"},
		{"history=off", "main-info rpc-info"},
		{"off", ""},
		{"debug,rpc=error,history=info", "main-debug main-info history-info"},
	} {
		filter, err := parseLogFilter(c.filter)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		log := newLogger(&out, true, true, filter)
		for _, component := range []string{"main", "history", "rpc"} {
			l := log
			if component != "main" {
				l = log.With(componentKey, component)
			}
			l.Debug(component + "-debug")
			l.Info(component + "-info")
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			var record struct{ Msg string }
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			got = append(got, record.Msg)
		}
		if fmt.Sprint(got) != "["+c.want+"]" {
			t.Errorf("%s: got %v, want %s", c.filter, got, c.want)
		}
	}
	if _, err := parseLogFilter("foo=debug"); err == nil || err.Error() != `"foo" is no component; components are engine, history, sources, on-demand, live, rpc` {
		t.Errorf("got %v", err)
	}
	for _, bad := range []string{"", "loud", "history=", "=info", "info,", "history=loud", "foo=debug", "RPC=debug"} {
		if _, err := parseLogFilter(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// Text logs have no colours unless they go to a terminal.
func TestPrettyLogIsPlainInFiles(t *testing.T) {
	var out bytes.Buffer
	newLogger(&out, false, false, logFilter{}).Info("listening", "url", "http://127.0.0.1:8545")
	if got := out.String(); !strings.HasSuffix(got, "INF listening url=http://127.0.0.1:8545\n") || strings.Contains(got, "\x1b") {
		t.Errorf("got %q", got)
	}
}
