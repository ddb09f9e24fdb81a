package ondemand

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logBuffer is a log of several goroutines.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// start makes a Fetcher of sources, which are asked in their order.
func start(t *testing.T, change func(*Options), sources ...*fakeSource) (*Fetcher, *logBuffer) {
	t.Helper()
	log := new(logBuffer)
	o := Options{ChainID: testChainID, Limits: DefaultLimits(), Logger: slog.New(slog.NewTextHandler(log, nil))}
	for i, s := range sources {
		o.Sources = append(o.Sources, Source{Candidate: s.candidate(fmt.Sprint("source-", i), i)})
	}
	if change != nil {
		change(&o)
	}
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f, log
}

func span(from, to uint64) chain.Range { return chain.Range{From: from, To: to} }

func request(runs ...chain.Range) Request { return Request{Runs: runs} }

// reasonIs requires an *Error or a *RejectedError with a reason.
func reasonIs(t *testing.T, err error, want Reason) {
	t.Helper()
	var failure *Error
	var rejected *RejectedError
	switch {
	case errors.As(err, &rejected) && rejected.Reason == want:
	case errors.As(err, &failure) && failure.Reason == want:
	default:
		t.Errorf("got %v, want %v", err, want)
	}
}

// Blocks come in order, over files and runs, with the senders that were asked for, from the source with the lowest priority
// number. (RPC-140)
func TestFetch(t *testing.T) {
	a, b := newFakeSource(t, mainChain()), newFakeSource(t, mainChain())
	f, _ := start(t, func(o *Options) { o.Sources[0].Priority = 5 }, a, b)
	var c collector
	runs := []chain.Range{span(3, 25), span(25, 26), span(40, 41), span(58, 72)}
	if err := f.Fetch(t.Context(), Request{Runs: runs, Senders: true}, &c); err != nil {
		t.Fatal(err)
	}
	c.is(t, mainChain(), runs...)
	if len(c.sources) != 1 || c.sources[0] != "source-1" || c.senders == 0 {
		t.Errorf("sources %v, %d senders", c.sources, c.senders)
	}
	if opens, _ := a.counts(); opens > 0 {
		t.Error("the other source was read")
	}
}

