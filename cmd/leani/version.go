package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// version is what this binary was built from.
type version struct {
	Version  string `json:"version"`            // "0.1.0" of a release, else "devel+" and the commit, or "devel"
	Commit   string `json:"commit,omitempty"`   // full hash
	Modified bool   `json:"modified,omitempty"` // the tree had changes
	Go       string `json:"go"`                 // "go1.26.0"
	Platform string `json:"platform"`           // "linux/amd64"
}

// shownDigits is how many digits of a commit a version shows.
const shownDigits = 12

// currentVersion reads what the Go toolchain recorded in the binary.
func currentVersion() version {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) version {
	v := version{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	m, revision := info.Main.Version, v.Commit
	if r := pseudoRevision(m); revision == "" {
		revision = r // built from the module cache
	}
	switch {
	case strings.HasPrefix(m, "v") && pseudoRevision(m) == "" && !v.Modified:
		v.Version = m[1:]
	case revision != "":
		v.Version += "+" + revision[:min(shownDigits, len(revision))]
	}
	return v
}

// pseudoRevision is the commit in a pseudo-version, such as v0.0.0-20260102030405-0123456789ab; empty
// for other versions.
func pseudoRevision(version string) string {
	version, _, _ = strings.Cut(version, "+")
	revision := version[strings.LastIndexByte(version, '-')+1:]
	if _, err := hex.DecodeString(revision); err != nil || len(revision) != shownDigits || len(revision) == len(version) {
		return ""
	}
	return revision
}

// String is the version in one line, such as "0.1.0 (linux/amd64, go1.26.0)".
func (v version) String() string {
	modified := ""
	if v.Modified {
		modified = ", modified"
	}
	return fmt.Sprintf("%s (%s, %s%s)", v.Version, v.Platform, v.Go, modified)
}

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
