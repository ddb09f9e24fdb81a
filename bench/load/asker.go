package load

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/zeebo/xxh3"
)

// asker is a client that asks over HTTP, one question after the other.
type asker struct {
	run    *run
	random *rand.Rand
	http   *http.Client
	hash   *xxh3.Hasher
	begin  []byte // of the answer
	seen   int    // the state of the chain that it has seen
	buffer []byte
	result [2]askerResult // by half
}

// askerResult is what happened to a client.
type askerResult struct {
	times    map[string][]time.Duration // by class
	refusals map[string]int             // documented limits, by what they say
	bytes    int64
}

func newAsker(r *run, seed uint64) *asker {
	a := &asker{
		run: r, random: rand.New(rand.NewPCG(seed, 0x6173)), hash: xxh3.New(), buffer: make([]byte, 32<<10),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1, DisableCompression: true}},
	}
	for i := range a.result {
		a.result[i] = askerResult{times: make(map[string][]time.Duration), refusals: make(map[string]int)}
	}
	return a
}

// ask asks until the context ends.
func (a *asker) ask(ctx context.Context) {
	defer a.http.CloseIdleConnections()
	s := a.run.scenario
	for ctx.Err() == nil {
		var err error
		switch kind := a.random.IntN(100); {
		case kind < 10:
			err = a.check(ctx, &s.batches[a.random.IntN(len(s.batches))])
		case kind < 20:
			err = a.checkTip(ctx, s.tips[a.random.IntN(len(s.tips))])
		default:
			// Of two drawn at random the smaller answer: heavy ones are asked for, and are not most.
			q := &s.queries[a.random.IntN(len(s.queries))]
			if other := &s.queries[a.random.IntN(len(s.queries))]; other.bytes < q.bytes {
				q = other
			}
			err = a.check(ctx, q)
		}
		if err != nil && ctx.Err() == nil {
			a.run.fail(err)
			return
		}
	}
}

// check asks a question whose answer is known.
func (a *asker) check(ctx context.Context, q *expected) error {
	sum, n, err := a.post(ctx, q.class, q.body)
	if err != nil || n < 0 {
		return err
	}
	if sum != q.sum {
		return fmt.Errorf("%s: wrong answer of %d bytes, want %d: %.200s for %.300s", q.class, n, q.bytes, a.begin, q.body)
	}
	return nil
}

// checkTip asks about the newest blocks. The answer has to be that of a state which is not before the one that this
// client has seen already.
func (a *asker) checkTip(ctx context.Context, t *tip) error {
	sum, n, err := a.post(ctx, tipClass, t.body)
	if err != nil || n < 0 {
		return err
	}
	state, ok := t.state(sum, a.seen, a.run.told())
	if !ok {
		return fmt.Errorf("newest blocks: an answer of %d bytes fits no state from %d to %d, but %v: %.200s", n, a.seen, a.run.told(), t.states[sum], a.begin)
	}
	a.seen = state
	return nil
}

// post sends a body and sums up the answer; its length is negative when it is a documented limit.
func (a *asker) post(ctx context.Context, class string, body []byte) (sum xxh3.Uint128, n int, err error) {
	result := &a.result[a.run.half.Load()]
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.run.node.process.HTTP, bytes.NewReader(body))
	if err != nil {
		return sum, 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	start := time.Now()
	response, err := a.http.Do(request)
	if err != nil {
		return sum, 0, fmt.Errorf("%s: %w", class, err)
	}
	defer func() { _ = response.Body.Close() }()
	a.hash.Reset()
	a.begin = a.begin[:0]
	for {
		k, err := response.Body.Read(a.buffer)
		_, _ = a.hash.Write(a.buffer[:k])
		a.begin = append(a.begin, a.buffer[:min(k, 256-len(a.begin))]...)
		n += k
		if err == io.EOF {
			break
		}
		if err != nil {
			return sum, n, fmt.Errorf("%s: answer breaks off after %d bytes: %w", class, n, err)
		}
	}
	took := time.Since(start)
	result.bytes += int64(n)
	switch {
	case response.StatusCode == http.StatusServiceUnavailable:
		result.refusals["HTTP 503"]++
		return sum, -1, nil
	case response.StatusCode != http.StatusOK:
		return sum, n, fmt.Errorf("%s: HTTP status %d: %.200s", class, response.StatusCode, a.begin)
	case bytes.Contains(a.begin, []byte(`"code":-32005`)):
		result.refusals["-32005"]++
		return sum, -1, nil
	}
	result.times[class] = append(result.times[class], took)
	return a.hash.Sum128(), n, nil
}