// RPC-145: whatever goes wrong with a source at whatever block, the answer is the next one's, from the start. When all fail the
// reason is told. (RPC-142, RPC-144)
func TestFailOver(t *testing.T) {
	fork := testChain(33)
	for _, c := range []struct {
		name   string
		spoil  func(s *fakeSource)
		reason Reason
	}{
		{"cannot be opened", func(s *fakeSource) { s.openError = errors.New("down") }, Failed},
		{"cannot be planned", func(s *fakeSource) { s.planError = errors.New("down") }, Failed},
		{"lacks blocks", func(s *fakeSource) { s.holds = span(0, 40) }, NotHeld},
		{"a mirror cannot be asked what a file holds", func(s *fakeSource) {
			s.planError = &era.HoleError{Missing: []chain.Range{span(31, 35)}, Unread: []error{
				&remote.Error{File: "a", Err: &remote.StatusError{Code: notFound}}, &remote.Error{File: "b", Err: &remote.StatusError{Code: 500}}}}
		}, Failed},
		{"a mirror contradicts itself where a file holds what", func(s *fakeSource) {
			s.planError = &era.HoleError{Missing: []chain.Range{span(31, 35)}, Unread: []error{&remote.Error{File: "a", Err: &remote.ProtocolError{Reason: "?"}}}}
		}, Invalid},
		{"a mirror has not the file", func(s *fakeSource) {
			s.planError = &era.HoleError{Missing: []chain.Range{span(31, 35)}, Unread: []error{&remote.Error{File: "a", Err: &remote.StatusError{Code: notFound}}}}
		}, NotHeld},
		{"a file of a folder is damaged, who knows which", func(s *fakeSource) {
			s.planError = &era.HoleError{Missing: []chain.Range{span(31, 35)}, Unread: []error{&era.CorruptError{File: "a"}}}
		}, NotHeld},
		{"lacks capabilities", func(s *fakeSource) { s.planError = fmt.Errorf("no receipts: %w", ingest.ErrNoReceipts) }, NotHeld},
		{"fails in the middle", func(s *fakeSource) {
			s.read = func(_ context.Context, n uint64) error {
				if n == 44 {
					return errors.New("broken disk")
				}
				return nil
			}
		}, Failed},
		{"a file has another digest", func(s *fakeSource) { s.proof[41] = &era.DigestError{File: "x"} }, Invalid},
		{"a transaction is another", func(s *fakeSource) {
			s.change = func(b *chain.Block) {
				if len(b.Transactions) > 0 {
					b.Transactions[0] = append([]byte{}, b.Transactions[0][1:]...)
				}
			}
		}, Invalid},
		{"a log is another", func(s *fakeSource) {
			s.change = func(b *chain.Block) {
				if len(b.Logs) > 0 {
					b.Logs[0].Data = []byte("forged")
				}
			}
		}, Invalid},
		{"no receipts", func(s *fakeSource) {
			s.change = func(b *chain.Block) { b.HasReceipts, b.Receipts, b.Logs = false, nil, nil }
		}, NotHeld},
		{"a fork joins in the middle", func(s *fakeSource) {
			s.blocks = append(append([]chain.Block{}, fork[:45]...), mainChain()[45:]...)
		}, Invalid},
		{"another block", func(s *fakeSource) {
			s.blocks = append(append([]chain.Block{}, mainChain()[:44]...), mainChain()[45:]...)
		}, Invalid},
		{"a panic", func(s *fakeSource) { s.change = func(*chain.Block) { panic("a bug") } }, Failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad, good := newFakeSource(t, mainChain()), newFakeSource(t, mainChain())
			c.spoil(bad)
			f, _ := start(t, nil, bad, good)
			var got collector
			runs := []chain.Range{span(31, 35), span(38, 52)}
			if err := f.Fetch(t.Context(), request(runs...), &got); err != nil {
				t.Fatal(err)
			}
			got.is(t, mainChain(), runs...)
			if last := got.sources[len(got.sources)-1]; last != "source-1" {
				t.Errorf("sources: %v", got.sources)
			}

			alone, _ := start(t, nil, bad)
			reasonIs(t, alone.Fetch(t.Context(), request(runs...), new(collector)), c.reason)
		})
	}
}

// The reader decides: what it rejects the next source may have; any other error of it is the end.
func TestReaderDecides(t *testing.T) {
	fork := testChain(33)
	a, b := newFakeSource(t, fork), newFakeSource(t, mainChain())
	f, _ := start(t, nil, a, b)
	fits := collector{take: func(b *chain.Block) error {
		if b.Number == 35 && b.Hash != mainChain()[35].Hash {
			return &RejectedError{Mismatched, errors.New("another chain")}
		}
		return nil
	}}
	if err := f.Fetch(t.Context(), request(span(30, 36)), &fits); err != nil {
		t.Fatal(err)
	}
	fits.is(t, mainChain(), span(30, 36))

	// A source that was seen to be on another chain is asked after the others for a while, also for blocks that nothing tells apart.
	var alone collector
	if err := f.Fetch(t.Context(), request(span(33, 34)), &alone); err != nil {
		t.Fatal(err)
	}
	alone.is(t, mainChain(), span(33, 34))

	cause := errors.New("another chain")
	none := collector{take: func(*chain.Block) error { return &RejectedError{Mismatched, cause} }}
	err := f.Fetch(t.Context(), request(span(30, 36)), &none)
	if reasonIs(t, err, Mismatched); !errors.Is(err, cause) || len(none.sources) != 2 {
		t.Errorf("got %v, sources %v", err, none.sources)
	}

	full := errors.New("full")
	ends := collector{take: func(*chain.Block) error { return full }}
	if err := f.Fetch(t.Context(), request(span(30, 36)), &ends); err != full || len(ends.sources) != 1 {
		t.Errorf("got %v, sources %v", err, ends.sources)
	}
}

