package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leani-go/leani/config"
)

// doctorReport is what doctor --json prints.
type doctorReport struct {
	Valid    bool             `json:"valid"`
	Path     string           `json:"path"`
	Errors   []doctorProblem  `json:"errors"`
	Warnings []config.Warning `json:"warnings"`
	Settings *doctorSettings  `json:"settings,omitempty"` // when valid
}

// doctorProblem is a problem with a message that stands for itself.
type doctorProblem struct {
	config.Problem
	// Message shadows that of the problem: place, field, value, message and fix in one line,
	// or what the system said about an unreadable file.
	Message string `json:"message"`
}

// doctorSettings is a summary of valid settings.
type doctorSettings struct {
	DataDir string         `json:"dataDir"`
	Chain   string         `json:"chain"`
	ChainID uint64         `json:"chainId"`
	Sources []doctorSource `json:"sources"`
	// Live is the kind of the live source; LivePath is the file of a scripted one.
	Live      string `json:"live"`
	LivePath  string `json:"livePath,omitempty"`
	RPC       string `json:"rpc"`
	WebSocket string `json:"webSocket"`
	// HistoricalMode is what becomes of JSON-RPC requests for blocks that are not kept.
	HistoricalMode config.HistoricalMode `json:"historicalMode"`
}

type doctorSource struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"`
	Priority uint16 `json:"priority"`
	Trust    string `json:"trust"` // what its material can claim
	Place    string `json:"place"`
	Folder   string `json:"folder,omitempty"`
}

func newDoctor(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the settings file",
		Long: `Check the settings file and report everything that is wrong with it at once.

Nothing but the file itself is opened: no data directory, no source, no network. The exit code is
3 when the file cannot be read or is invalid.`,
		Args: noArguments,
		RunE: action(func(*cobra.Command, []string) error { return doctor(a, asJSON) }),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func doctor(a *app, asJSON bool) error {
	cfg, err := a.settings()
	if asJSON {
		if printed := printJSON(a.stdout, reportOf(a.configPath, cfg, err)); printed != nil {
			return printed
		}
	}
	if err != nil {
		if asJSON {
			err = fmt.Errorf("%s is invalid", a.configPath) // the details are on standard output
		}
		return &failureError{err, exitInvalid}
	}
	if asJSON {
		return nil
	}
	return printSettings(a, cfg)
}

func reportOf(path string, cfg *config.Config, err error) doctorReport {
	r := doctorReport{Path: path, Errors: []doctorProblem{}, Warnings: []config.Warning{}}
	var invalid *config.Error
	switch {
	case errors.As(err, &invalid):
		for _, p := range invalid.Problems {
			line := p
			if p.Kind == config.Unreadable {
				line.Fix = ""
			}
			r.Errors = append(r.Errors, doctorProblem{p, line.String()})
		}
		return r
	case err != nil:
		r.Errors = append(r.Errors, doctorProblem{Message: err.Error()})
		return r
	}
	r.Valid = true
	r.Warnings = append(r.Warnings, cfg.Warnings...)
	s := &doctorSettings{DataDir: cfg.DataDir, Chain: cfg.Chain.Name, ChainID: cfg.Chain.ChainID, Live: cfg.Sources.Live.Kind, LivePath: cfg.Sources.Live.Path,
		RPC: cfg.RPC.HTTPBind.String(), WebSocket: cfg.RPC.WSBind.String(),
		HistoricalMode: cfg.RPC.HistoricalMode}
	for _, src := range sourcesInOrder(cfg) {
		s.Sources = append(s.Sources, doctorSource{src.ID, string(src.Kind), src.Priority, string(src.Claim()), src.Place(), src.Folder})
	}
	r.Settings = s
	return r
}

// printSettings tells a person what the settings amount to.
func printSettings(a *app, cfg *config.Config) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is valid.\n\n", a.configPath)
	fmt.Fprintf(&b, "  chain     %s, id %d\n", cfg.Chain.Name, cfg.Chain.ChainID)
	fmt.Fprintf(&b, "  data      %s\n", cfg.DataDir)
	for _, s := range sourcesInOrder(cfg) {
		fmt.Fprintf(&b, "  history   %s: %s, priority %d, %s\n", s.ID, s.Kind, s.Priority, s.Place())
	}
	if live := cfg.Sources.Live; live.Path != "" {
		fmt.Fprintf(&b, "  live      %s, %s\n", live.Kind, live.Path)
	}
	fmt.Fprintf(&b, "  JSON-RPC  http://%s\n", cfg.RPC.HTTPBind)
	fmt.Fprintf(&b, "            ws://%s\n", cfg.RPC.WSBind)
	if cfg.RPC.HistoricalMode == config.HistoricalOnDemand {
		b.WriteString("            blocks that are not kept are fetched on demand\n")
	}
	idle, remarks := idleSettings(cfg.Warnings)
	for _, w := range remarks {
		fmt.Fprintf(&b, "\n%s %s\n", w.Field, w.Message)
	}
	if len(idle) > 0 {
		fmt.Fprintf(&b, "\nWithout effect in this build (--json says why): %s.\n", strings.Join(idle, ", "))
	}
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
}
