package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leani-go/leani/chain"
)

// smallSegments makes commits frequent, so that a run has many, however fast the machine is.
func (l *lab) smallSegments() {
	l.tb.Helper()
	l.set("raw_history", "maximum_segment_physical_bytes", `"1MiB"`)
	l.set("budgets", "mapper_concurrency", "1")
	l.set("budgets", "source_concurrency", "1")
}

// running is a command that was started.
type running struct {
	*exec.Cmd
	exited   chan struct{} // closed when it has ended
	out, err bytes.Buffer  // final then
}

// start starts a command.
func (l *lab) start(args ...string) *running {
	l.tb.Helper()
	r := &running{Cmd: l.command(args...), exited: make(chan struct{})}
	r.Stdout, r.Stderr = &r.out, &r.err
	if err := r.Start(); err != nil {
		l.tb.Fatal(err)
	}
	go func() { // ends with the process
		_ = r.Wait()
		close(r.exited)
	}()
	l.tb.Cleanup(func() {
		_ = r.Process.Kill()
		<-r.exited
	})
	return r
}

// ended tells whether the command has ended within a time.
func (r *running) ended(within time.Duration) bool {
	select {
	case <-r.exited:
		return true
	case <-time.After(within):
		return false
	}
}

// kill ends the command at once, unless it has just ended by itself.
func (r *running) kill(tb testing.TB) {
	tb.Helper()
	if err := r.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		tb.Fatal(err)
	}
	<-r.exited
}

// dataFiles counts the committed and nearly committed data files.
func (l *lab) dataFiles() (n int) {
	names, err := os.ReadDir(filepath.Join(l.data(), "segments", "data"))
	if err != nil {
		return 0 // the store does not exist yet
	}
	for _, e := range names {
		if strings.HasSuffix(e.Name(), ".seg") {
			n++
		}
	}
	return n
}

// awaitCommits waits until there are more data files than before, or the command has ended.
func (l *lab) awaitCommits(r *running, before, more int) (ended bool) {
	for deadline := time.Now().Add(patience); l.dataFiles() < before+more; {
		if r.ended(time.Millisecond) {
			return true
		}
		if time.Now().After(deadline) {
			l.tb.Fatal("no commit")
		}
	}
	return false
}

// afterKill looks at a store whose process was killed: what was there before is still there, from the
// first block on.
func (l *lab) afterKill(r chain.Range, before uint64) (blocks uint64) {
	l.tb.Helper()
	n, err := l.tryOpen(true)
	if err != nil {
		if strings.Contains(err.Error(), "no store in the data directory") && before == 0 {
			return 0
		}
		l.tb.Fatalf("open after a kill: %v", err)
	}
	report, err := n.status(l.tb.Context())
	if err != nil {
		l.tb.Fatal(err)
	}
	if err := n.close(); err != nil {
		l.tb.Fatal(err)
	}
	if len(report.Coverage) > 1 || len(report.Coverage) == 1 && report.Coverage[0].From != r.From {
		l.tb.Fatalf("after a kill the store holds %v", report.Coverage)
	}
	if report.Blocks < before {
		l.tb.Fatalf("after a kill the store holds %d blocks, before it were %d", report.Blocks, before)
	}
	return report.Blocks
}

// filled is an undisturbed store of the chain; its digest is what others must have.
func filled(t *testing.T, c testChain) *lab {
	t.Helper()
	l := newLab(t, c)
	l.must(fillArgs(c.blocks)...)
	return l
}

// A fill that is killed again and again loses nothing that was committed, goes on from there, and ends
// with the same store as an undisturbed one, without anything left over. (STO-015, INV-30)
func TestKilledFill(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	c := chainlab(t)
	want := filled(t, c).verify().Digest
	rounds := 1
	if *longTests {
		rounds = 8
	}
	rng := seeded(t)
	for range rounds {
		l := newLab(t, c)
		l.smallSegments()
		blocks, kills, advances := uint64(0), 0, 0
		for {
			r := l.start(fillArgs(c.blocks)...)
			if l.awaitCommits(r, l.dataFiles(), 1+rng.IntN(3)) || r.ended(time.Duration(rng.IntN(int(60*time.Millisecond)))) {
				if code := r.ProcessState.ExitCode(); code != exitOK {
					t.Fatalf("code %d: %s", code, r.err.String())
				}
				break
			}
			r.kill(t)
			kills++
			if now := l.afterKill(c.blocks, blocks); now > blocks {
				blocks = now
				advances++
			}
		}
		t.Logf("%d kills, %d of them after progress", kills, advances)
		if kills < 3 || advances < 2 {
			t.Errorf("%d kills, %d after progress: the run is too fast for this test", kills, advances)
		}
		if r := l.verify(); r.Digest != want || r.Blocks != c.blocks.Len() {
			t.Errorf("%d blocks with digest %s, want %s", r.Blocks, r.Digest, want)
		}
		l.clean()
	}
}

