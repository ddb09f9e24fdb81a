package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// version is what this binary was built from.
type version struct {
	Version  string `json:"version"`            // "0.1.0" of a release, else a pseudo-version or "devel"
	Commit   string `json:"commit,omitempty"`   // full hash
	Modified bool   `json:"modified,omitempty"` // the tree had changes
	Go       string `json:"go"`                 // "go1.26.0"
	Platform string `json:"platform"`           // "linux/amd64"
}

// currentVersion reads what the Go toolchain recorded in the binary.
func currentVersion() version {
	v := version{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if m := info.Main.Version; len(m) > 1 && m[0] == 'v' {
		v.Version = m[1:]
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// String is the version in one line, such as "0.1.0 (linux/amd64, go1.26.0)".
func (v version) String() string { return fmt.Sprintf("%s (%s, %s)", v.Version, v.Platform, v.Go) }

// client is the version as web3_clientVersion gives it, such as "leani/v0.1.0/linux-amd64/go1.26.0".
func (v version) client() string {
	return "leani/v" + v.Version + "/" + strings.ReplaceAll(v.Platform, "/", "-") + "/" + v.Go
}

func newVersion(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArguments,
		RunE: action(func(*cobra.Command, []string) error {
			v := currentVersion()
			if asJSON {
				return printJSON(a.stdout, v)
			}
			_, err := fmt.Fprintf(a.stdout, "leani %s\n", v)
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// printJSON writes a value as one indented JSON document.
func printJSON(w interface{ Write([]byte) (int, error) }, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
