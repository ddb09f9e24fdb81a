package bench

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// CorpusChainID is the chain id of stores that hold the corpus.
const CorpusChainID = 730_002

// The shape of the corpus: averages and popularity as measured on a busy chain, where few contracts
// emit most logs and few accounts take part in most transfers.
const (
	corpusTokens  = 300 // contracts that emit most transfers
	corpusPairs   = 120 // exchange pairs
	corpusNFTs    = 60
	corpusRouters = 8
	corpusRare    = 3000    // seldom used tokens, by popularity
	corpusSenders = 20_000  // holders that send transactions, by popularity
	corpusHolders = 200_000 // holders that receive, by popularity; the first are the senders

	// Where the popular end of rare tokens and of holders ends. Beyond it, every epoch of the chain
	// has new ones, so that the number of distinct values grows with the chain.
	corpusRareKept    = 300
	corpusHoldersKept = 20_000
	corpusEpoch       = 5000 // blocks

	// Transactions of a block: evenly from least to most, or none in one of corpusEmpty blocks.
	corpusLeastTransactions = 190
	corpusMostTransactions  = 266
	corpusEmpty             = 400
)

// Corpus is a chain for measuring: blocks with linked headers, transactions of a few meaningless
// bytes, receipts, and logs whose contracts, events, holders and amounts are distributed as on a busy
// chain, about 228 transactions and 432 logs a block. Roots, blooms, state and signatures mean
// nothing: it is written to a store without verification, which makes 20 million logs affordable.
//
// Every block follows from the seed and its number alone, but for the parent hash. A Corpus is
// immutable and safe for concurrent use.
type Corpus struct {
	Seed   uint64
	Blocks uint64 // it holds blocks 0 to Blocks-1

	tokens, pairs, nfts, rare, senders, holders *zipf

	fixed      []common.Address // contracts below firstRare
	signatures [events]common.Hash
}

// event is what a log reports. Each has a signature, except one.
type event uint8

const (
	eventTransfer  event = iota // of an amount
	eventMint                   // transfer of a numbered token; same signature
	eventApproval               // of an amount
	eventSwap                   // at a pair
	eventSync                   // of the reserves of a pair
	eventDeposit                // into wrapped ether
	eventWithdraw               // from wrapped ether
	eventSingle                 // transfer of several of a numbered token
	eventPaused                 // with the signature as only topic
	eventAnonymous              // no topics

	events
)

// signatureText gives the events their first topic.
var signatureText = [events]string{
	eventTransfer: "Transfer(address,address,uint256)",
	eventMint:     "Transfer(address,address,uint256)",
	eventApproval: "Approval(address,address,uint256)",
	eventSwap:     "Swap(address,address,int256,int256,uint160,uint128,int24)",
	eventSync:     "Sync(uint112,uint112)",
	eventDeposit:  "Deposit(address,uint256)",
	eventWithdraw: "Withdrawal(address,uint256)",
	eventSingle:   "TransferSingle(address,address,address,uint256,uint256)",
	eventPaused:   "Paused(address)",
}

// dataBytes is the length of the data of an event; that of anonymous logs varies.
var dataBytes = [events]int{
	eventTransfer: 32, eventApproval: 32, eventSwap: 160, eventSync: 64,
	eventDeposit: 32, eventWithdraw: 32, eventSingle: 64, eventPaused: 32, eventAnonymous: 32,
}

// contract numbers the contracts: tokens, pairs, NFTs, routers, then rare tokens.
type contract uint32

const (
	firstPair   contract = corpusTokens
	firstNFT             = firstPair + corpusPairs
	firstRouter          = firstNFT + corpusNFTs
	firstRare            = firstRouter + corpusRouters
)

// word stands for a topic behind the first: a holder, a contract, a number, or zero.
type word uint32

const (
	wordKind     word = 0xf000_0000
	wordHolder   word = 0x1000_0000
	wordContract word = 0x2000_0000
	wordNumber   word = 0x3000_0000
	wordZero     word = 0
	wordAbsent   word = 0xffff_ffff
)

// sketch is a log in small: everything that queries ask for, and nothing of the data.
type sketch struct {
	transaction uint16
	event       event
	contract    contract
	words       [3]word // topics 1 to 3, wordAbsent where there is none
}

// blockSketch is a block in small.
type blockSketch struct {
	number uint64
	failed []bool // by transaction
	logs   []sketch

	random rand.PCG
	corpus *Corpus
}

// NewCorpus prepares a corpus.
func NewCorpus(seed, blocks uint64) *Corpus {
	c := &Corpus{
		Seed: seed, Blocks: blocks,
		tokens: newZipf(corpusTokens, 1.1, 1.5), pairs: newZipf(corpusPairs, 1.1, 2), nfts: newZipf(corpusNFTs, 1.1, 2),
		rare: newZipf(corpusRare, 1.2, 30), senders: newZipf(corpusSenders, 1.05, 20), holders: newZipf(corpusHolders, 1.05, 20),
	}
	for i := range int(firstRare) {
		c.fixed = append(c.fixed, c.address(uint64(wordContract), uint64(i)))
	}
	for e, text := range signatureText {
		if text != "" {
			c.signatures[e] = crypto.Keccak256Hash([]byte(text))
		}
	}
	return c
}

// epochs is the number of begun epochs.
func (c *Corpus) epochs() uint64 { return (c.Blocks + corpusEpoch - 1) / corpusEpoch }

// contracts is the number of contracts of the whole chain.
func (c *Corpus) contracts() uint64 {
	return uint64(firstRare) + corpusRareKept + c.epochs()*(corpusRare-corpusRareKept)
}

// accounts is the number of holders of the whole chain.
func (c *Corpus) accounts() uint64 {
	return corpusHoldersKept + c.epochs()*(corpusHolders-corpusHoldersKept)
}