// The same with the settings that init writes, killed at any time and at the latest after five seconds.
func TestKilledFillOfOneFile(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	c := chainlab(t)
	want := filled(t, c).verify().Digest
	rng := seeded(t)
	l := newLab(t, c)
	l.set("budgets", "mapper_concurrency", "1")
	l.set("budgets", "source_concurrency", "1")
	blocks := uint64(0)
	for kills := 0; ; kills++ {
		r := l.start(fillArgs(c.blocks)...)
		// A run is cut every two seconds: after twenty kills that may all have come before, one
		// run is left alone.
		if kills < 20 && !r.ended(time.Duration(rng.Int64N(int64(5*time.Second)))) {
			r.kill(t)
			blocks = l.afterKill(c.blocks, blocks)
			continue
		}
		<-r.exited
		if code := r.ProcessState.ExitCode(); code != exitOK {
			t.Fatalf("code %d: %s", code, r.err.String())
		}
		t.Logf("%d kills", kills)
		break
	}
	if got := l.verify().Digest; got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	l.clean()
}

// Kills that hit a fill of few blocks anywhere, while the store is created among others.
func TestKilledFillOfFewBlocks(t *testing.T) {
	skipWithRace(t)
	t.Parallel()
	c := bundled(t)
	want := newLab(t, c)
	for _, s := range bundledSpans {
		want.must(fillArgs(s)...)
	}
	kills := 12
	if *longTests {
		kills = 500
	}
	rng := seeded(t)
	l := newLab(t, c)
	// How long an undisturbed run takes only says where kills are worth while.
	start := time.Now()
	newLab(t, c).must(fillArgs(bundledSpans[0])...)
	took := time.Since(start)
	killed := 0
	for range kills {
		s := bundledSpans[0]
		if err := os.RemoveAll(l.data()); err != nil {
			t.Fatal(err)
		}
		r := l.start(fillArgs(s)...)
		if !r.ended(time.Duration(rng.Int64N(int64(took)))) {
			r.kill(t)
			killed++
			l.afterKill(s, 0)
		}
		l.must(fillArgs(s)...)
		l.clean()
	}
	for _, s := range bundledSpans[1:] {
		l.must(fillArgs(s)...)
	}
	t.Logf("%d kills", killed)
	if got, want := l.verify().Digest, want.verify().Digest; got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	l.clean()
}

// A node that is killed while it serves, merges files and stores senders in the background answers the
// same when it is back, and nothing is left over. (INV-30)
func TestKilledServe(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	c := chainlab(t)
	c.blocks = chain.Range{From: 0, To: 120}
	l := newLab(t, c)
	l.smallSegments()
	l.must(fillArgs(c.blocks)...)
	want := l.verify().Digest
	runs := []chain.Range{{From: 1, To: 3}, {From: 60, To: 61}, {From: 118, To: 120}}
	e := l.examine(runs)
	kills := 6
	if *longTests {
		kills = 100
	}
	rng := seeded(t)
	for range kills {
		s := l.serve()
		if wrong, refused := e.sit(newClient(s.url)); len(wrong) > 0 || refused > 0 {
			t.Errorf("%d refused, wrong: %q", refused, wrong)
		}
		select {
		case <-s.exited:
			t.Fatalf("serve ended: %v\n%s", s.err, s.log.String())
		case <-time.After(time.Duration(rng.IntN(int(300 * time.Millisecond)))):
		}
		if err := s.kill(); err != nil {
			t.Fatal(err)
		}
	}
	l.fillSenders() // opens the store for writing, which tidies it up
	if got := l.verify().Digest; got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	l.clean()
}

// One signal stops a fill cleanly: what is being written is committed, the message says how to go on,
// and the next run does. A second one ends it at once with code 130. (CLI-008)
func TestInterruptedFillGoesOn(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	c := chainlab(t)
	l := newLab(t, c)
	l.smallSegments()

	r := l.start(fillArgs(c.blocks)...)
	if l.awaitCommits(r, 0, 2) {
		t.Fatalf("ended early: %s", r.err.String())
	}
	sendSignal(t, r, syscall.SIGINT)
	<-r.exited
	if code := r.ProcessState.ExitCode(); code != exitFailure || r.out.Len() > 0 || !strings.Contains(r.err.String(), "error: interrupted after ") || !strings.Contains(r.err.String(), "run the command again to go on") {
		t.Fatalf("code %d\n%s%s", code, r.out.String(), r.err.String())
	}
	l.clean()
	blocks := l.status().Blocks
	if blocks == 0 || blocks == c.blocks.Len() {
		t.Fatalf("%d blocks after an interrupt", blocks)
	}
	l.verify()

	r = l.start(fillArgs(c.blocks)...)
	if l.awaitCommits(r, l.dataFiles(), 1) {
		t.Fatalf("ended early: %s", r.err.String())
	}
	sendSignal(t, r, syscall.SIGINT)
	sendSignal(t, r, syscall.SIGTERM) // another one: two equal signals may arrive as one
	<-r.exited
	if code := r.ProcessState.ExitCode(); code != exitInterrupted {
		t.Fatalf("code %d: %s", code, r.err.String())
	}
	l.afterKill(c.blocks, blocks)
	l.must(fillArgs(c.blocks)...)
	if got, want := l.verify().Digest, filled(t, c).verify().Digest; got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	l.clean()
}

func sendSignal(t *testing.T, r *running, s syscall.Signal) {
	t.Helper()
	if err := r.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}
