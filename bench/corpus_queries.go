package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/leani-go/leani/chain"
)

const (
	// queriesOfClass is the number of queries of each class.
	queriesOfClass = 8
	// resultLimit is the most logs that a query returns: ranges are cut to it.
	resultLimit = 10_000
	// rareLimit is the most logs of an address that counts as rare.
	rareLimit = 20
)

// wanted is a query in the terms of sketches. An empty clause accepts everything.
type wanted struct {
	class     string
	contracts []contract
	events    []event
	words     [3][]word // topics 1 to 3
	blocks    chain.Range
	byHash    bool // ask for the only block of blocks by its hash
	cut       bool // end the range where resultLimit would be passed

	// never is a clause that nothing matches, for queries without results.
	neverAddress, neverTopic1 bool

	count int
}

// Queries makes the query set of the corpus: 16 classes of eight. Where a class says how many logs its
// queries return, they return about as many whatever the length of the chain, so that figures of
// chains of different lengths compare.
func (c *Corpus) Queries() ([]Query, error) {
	if c.Blocks < 2 {
		return nil, fmt.Errorf("queries of a corpus of %d blocks: it needs two", c.Blocks)
	}
	list := c.choose(c.histogram())
	c.count(list)
	return c.write(list)
}

// choose decides what to ask for.
func (c *Corpus) choose(h *histogram) []wanted {
	all := chain.Range{From: 0, To: c.Blocks}
	random := rand.New(rand.NewPCG(c.Seed, 0x71756572))
	transfers := []event{eventTransfer, eventMint}
	span := func(from, length uint64) chain.Range {
		return chain.Range{From: from, To: min(c.Blocks, from+length)}
	}
	hot := func(n uint64) []contract { return []contract{contract(random.Uint64N(n))} }
	holders := func(ids ...int) (words []word) {
		for _, id := range ids {
			words = append(words, wordHolder|word(id))
		}
		return words
	}
	mid := spread(h.contracts, 600, 900, 1400, 2000, 3000, 4500, 6500, 9000)
	rare := spread(h.contracts, 1, 2, 4, 6, 9, 12, 16, rareLimit)
	approvals := spread(h.approvals, 150, 300, 600, 1200, 2000, 3000, 4500, 6000)
	senders := spread(h.senders, 1, 600, 3, 1500, 8, 3500, 20, 7000)
	receivers := spread(h.receivers, 1, 200, 3, 500, 8, 900, 20, 1500)
	several := spread(h.involved, slices.Repeat([]int{30}, 10*queriesOfClass/2)...)
	many := spread(h.receivers, slices.Repeat([]int{150}, 10*queriesOfClass/2)...)
	pool := c.rarePool(h)

	var list []wanted
	add := func(class string, w wanted) {
		w.class = class
		if w.blocks.Empty() {
			w.blocks = all
		}
		list = append(list, w)
	}
	for i := range queriesOfClass {
		from := random.Uint64N(c.Blocks/2 + 1)
		add("a1_hot_addr_10k", wanted{contracts: []contract{contract(i)}, blocks: span(from, c.Blocks), cut: true})
		add("a2_mid_addr_full", wanted{contracts: []contract{contract(mid[i])}, cut: true})
		add("b_rare_addr_full", wanted{contracts: []contract{contract(rare[i])}, cut: true})
		add("c1_addr_topic0_rare_full", wanted{contracts: []contract{contract(approvals[i])}, events: []event{eventApproval}, cut: true})
		add("c2_addr_topic0_2000blk", wanted{contracts: hot(20), events: transfers, blocks: span(random.Uint64N(c.Blocks/2+1), 2000), cut: true})
		add("d_topic0_topic1_full", wanted{events: transfers, words: [3][]word{holders(senders[i])}, cut: true})
		add("e_topic2_only_full", wanted{words: [3][]word{nil, holders(receivers[i])}, cut: true})
		eighty := c.eighty(random, pool)
		hundred := slices.Clone(eighty)
		for _, k := range random.Perm(len(mid)) {
			hundred = append(hundred, contract(mid[k]))
		}
		for len(hundred) < 100 { // the less popular half of the tokens
			hundred = append(hundred, contract(corpusTokens/2+random.Uint64N(corpusTokens/2)))
		}
		add("f1_100addr_topic0", wanted{contracts: hundred, events: transfers, cut: true})
		add("f2_80rare_topic0_full", wanted{contracts: eighty, events: transfers, cut: true})
		add("g_open_20blk", wanted{blocks: span(random.Uint64N(max(1, c.Blocks-20)), 20), cut: true})
		add("h1_nomatch_addr_full", wanted{neverAddress: true})
		add("h2_nomatch_topic1_full", wanted{neverTopic1: true})
		add("h3_and_miss_full", wanted{
			contracts: hot(20), events: transfers, cut: true,
			words: [3][]word{holders(int(random.Uint64N(200))), holders(int(random.Uint64N(200)))},
		})
		block := wanted{byHash: true, blocks: span(random.Uint64N(c.Blocks), 1)}
		if i%2 == 1 {
			block.contracts = hot(20)
		}
		add("i_blockhash", block)
		ten := 10 * (i / 2)
		if i%2 == 0 {
			add("j_or_lists_full", wanted{
				events: []event{eventTransfer, eventMint, eventApproval, eventSwap}, cut: true,
				words: [3][]word{holders(several[ten : ten+10]...)},
			})
		} else {
			add("j_or_lists_full", wanted{
				events: []event{eventTransfer, eventMint, eventSwap}, cut: true,
				words: [3][]word{nil, holders(many[ten : ten+10]...)},
			})
		}
		add("k_tip100_addr_topic0", wanted{contracts: hot(5), events: transfers, blocks: span(c.Blocks-min(c.Blocks, 100), 100), cut: true})
	}
	slices.SortStableFunc(list, func(a, b wanted) int {
		return int(a.class[0])*256 + int(a.class[1]) - int(b.class[0])*256 - int(b.class[1])
	})
	return list
}

