package ondemand

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
)

// slowly makes a source take a time for each file, and counts the transfers that were ended.
func slowly(s *fakeSource, takes time.Duration) (ended *atomic.Int64) {
	ended = new(atomic.Int64)
	s.opening = func(ctx context.Context) error {
		select {
		case <-time.After(takes): // of the bubble
			return nil
		case <-ctx.Done():
			ended.Add(1)
			return ctx.Err()
		}
	}
	return ended
}

// copied makes the first n sources mirrors.
func copied(n int) func(*Options) {
	return func(o *Options) {
		for i := range n {
			o.Sources[i].Copied = true
		}
	}
}

// A copy that takes longer than its part of a request is finished for the next one.
func TestTransferGoesOn(t *testing.T) {
	mainChain()
	synctest.Test(t, func(t *testing.T) {
		slow, folder := newFakeSource(t, mainChain()), newFakeSource(t, mainChain())
		ended := slowly(slow, 35*time.Second)
		f, _ := start(t, copied(1), slow, folder)
		begin := time.Now()
		var c collector
		if err := f.Fetch(t.Context(), request(span(1, 5)), &c); err != nil || time.Since(begin) != 30*time.Second || c.sources[len(c.sources)-1] != "source-1" {
			t.Errorf("took %v, %v, %v", time.Since(begin), c.sources, err)
		}
		time.Sleep(asideFor)
		begin, c = time.Now(), collector{}
		if err := f.Fetch(t.Context(), request(span(1, 5)), &c); err != nil || time.Since(begin) != 0 || c.sources[0] != "source-0" {
			t.Errorf("took %v, %v, %v", time.Since(begin), c.sources, err)
		}
		c.is(t, mainChain(), span(1, 5))
		if opens, proofs := slow.counts(); opens != 1 || proofs != 1 || ended.Load() != 0 {
			t.Errorf("%d opens, %d proofs, %d ended", opens, proofs, ended.Load())
		}
	})
}

// It makes way for another copy, ends with the client that has gone, after the time of a request, and with the Fetcher.
func TestTransferEnds(t *testing.T) {
	mainChain()
	synctest.Test(t, func(t *testing.T) {
		slow, fast := newFakeSource(t, mainChain()), newFakeSource(t, mainChain())
		ended := slowly(slow, time.Hour)
		f, _ := start(t, copied(2), slow, fast)
		begin := time.Now()
		var c collector
		if err := f.Fetch(t.Context(), request(span(1, 5)), &c); err != nil || time.Since(begin) != 30*time.Second || ended.Load() != 1 {
			t.Errorf("took %v, %d ended, %v", time.Since(begin), ended.Load(), err)
		}

		alone := newFakeSource(t, mainChain())
		ended = slowly(alone, time.Hour)
		f, _ = start(t, copied(1), alone)
		gone, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := f.Fetch(gone, request(span(1, 5)), &c); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if ended.Load() != 1 {
			t.Errorf("%d ended with the client", ended.Load())
		}
		begin = time.Now()
		hurried, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		reasonIs(t, f.Fetch(hurried, request(span(1, 5)), &c), TimedOut)
		synctest.Wait()
		if ended.Load() != 1 || time.Since(begin) != 10*time.Second {
			t.Errorf("%d ended after %v", ended.Load(), time.Since(begin))
		}
		time.Sleep(50 * time.Second)
		synctest.Wait()
		if ended.Load() != 2 {
			t.Errorf("%d ended after the time of a request", ended.Load())
		}
		hurried, cancel = context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		reasonIs(t, f.Fetch(hurried, request(span(1, 5)), &c), TimedOut)
		if err := f.Close(); err != nil || ended.Load() != 3 {
			t.Errorf("%d ended when it was closed, %v", ended.Load(), err)
		}
		if n := len(f.files.entries); n != 0 {
			t.Errorf("%d files are known", n)
		}
	})
}

// What goes wrong with a copy when nobody waits for it is told by the next request that needs it.
func TestTransferFails(t *testing.T) {
	mainChain()
	synctest.Test(t, func(t *testing.T) {
		slow := newFakeSource(t, mainChain())
		slowly(slow, 15*time.Second)
		slow.proof[3] = &era.DigestError{File: "damaged"}
		f, log := start(t, copied(1), slow)
		hurried, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		reasonIs(t, f.Fetch(hurried, request(span(1, 5)), new(collector)), TimedOut)
		for range 2 {
			reasonIs(t, f.Fetch(t.Context(), request(span(1, 5)), new(collector)), Invalid)
		}
		if opens, _ := slow.counts(); opens != 1 || strings.Count(log.String(), "damaged") != 1 {
			t.Errorf("%d opens\n%s", opens, log)
		}

		slow.opening = func(context.Context) error { panic("a bug") }
		reasonIs(t, f.Fetch(t.Context(), request(span(11, 15)), new(collector)), Failed)
	})
}

// A mirror that takes its time leaves a place to requests that need no mirror. Others wait for it without a place, and for no
// longer than their time.
func TestMirrorLeavesPlace(t *testing.T) {
	mainChain()
	synctest.Test(t, func(t *testing.T) {
		mirror, folder := newFakeSource(t, mainChain()), newFakeSource(t, mainChain())
		folder.holds.To = 20
		goOn := make(chan struct{})
		mirror.opening = func(ctx context.Context) error {
			select {
			case <-goOn:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		f, _ := start(t, copied(1), mirror, folder)
		results := make(chan error, 4)
		for _, n := range []uint64{51, 61, 71} {
			go func() { results <- f.Fetch(context.Background(), request(span(n, n+1)), new(collector)) }()
			synctest.Wait()
		}
		var c collector
		if err := f.Fetch(t.Context(), request(span(3, 5)), &c); err != nil || c.sources[len(c.sources)-1] != "source-1" {
			t.Errorf("got %v from %v", err, c.sources)
		}
		var busy *BusyError
		if err := f.Fetch(t.Context(), Request{Runs: []chain.Range{span(61, 62)}, Impatient: true}, new(collector)); !errors.As(err, &busy) {
			t.Errorf("got %v", err)
		}
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		reasonIs(t, f.Fetch(brief, request(span(61, 62)), new(collector)), TimedOut)
		close(goOn)
		for range 3 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if len(f.places) != 2 || len(f.mirrors) != 1 || len(f.waiting) != 0 {
			t.Errorf("%d places, %d rights to wait for mirrors, %d wait", len(f.places), len(f.mirrors), len(f.waiting))
		}
	})
}
