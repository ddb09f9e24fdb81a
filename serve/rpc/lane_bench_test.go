package rpc

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leani-go/leani/chain"
)

// BenchmarkLightBesideHeavy asks what a light query waits while two clients keep heavy ones
// running, with the lane and with everything on goroutines alike. The figures that count are
// p50-us and p99-us of the light query, and heavy/s.
func BenchmarkLightBesideHeavy(b *testing.B) {
	for _, cost := range []uint64{laneCost, 0} {
		b.Run(fmt.Sprintf("lane=%t", cost > 0), func(b *testing.B) {
			server, err := New(Options{Store: &spinStore{fakeStore: newFakeStore(b, 8), cost: cost}, Network: testNetwork()})
			if err != nil {
				b.Fatal(err)
			}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			go func() { _ = server.Serve(listener) }()
			defer func() { _ = server.Shutdown(context.Background()) }()

			var stop atomic.Bool
			var heavy atomic.Int64
			ended := make(chan struct{})
			for range 2 {
				go func() {
					ask := dialBench(b, listener, bytes.Replace([]byte(benchLogs), []byte(`,"address":"0x00000000000000000000000000000000000000aa"`), nil, 1))
					for !stop.Load() {
						ask()
						heavy.Add(1)
					}
					ended <- struct{}{}
				}()
			}
			ask := dialBench(b, listener, []byte(benchLogs))
			var times []time.Duration
			for b.Loop() {
				start := time.Now()
				ask()
				times = append(times, time.Since(start))
				time.Sleep(200 * time.Microsecond) // an arrival rate, not a saturated connection
			}
			stop.Store(true)
			<-ended
			<-ended
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-us")
			b.ReportMetric(float64(heavy.Load())/b.Elapsed().Seconds(), "heavy/s")
		})
	}
}

// dialBench returns a function that sends the call and reads the response.
func dialBench(b *testing.B, listener net.Listener, body []byte) func() {
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		b.Error(err)
		return func() {}
	}
	b.Cleanup(func() { _ = conn.Close() })
	request := fmt.Appendf(nil, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	reader := bufio.NewReader(conn)
	return func() {
		if _, err := conn.Write(request); err != nil {
			b.Error(err)
			return
		}
		if _, err := readResponse(reader); err != nil {
			b.Error(err)
		}
	}
}

// spinStore finds no logs: at once with an address, and after about ten milliseconds of work
// without.
type spinStore struct {
	*fakeStore
	cost uint64 // reported for queries without address
}

func (s *spinStore) View() (View, error) {
	return &spinView{fakeView: fakeView{s: s.fakeStore}, store: s}, nil
}

type spinView struct {
	fakeView
	store *spinStore
}

func (v *spinView) Close() {}

func (v *spinView) LogsCost(_ context.Context, _ chain.Range, f *chain.LogFilter) (uint64, error) {
	if len(f.Addresses) > 0 {
		return 0, nil
	}
	return v.store.cost, nil
}

// spun keeps the compiler from dropping the work.
var spun atomic.Uint64

func (v *spinView) Logs(_ context.Context, _ chain.Range, f *chain.LogFilter, _ func(*chain.FoundLog) error) error {
	if len(f.Addresses) > 0 {
		return nil
	}
	x := uint64(1)
	for i := range uint64(10_000_000) {
		x = x*6364136223846793005 + i
	}
	spun.Add(x)
	return nil
}
