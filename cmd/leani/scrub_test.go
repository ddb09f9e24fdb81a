package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// findings passes on the messages of a log about damaged files.
type findings chan string

func (f findings) Enabled(context.Context, slog.Level) bool { return true }
func (f findings) WithAttrs([]slog.Attr) slog.Handler       { return f }
func (f findings) WithGroup(string) slog.Handler            { return f }
func (f findings) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "is damaged") {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "file" {
				f <- a.Value.String()
			}
			return true
		})
	}
	return nil
}

// A node that serves finds a damaged file by itself, before anybody asks for it.
func TestServeFindsDamage(t *testing.T) {
	t.Parallel()
	l := newLab(t, bundled(t))
	l.must(fillArgs(bundledSpans[0])...)
	folder := filepath.Join(l.data(), "segments", "data")
	name := readDir(t, folder)[0]
	content := readFile(t, filepath.Join(folder, name))
	content[len(content)/3] ^= 1
	writeFile(t, filepath.Join(folder, name), content)

	n := l.open(false)
	found := make(findings, 10)
	n.log = slog.New(found)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- n.serve(ctx, func(string) {}) }()
	select {
	case got := <-found:
		if got != "data/"+name {
			t.Errorf("%s is reported, %s is damaged", got, name)
		}
	case <-time.After(time.Minute): // a failure, not a measure
		t.Error("the damage is not found")
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if st := n.history.ScrubStatus(); st.Findings != 1 {
		t.Errorf("%+v", st)
	}
}