// Of several failures the reason is told that may pass, or says most.
func TestReasonOfSeveral(t *testing.T) {
	hole, broken, bad := newFakeSource(t, mainChain()), newFakeSource(t, mainChain()), newFakeSource(t, mainChain())
	hole.holds = span(0, 1)
	broken.openError = errors.New("down")
	bad.change = func(b *chain.Block) { b.Header[len(b.Header)-1] ^= 1 }
	for _, c := range []struct {
		sources []*fakeSource
		want    Reason
	}{
		{nil, NotHeld}, {[]*fakeSource{hole}, NotHeld}, {[]*fakeSource{hole, bad}, Invalid}, {[]*fakeSource{bad, broken, hole}, Failed},
	} {
		f, _ := start(t, nil, c.sources...)
		reasonIs(t, f.Fetch(t.Context(), request(span(5, 7)), new(collector)), c.want)
	}
}

// RPC-143: limits on blocks and bytes.
func TestLimits(t *testing.T) {
	s := newFakeSource(t, mainChain())
	f, _ := start(t, func(o *Options) { o.Limits.Blocks, o.Limits.InputBytes = 50, 20*storedBytes }, s)
	reasonIs(t, f.Fetch(t.Context(), request(span(0, 30), span(40, 61)), new(collector)), OutOfRange)
	if opens, _ := s.counts(); opens > 0 {
		t.Error("a source was asked")
	}
	reasonIs(t, f.Fetch(t.Context(), request(span(0, 10), span(40, 51)), new(collector)), OverBudget)
	var c collector
	if err := f.Fetch(t.Context(), request(span(0, 10), span(40, 50)), &c); err != nil {
		t.Error(err)
	}
	c.is(t, mainChain(), span(0, 10), span(40, 50))

	if _, err := New(Options{}); err == nil {
		t.Error("no limits are accepted")
	}
	if l := DefaultLimits().Within(60 << 20); l.BlockBytes != 10<<20 {
		t.Errorf("got %+v", l)
	}
}

// RPC-143: as many requests run at a time as there are places, as many wait as may, and the others are told.
func TestPlaces(t *testing.T) {
	mainChain()
	synctest.Test(t, func(t *testing.T) {
		s := newFakeSource(t, mainChain())
		entered, release := make(chan struct{}, 10), make(chan struct{})
		f, _ := start(t, func(o *Options) { o.Limits.Requests, o.Limits.Waiting = 2, 3 }, s)
		results := make(chan error, 10)
		slow := func() {
			results <- f.Fetch(context.Background(), request(span(1, 2)), &collector{take: func(*chain.Block) error {
				entered <- struct{}{}
				<-release
				return nil
			}})
		}
		for range 2 {
			go slow()
			<-entered
		}
		var busy *BusyError
		impatient := Request{Runs: []chain.Range{span(1, 2)}, Impatient: true}
		if err := f.Fetch(t.Context(), impatient, new(collector)); !errors.As(err, &busy) || busy.Limit != 2 {
			t.Errorf("got %v", err)
		}
		for range 3 {
			go slow()
		}
		synctest.Wait() // until nobody can go on
		if err := f.Fetch(t.Context(), request(span(1, 2)), new(collector)); !errors.As(err, &busy) || busy.Limit != 3 {
			t.Errorf("got %v", err)
		}
		if len(entered) > 0 {
			t.Error("a third one runs")
		}
		close(release)
		for range 5 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
	})
}

