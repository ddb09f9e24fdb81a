package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"github.com/mattn/go-isatty"
)

// logFilter says which records are kept: a least level for all, and others for the components
// that are named. The zero value keeps everything from info on.
type logFilter struct {
	level      slog.Level
	components map[string]slog.Level
}

// logOff is above every level that is ever logged.
const logOff = slog.Level(100)

// logComponents are the names by which loggers say which component they belong to, as the help of leani lists them.
var logComponents = [...]string{"engine", "history", "sources", "on-demand", "live", "rpc"}

// parseLogFilter reads a filter: parts separated by commas, each a level for everything or
// component=level for one part of the program. Levels are trace, debug, info, warn, error, off.
func parseLogFilter(s string) (logFilter, error) {
	levels := map[string]slog.Level{
		"trace": slog.LevelDebug, "debug": slog.LevelDebug, "info": slog.LevelInfo,
		"warn": slog.LevelWarn, "error": slog.LevelError, "off": logOff,
	}
	f := logFilter{components: map[string]slog.Level{}}
	for part := range strings.SplitSeq(s, ",") {
		component, name, named := strings.Cut(strings.TrimSpace(part), "=")
		if !named {
			name = component
		}
		level, ok := levels[strings.ToLower(name)]
		switch {
		case !ok || named && component == "":
			return logFilter{}, fmt.Errorf("%q is not a level or component=level; levels are trace, debug, info, warn, error, off", part)
		case named && !slices.Contains(logComponents[:], component):
			return logFilter{}, fmt.Errorf("%q is no component; components are %s", component, strings.Join(logComponents[:], ", "))
		case named:
			f.components[component] = level
		default:
			f.level = level
		}
	}
	return f, nil
}

// lowest is the least level that any component logs.
func (f logFilter) lowest() slog.Level {
	lowest := f.level
	for _, level := range f.components {
		lowest = min(lowest, level)
	}
	return lowest
}

// newLogger writes records that pass the filter: coloured text on a terminal, plain text
// elsewhere, or JSON lines.
func newLogger(w io.Writer, asJSON, noColor bool, filter logFilter) *slog.Logger {
	var h slog.Handler
	if asJSON {
		h = slog.NewJSONHandler(&escapingWriter{out: w}, &slog.HandlerOptions{Level: filter.lowest()})
	} else {
		h = plainHandler{tint.NewTextHandler(w, &tint.Options{Level: filter.lowest(), TimeFormat: time.TimeOnly, NoColor: noColor || !isTerminal(w)})}
	}
	return slog.New(&filterHandler{Handler: h, filter: filter, level: filter.level})
}

// componentKey is the attribute by which a logger says which component it belongs to.
const componentKey = "component"

// filterHandler drops records below the level of their component, which a logger gets with
// With("component", name).
type filterHandler struct {
	slog.Handler
	filter logFilter
	level  slog.Level
}

// Enabled tells whether a record of the level is kept.
func (h *filterHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// WithAttrs looks for the component among the attributes.
func (h *filterHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := &filterHandler{Handler: h.Handler.WithAttrs(attrs), filter: h.filter, level: h.level}
	for _, a := range attrs {
		if level, ok := h.filter.components[a.Value.String()]; ok && a.Key == componentKey {
			next.level = level
		}
	}
	return next
}

// WithGroup opens a group below the same level.
func (h *filterHandler) WithGroup(name string) slog.Handler {
	return &filterHandler{Handler: h.Handler.WithGroup(name), filter: h.filter, level: h.level}
}

// isTerminal tells whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
