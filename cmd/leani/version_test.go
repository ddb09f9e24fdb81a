package main

import (
	"runtime/debug"
	"testing"
)

// A release is called by its tag; everything else by the commit, as far as it is known.
func TestVersionOf(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: commit}, {Key: "vcs.modified", Value: modified}}
	}
	for _, c := range []struct {
		module   string
		settings []debug.BuildSetting
		want     string
	}{
		{"(devel)", nil, "devel"},
		{"", nil, "devel"},
		{"(devel)", vcs("false"), "devel+0123456789ab"},
		{"v0.0.0-20260102030405-0123456789ab", vcs("false"), "devel+0123456789ab"},
		{"v0.0.0-20260102030405-0123456789ab+dirty", vcs("true"), "devel+0123456789ab"},
		{"v0.0.0-20260102030405-0123456789ab", nil, "devel+0123456789ab"},
		{"v0.3.0", vcs("false"), "0.3.0"},
		{"v0.3.0", nil, "0.3.0"},
		{"v0.3.0-rc.1", vcs("false"), "0.3.0-rc.1"},
		{"v0.3.0+dirty", vcs("true"), "devel+0123456789ab"},
	} {
		if got := versionOf(&debug.BuildInfo{Main: debug.Module{Version: c.module}, Settings: c.settings}).Version; got != c.want {
			t.Errorf("%s: got %s, want %s", c.module, got, c.want)
		}
	}
}