// RPC-143: a request ends with its time, waiting included; a source that hangs leaves time for the next. Time is simulated.
func TestTime(t *testing.T) {
	mainChain()
	synctest.Test(t, func(t *testing.T) {
		hanging, good := newFakeSource(t, mainChain()), newFakeSource(t, mainChain())
		hanging.opening = func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		f, _ := start(t, nil, hanging, good)
		begin := time.Now()
		var c collector
		hurried, cancel := context.WithTimeout(t.Context(), 4*time.Second) // nothing is held against the source
		defer cancel()
		if err := f.Fetch(hurried, request(span(1, 5)), &c); err != nil || time.Since(begin) != 2*time.Second {
			t.Errorf("took %v, %v", time.Since(begin), err)
		}
		begin = time.Now()
		if err := f.Fetch(t.Context(), request(span(1, 5)), &c); err != nil {
			t.Fatal(err)
		}
		c.is(t, mainChain(), span(1, 5))
		if took := time.Since(begin); took != 30*time.Second {
			t.Errorf("took %v", took)
		}
		// It is asked last for a while.
		begin = time.Now()
		if err := f.Fetch(t.Context(), request(span(1, 5)), &c); err != nil || time.Since(begin) != 0 {
			t.Errorf("took %v, %v", time.Since(begin), err)
		}
		time.Sleep(asideFor)
		if err := f.Fetch(t.Context(), request(span(1, 5)), &c); err != nil || time.Since(begin) != asideFor+30*time.Second {
			t.Errorf("took %v, %v", time.Since(begin), err)
		}

		alone, _ := start(t, nil, hanging)
		begin = time.Now()
		reasonIs(t, alone.Fetch(t.Context(), request(span(1, 5)), new(collector)), TimedOut)
		if took := time.Since(begin); took != 60*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// A cancelled request ends at once, whether it runs or waits, and so does everything when the Fetcher is closed.
func TestCancel(t *testing.T) {
	mainChain()
	synctest.Test(t, func(t *testing.T) {
		s := newFakeSource(t, mainChain())
		entered := make(chan struct{}, 10)
		s.opening = func(ctx context.Context) error {
			entered <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}
		f, _ := start(t, func(o *Options) { o.Limits.Requests = 1 }, s)
		results := make(chan error, 10)
		fetch := func(ctx context.Context) { results <- f.Fetch(ctx, request(span(1, 5)), new(collector)) }
		running, stopRunning := context.WithCancel(t.Context())
		waiting, stopWaiting := context.WithCancel(t.Context())
		go fetch(running)
		<-entered
		go fetch(waiting)
		synctest.Wait() // until nobody can go on
		for _, stop := range []func(){stopWaiting, stopRunning} {
			stop()
			if err := <-results; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
		go fetch(t.Context())
		<-entered
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if err := f.Fetch(t.Context(), request(span(1, 5)), new(collector)); !errors.Is(err, context.Canceled) {
			t.Errorf("after Close: got %v", err)
		}
	})
}

// A file is proved once while it stays the same, and so is one that is bad; the search for the damage is in the log.
func TestProofs(t *testing.T) {
	s := newFakeSource(t, mainChain())
	f, log := start(t, nil, s)
	fetch := func(n uint64) error { return f.Fetch(t.Context(), request(span(n, n+2)), new(collector)) }
	counts := func(wantOpens, wantProofs int) {
		t.Helper()
		if opens, proofs := s.counts(); opens != wantOpens || proofs != wantProofs {
			t.Errorf("%d opens, %d proofs, want %d and %d", opens, proofs, wantOpens, wantProofs)
		}
	}
	for range 3 {
		if err := fetch(12); err != nil {
			t.Fatal(err)
		}
	}
	counts(1, 1)
	if err := os.WriteFile(s.name(12), []byte("changed since"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := fetch(14); err != nil {
		t.Fatal(err)
	}
	counts(2, 2)

	s.change = func(b *chain.Block) {
		if b.Number == 53 {
			b.Header[40] ^= 1
		}
	}
	s.proof[52] = &era.DigestError{File: s.name(52)}
	for range 3 {
		reasonIs(t, fetch(52), Invalid)
	}
	counts(3, 3)
	f.running.Wait() // the search
	if got := log.String(); strings.Count(got, "history source failed on demand") != 1 || !strings.Contains(got, "first bad block") || !strings.Contains(got, "block 53") {
		t.Errorf("log: %s", got)
	}
	delete(s.proof, 52)
	s.change = nil
	if err := os.WriteFile(s.name(52), []byte("repaired"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := fetch(52); err != nil {
		t.Error(err)
	}
	if err := os.Remove(s.name(52)); err != nil {
		t.Fatal(err)
	}
	reasonIs(t, fetch(52), Failed)
}

// Requests that need the same file at the same time wait for one proof of it.
func TestOneProof(t *testing.T) {
	s := newFakeSource(t, mainChain())
	f, _ := start(t, func(o *Options) { o.Limits.Requests = 4 }, s)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			var c collector
			if err := f.Fetch(t.Context(), request(span(11, 19)), &c); err != nil {
				t.Error(err)
			}
			c.is(t, mainChain(), span(11, 19))
		})
	}
	group.Wait()
	if opens, proofs := s.counts(); opens != 1 || proofs != 1 {
		t.Errorf("%d opens, %d proofs", opens, proofs)
	}
}

// Files that nobody reads are closed when there are more than may be open; of copies there is never one more than fits.
func TestOpenFiles(t *testing.T) {
	s, copies := newFakeSource(t, mainChain()), newFakeSource(t, mainChain())
	var most int
	copies.opening = func(context.Context) error {
		copies.mu.Lock()
		defer copies.mu.Unlock()
		most = max(most, copies.open+1)
		return nil
	}
	now := time.Now()
	f, _ := start(t, func(o *Options) {
		o.Limits.OpenFiles = 3
		o.Now = func() time.Time { return now }
	}, s)
	g, _ := start(t, func(o *Options) {
		o.Sources[0].Copied = true
		o.Now = func() time.Time { return now }
	}, copies)
	for _, fetcher := range []*Fetcher{f, g} {
		if err := fetcher.Fetch(t.Context(), request(span(0, 100)), new(collector)); err != nil {
			t.Fatal(err)
		}
	}
	if s.open != 3 || most != 2 || copies.open != 2 {
		t.Errorf("%d open, %d copies, %d at most", s.open, copies.open, most)
	}
	if n := len(f.files.entries); n != 3 { // what is not open is forgotten
		t.Errorf("%d files are known", n)
	}
	if err := g.Fetch(t.Context(), request(span(95, 97)), new(collector)); err != nil {
		t.Fatal(err)
	}
	if opens, _ := copies.counts(); opens != 10 {
		t.Errorf("%d copies were made", opens)
	}
	// The failure of a copy is remembered for a while.
	copies.proof[33] = &era.DigestError{File: "x"}
	reasonIs(t, g.Fetch(t.Context(), request(span(31, 32)), new(collector)), Invalid)
	reasonIs(t, g.Fetch(t.Context(), request(span(31, 32)), new(collector)), Invalid)
	if opens, _ := copies.counts(); opens != 11 {
		t.Errorf("%d copies were made", opens)
	}
	delete(copies.proof, 33)
	now = now.Add(badFor)
	if err := g.Fetch(t.Context(), request(span(31, 32)), new(collector)); err != nil {
		t.Error(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if n := len(g.files.entries); n > 0 {
		t.Errorf("%d files are known", n)
	}
}

// What is in a file that was copied is there while another one is being copied.
func TestCopiedBesideTransfer(t *testing.T) {
	s := newFakeSource(t, mainChain())
	f, _ := start(t, func(o *Options) { o.Sources[0].Copied = true }, s)
	if err := f.Fetch(t.Context(), request(span(1, 2)), new(collector)); err != nil {
		t.Fatal(err)
	}
	begun, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error)
	s.opening = func(context.Context) error {
		close(begun)
		<-goOn
		return nil
	}
	go func() { done <- f.Fetch(context.Background(), request(span(51, 52)), new(collector)) }()
	<-begun
	var c collector
	if err := f.Fetch(t.Context(), request(span(3, 5), span(7, 10)), &c); err != nil {
		t.Error(err)
	}
	c.is(t, mainChain(), span(3, 5), span(7, 10))
	close(goOn)
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.opening = nil
	if err := f.Fetch(t.Context(), request(span(8, 12)), &c); err != nil { // one of the files has to be copied
		t.Error(err)
	}
	c.is(t, mainChain(), span(8, 12))
}
