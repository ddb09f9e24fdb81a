package load

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/zeebo/xxh3"

	"github.com/leani-go/leani/bench"
	"github.com/leani-go/leani/chain"
)

// expected is a request over HTTP with the answer that it must get.
type expected struct {
	class string
	body  []byte
	sum   xxh3.Uint128 // of the answer
	bytes int
}

const (
	opening = `{"jsonrpc":"2.0","id":1,"result":[`
	closing = `]}`

	batchClass = "batch of 5 light queries"
	tipClass   = "newest blocks, up to latest"

	// batchCalls is how many queries a batch has, batchLimit how long the answer to one of them may be.
	batchCalls, batchLimit = 5, 32 << 10
	// batchCount is how many different batches there are.
	batchCount = 64
)

// answering gathers the answer to a query while blocks pass.
type answering struct {
	query *bench.Query
	hash  *xxh3.Hasher
	text  []byte // as far as a batch may need it
	bytes int
	logs  int
}

func (a *answering) write(text []byte) {
	_, _ = a.hash.Write(text) // does not fail
	a.bytes += len(text)
	if a.bytes <= batchLimit {
		a.text = append(a.text, text...)
	}
}

// expectQueries computes the answers of all queries over the history, and of batches of them.
func (s *scenario) expectQueries(random *rand.Rand) error {
	queries, err := s.corpus.ProvedQueries(s.hash)
	if err != nil {
		return err
	}
	list := make([]*answering, len(queries))
	for i := range queries {
		list[i] = &answering{query: &queries[i], hash: xxh3.New()}
		list[i].write([]byte(opening))
	}
	json := make([][]byte, 0, 1024)
	for _, b := range s.history {
		json = json[:0]
		for range b.Logs {
			json = append(json, nil)
		}
		each(b, func(i int, l *chain.FoundLog) {
			for _, a := range list {
				if !a.query.Blocks.Contains(b.Number) || !a.query.Filter.Match(&l.Log) {
					continue
				}
				if json[i] == nil {
					json[i] = s.encoder.AppendLog(nil, l)
				}
				if a.logs > 0 {
					a.write([]byte(","))
				}
				a.write(json[i])
				a.logs++
			}
		})
	}
	var light []*answering
	for _, a := range list {
		if a.logs != a.query.Expect {
			return fmt.Errorf("query %s: %d logs in the blocks, %d in the corpus", a.query.ID, a.logs, a.query.Expect)
		}
		a.write([]byte(closing))
		s.queries = append(s.queries, expected{class: a.query.Class, body: a.query.Body(), sum: a.hash.Sum128(), bytes: a.bytes})
		if a.bytes <= batchLimit {
			light = append(light, a)
		}
	}
	for range batchCount {
		body, answer := []byte("["), []byte("[")
		for k := range batchCalls {
			if k > 0 {
				body, answer = append(body, ','), append(answer, ',')
			}
			a := light[random.IntN(len(light))]
			body, answer = append(body, a.query.Body()...), append(answer, a.text...)
		}
		body, answer = append(body, ']'), append(answer, ']')
		s.batches = append(s.batches, expected{class: batchClass, body: body, sum: xxh3.Hash128(answer), bytes: len(answer)})
	}
	return nil
}

// tip is a question about the newest blocks, whose answer changes with each event.
type tip struct {
	body   []byte
	filter chain.LogFilter
	// states lists after how many events the answer has a sum, ascending.
	states map[xxh3.Uint128][]int
}

// expectTips computes the answers of the questions about the newest blocks for each state of the chain.
func (s *scenario) expectTips(filters []chain.LogFilter) error {
	from := s.corpus.Blocks - min(tipBlocks, s.corpus.Blocks)
	var old []*blockJSON
	for _, b := range s.history[from:] {
		j := &blockJSON{block: b}
		if err := s.write(j); err != nil {
			return err
		}
		old = append(old, j)
	}
	for _, f := range filters {
		t := &tip{filter: f, states: make(map[xxh3.Uint128][]int)}
		object := filterObject(&f)
		object["fromBlock"], object["toBlock"] = fmt.Sprintf("%#x", from), "latest"
		var err error
		if t.body, err = callOf("eth_getLogs", object); err != nil {
			return err
		}
		parts := make(map[*blockJSON][]byte) // the logs of a block, each with a comma behind it
		part := func(b *blockJSON) []byte {
			text, ok := parts[b]
			if !ok {
				for i := range b.block.Logs {
					if f.Match(&b.block.Logs[i]) {
						text = append(append(text, b.logs[i]...), ',')
					}
				}
				parts[b] = text
			}
			return text
		}
		var answer []byte
		s.states(func(state int, live []*blockJSON) {
			answer = append(answer[:0], opening...)
			for _, list := range [][]*blockJSON{old, live} {
				for _, b := range list {
					answer = append(answer, part(b)...)
				}
			}
			answer = append(bytes.TrimSuffix(answer, []byte(",")), closing...)
			sum := xxh3.Hash128(answer)
			t.states[sum] = append(t.states[sum], state)
		})
		s.tips = append(s.tips, t)
	}
	return nil
}

// state finds the earliest state with an answer that is not before one and not behind another; false if there is none.
func (t *tip) state(sum xxh3.Uint128, from, to int) (int, bool) {
	for _, state := range t.states[sum] {
		if state >= from && state <= to {
			return state, true
		}
	}
	return 0, false
}

// stream sums up notifications in their order.
type stream struct {
	sum   uint64
	count uint64
}

// add adds a notification.
func (s *stream) add(result []byte) { s.addSum(xxh3.Hash(result)) }

func (s *stream) addSum(sum uint64) {
	s.sum = (s.sum<<5 | s.sum>>59) * 0x9e3779b97f4a7c15 // the golden ratio, to tell orders apart
	s.sum ^= sum
	s.count++
}

// followed is a filter that is subscribed to.
type followed struct {
	params []byte // of eth_subscribe
	filter chain.LogFilter
	all    stream // everything that is told in a run
	// before is how many logs were told when a head is, by head.
	before []uint32
}

// expectStreams computes what subscriptions get: the logs of filters, and heads.
func (s *scenario) expectStreams() (heads stream) {
	removed := make(map[*blockJSON][][]byte)
	for _, e := range s.events {
		for _, b := range e.undone {
			list := make([][]byte, len(b.logs))
			each(b.block, func(i int, l *chain.FoundLog) { list[i] = s.encoder.AppendRemovedLog(nil, l) })
			removed[b] = list
		}
	}
	for _, e := range s.events {
		for _, b := range e.undone {
			s.tell(b.block, removed[b])
		}
		for _, b := range e.applied {
			s.tell(b.block, b.logs)
			heads.add(b.head)
			for _, f := range s.filters {
				f.before = append(f.before, uint32(f.all.count))
			}
		}
	}
	return heads
}

// tell tells the filters logs of a block.
func (s *scenario) tell(b *chain.Block, json [][]byte) {
	sums := make([]uint64, len(json))
	for i, text := range json {
		sums[i] = xxh3.Hash(text)
	}
	for _, f := range s.filters {
		for i := range b.Logs {
			if f.filter.Match(&b.Logs[i]) {
				f.all.addSum(sums[i])
			}
		}
	}
}