// rarePool sorts rare tokens by the number of their logs.
func (c *Corpus) rarePool(h *histogram) [rareLimit + 1][]contract {
	var pool [rareLimit + 1][]contract
	for id := firstRare; uint64(id) < c.contracts(); id++ {
		if n := h.contracts[id]; n > 0 && n <= rareLimit {
			pool[n] = append(pool[n], id)
		}
	}
	return pool
}

// eighty draws 80 rare tokens with 1 to 6 logs, 280 in all, or with more where there are none such.
func (c *Corpus) eighty(random *rand.Rand, pool [rareLimit + 1][]contract) []contract {
	var out []contract
	for i := range 80 {
		for n := 1 + i%6; n <= rareLimit; n++ {
			if ids := pool[n]; len(ids) > 0 {
				out = append(out, ids[random.IntN(len(ids))])
				break
			}
		}
	}
	return out
}

// write turns the chosen queries into calls.
func (c *Corpus) write(list []wanted) ([]Query, error) {
	var numbers []uint64
	for i := range list {
		if list[i].byHash {
			numbers = append(numbers, list[i].blocks.From)
		}
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	hashes, err := c.Hashes(numbers)
	if err != nil {
		return nil, err
	}
	out := make([]Query, len(list))
	for i := range list {
		w := &list[i]
		var hash *common.Hash
		if w.byHash {
			at, _ := slices.BinarySearch(numbers, w.blocks.From)
			hash = &hashes[at]
		}
		q, err := newLogQuery(w.class, c.filter(w, i), w.blocks, hash)
		if err != nil {
			return nil, err
		}
		q.ID, q.Expect = fmt.Sprintf("%s/%d", w.class, i%queriesOfClass), w.count
		out[i] = q
	}
	return out, nil
}

// filter is the filter of a chosen query.
func (c *Corpus) filter(w *wanted, i int) chain.LogFilter {
	var f chain.LogFilter
	for _, id := range w.contracts {
		f.Addresses = append(f.Addresses, c.contractAddress(id))
	}
	var signatures []common.Hash
	for _, e := range w.events {
		if s := c.signatures[e]; !slices.Contains(signatures, s) {
			signatures = append(signatures, s)
		}
	}
	f.Topics = [][]common.Hash{signatures}
	for _, words := range w.words {
		var topics []common.Hash
		for _, x := range words {
			topics = append(topics, c.topic(x))
		}
		f.Topics = append(f.Topics, topics)
	}
	if w.neverAddress {
		f.Addresses = []common.Address{c.address(uint64(wordKind), uint64(i))}
	}
	if w.neverTopic1 {
		f.Topics[1] = []common.Hash{crypto.Keccak256Hash([]byte(w.class), []byte{byte(i)})}
	}
	for len(f.Topics) > 0 && len(f.Topics[len(f.Topics)-1]) == 0 {
		f.Topics = f.Topics[:len(f.Topics)-1]
	}
	return f
}
