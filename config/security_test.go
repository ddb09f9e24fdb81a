package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSecurityPage: the page for operators says whose part TLS, authentication and limits for each client are, that limits are
// not isolation, and names settings that there are.
//
// SEC-015
func TestSecurityPage(t *testing.T) {
	page, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	reference, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"## Limits are not isolation", "- TLS.", "- Authentication.", "- Limits for each client", "monitoring"} {
		if !strings.Contains(string(page), part) {
			t.Errorf("the page lacks %q", part)
		}
	}
	var named []string
	for _, match := range regexp.MustCompile("`(?:rpc|api)\\.([a-z_]+)").FindAllStringSubmatch(string(page), -1) {
		named = append(named, match[1])
		if !strings.Contains(string(reference), "| `"+match[1]+"` |") {
			t.Errorf("there is no setting %s", match[1])
		}
	}
	for _, want := range []string{"http_bind", "ws_bind", "allow_unauthenticated_remote", "allowed_origins"} {
		if !slices.Contains(named, want) {
			t.Errorf("the page does not name %s", want)
		}
	}
}
