package bench

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/leani-go/leani/api/ethjson"
	"github.com/leani-go/leani/chain"
)

// Figures are what the queries of one class cost. Times are medians over all queries and passes,
// numbers of pages and bytes are means over the queries.
type Figures struct {
	Class   string
	Queries int
	Logs    float64 // a query

	Warm  time.Duration // in process and encoded; the set was asked before
	HTTP  time.Duration // over HTTP; the set was asked before
	Cold  time.Duration // in process and encoded; nothing in the page cache
	Pages float64       // that a query asks the page cache for
	Reads float64       // pages that a query reads when nothing is in the page cache
	Bytes float64       // of these pages
}

// defaultPasses is the number of timed passes over a query set.
const defaultPasses = 5

// Measure asks all log queries of a set several times in shuffled order, so that a query finds in the
// page cache what the others have left of it. Each answer must have the expected number of logs.
// passes is the number of timed passes; 0 is five.
func Measure(ctx context.Context, s *Store, network *chain.Network, queries []Query, passes int) ([]Figures, error) {
	if passes <= 0 {
		passes = defaultPasses
	}
	m := &measurement{ctx: ctx, store: s, encoder: ethjson.NewEncoder(network), queries: LogQueries(queries), byClass: make(map[string]*samples)}
	for _, class := range Classes(m.queries) {
		m.byClass[class] = new(samples)
	}
	if err := m.pass(m.askCold); err != nil {
		return nil, err
	}
	for i := range 1 + passes {
		if err := m.pass(m.askWarm); err != nil {
			return nil, err
		}
		if i == 0 {
			m.forget()
		}
	}
	node, err := Serve(s, network)
	if err != nil {
		return nil, err
	}
	m.client = node.Client()
	err = m.pass(m.client.checkIn(ctx))
	for i := 0; i < passes && err == nil; i++ {
		err = m.pass(m.askHTTP)
	}
	m.client.Close()
	if closeErr := node.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, err
	}
	return m.figures(), nil
}

// measurement is a Measure in progress.
type measurement struct {
	ctx     context.Context
	store   *Store
	encoder *ethjson.Encoder
	client  *Client
	queries []Query
	byClass map[string]*samples
	random  *rand.Rand
	buf     []byte
}

// samples are what was found out about a class.
type samples struct {
	warm, http, cold          Times
	pages, reads, bytes, logs uint64 // sums over the pass with an empty page cache
}

// pass asks each query once.
func (m *measurement) pass(ask func(q *Query) error) error {
	if m.random == nil {
		m.random = rand.New(rand.NewPCG(1, 1))
	}
	for _, i := range m.random.Perm(len(m.queries)) {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		if err := ask(&m.queries[i]); err != nil {
			return err
		}
	}
	return nil
}

func (m *measurement) ask(q *Query) (a Answer, took time.Duration, err error) {
	start := time.Now()
	a, err = m.store.Ask(m.ctx, q, m.encoder, m.buf)
	m.buf = a.JSON
	return a, time.Since(start), err
}

func (m *measurement) askCold(q *Query) error {
	m.store.History.Cache().Drop()
	a, took, err := m.ask(q)
	s := m.byClass[q.Class]
	s.cold = append(s.cold, took)
	s.pages += a.Access.Pages
	s.reads += a.Access.Misses
	s.bytes += a.Access.BytesRead
	s.logs += uint64(a.Logs)
	return err
}

func (m *measurement) askWarm(q *Query) error {
	_, took, err := m.ask(q)
	s := m.byClass[q.Class]
	s.warm = append(s.warm, took)
	return err
}

// forget drops the times of the first pass, which filled the page cache.
func (m *measurement) forget() {
	for _, s := range m.byClass {
		s.warm = s.warm[:0]
	}
}

func (m *measurement) askHTTP(q *Query) error {
	start := time.Now()
	_, err := m.client.Ask(m.ctx, q)
	s := m.byClass[q.Class]
	s.http = append(s.http, time.Since(start))
	return err
}

// checkIn is Check as a step of a pass.
func (c *Client) checkIn(ctx context.Context) func(*Query) error {
	return func(q *Query) error { return Check(ctx, c, q) }
}

func (m *measurement) figures() []Figures {
	var out []Figures
	for _, class := range Classes(m.queries) {
		s := m.byClass[class]
		n := float64(len(s.cold))
		out = append(out, Figures{
			Class: class, Queries: len(s.cold), Logs: float64(s.logs) / n,
			Warm: s.warm.Median(), HTTP: s.http.Median(), Cold: s.cold.Median(),
			Pages: float64(s.pages) / n, Reads: float64(s.reads) / n, Bytes: float64(s.bytes) / n,
		})
	}
	return out
}