// scramble is the output function of SplitMix64 (Steele, Lea, Flood 2014).
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// address derives the address of a holder or contract.
func (c *Corpus) address(kind, id uint64) (a common.Address) {
	x := scramble(c.Seed ^ kind<<32 ^ id)
	binary.BigEndian.PutUint64(a[:], x)
	binary.BigEndian.PutUint64(a[8:], scramble(x))
	binary.BigEndian.PutUint32(a[16:], uint32(scramble(x^1)))
	return a
}

// contractAddress is the address of a contract.
func (c *Corpus) contractAddress(id contract) common.Address {
	if id < firstRare {
		return c.fixed[id]
	}
	return c.address(uint64(wordContract), uint64(id))
}

// topic is the value of a word.
func (c *Corpus) topic(w word) (h common.Hash) {
	switch id := uint64(w &^ wordKind); w & wordKind {
	case wordHolder:
		a := c.address(uint64(wordHolder), id)
		copy(h[12:], a[:])
	case wordContract:
		a := c.contractAddress(contract(id))
		copy(h[12:], a[:])
	case wordNumber:
		binary.BigEndian.PutUint64(h[24:], id)
	}
	return h
}

// sketch draws the logs of block n into s, whose memory it reuses.
func (c *Corpus) sketch(n uint64, s *blockSketch) {
	s.number, s.corpus = n, c
	s.failed, s.logs = s.failed[:0], s.logs[:0]
	s.random.Seed(c.Seed, 2*n)
	if s.below(corpusEmpty) == 0 {
		return
	}
	for range corpusLeastTransactions + s.below(corpusMostTransactions-corpusLeastTransactions+1) {
		s.failed = append(s.failed, false)
		s.transaction()
	}
}

// below draws a number below n.
func (s *blockSketch) below(n uint64) uint64 { return s.random.Uint64() >> 32 * n >> 32 }

func (s *blockSketch) add(e event, at contract, words ...word) {
	l := sketch{transaction: uint16(len(s.failed) - 1), event: e, contract: at, words: [3]word{wordAbsent, wordAbsent, wordAbsent}}
	copy(l.words[:], words)
	s.logs = append(s.logs, l)
}

func (s *blockSketch) token() contract { return contract(s.corpus.tokens.draw(s.random.Uint64())) }
func (s *blockSketch) pair() contract {
	return firstPair + contract(s.corpus.pairs.draw(s.random.Uint64()))
}
func (s *blockSketch) nft() contract {
	return firstNFT + contract(s.corpus.nfts.draw(s.random.Uint64()))
}
func (s *blockSketch) router() word {
	return ofContract(firstRouter + contract(s.below(corpusRouters)))
}
func (s *blockSketch) sender() word {
	return wordHolder | word(s.corpus.senders.draw(s.random.Uint64()))
}

func ofContract(c contract) word { return wordContract | word(c) }

// fresh gives a rank beyond what is kept a number of its own in the epoch.
func (s *blockSketch) fresh(rank, kept, all uint64) uint64 {
	if rank < kept {
		return rank
	}
	return rank + s.number/corpusEpoch*(all-kept)
}

func (s *blockSketch) receiver() word {
	return wordHolder | word(s.fresh(uint64(s.corpus.holders.draw(s.random.Uint64())), corpusHoldersKept, corpusHolders))
}

func (s *blockSketch) rareToken() contract {
	return firstRare + contract(s.fresh(uint64(s.corpus.rare.draw(s.random.Uint64())), corpusRareKept, corpusRare))
}

// transaction draws the logs of the newest transaction: what it does, in thousandths.
func (s *blockSketch) transaction() {
	user := s.sender()
	switch kind := s.below(1000); {
	case kind < 245: // ether changes hands, or a contract is created: no logs
	case kind < 265:
		s.failed[len(s.failed)-1] = true
	case kind < 600:
		s.add(eventTransfer, s.token(), user, s.receiver())
	case kind < 625:
		s.add(eventTransfer, s.rareToken(), user, s.receiver())
	case kind < 675:
		s.add(eventApproval, s.token(), user, s.router())
	case kind < 925:
		s.swap(user)
	case kind < 955:
		s.mint(user)
	case kind < 965:
		s.add(eventSingle, s.nft(), user, user, s.receiver())
	case kind < 985:
		s.add(eventDeposit, 0, user)
	case kind < 992:
		s.add(eventPaused, s.token())
	default:
		s.add(eventAnonymous, s.token())
	}
}

// swap is a route of one to four hops through pairs: a token in, a token out, the reserves at times,
// and the swap itself.
func (s *blockSketch) swap(user word) {
	router := s.router()
	in, from := s.token(), user
	for hop := 0; ; hop++ {
		last := hop == 3 || s.below(100) >= 35
		to := router
		if last {
			to = user
		}
		pair, out := s.pair(), s.token()
		s.add(eventTransfer, in, from, ofContract(pair))
		s.add(eventTransfer, out, ofContract(pair), to)
		if s.below(2) == 0 {
			s.add(eventSync, pair)
		}
		s.add(eventSwap, pair, router, to)
		if last {
			break
		}
		in, from = out, router
	}
	switch s.below(8) {
	case 0:
		s.add(eventDeposit, 0, router)
	case 1:
		s.add(eventWithdraw, 0, router)
	}
}

// mint moves one numbered token, or makes several.
func (s *blockSketch) mint(user word) {
	at := s.nft()
	number := func() word { return wordNumber | word(s.random.Uint64()>>40) }
	if s.below(4) > 0 {
		s.add(eventMint, at, user, s.receiver(), number())
		return
	}
	for range 1 + s.below(10) {
		s.add(eventMint, at, wordZero, user, number())
	}
}
