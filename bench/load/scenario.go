package load

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/leani-go/leani/api/ethjson"
	"github.com/leani-go/leani/bench"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/internal/receipt"
)

// chainName is the name of the chain in settings and era files.
const chainName = "load"

const (
	// tipBlocks is how many of the newest blocks of the history the questions about the newest blocks begin before.
	tipBlocks = 16
	// finalEvery is after how many blocks the lane learns that a block is final, finalBehind how far behind the head.
	finalEvery, finalBehind = 16, 8
)

// scenario is everything that happens in a run, and everything that has to come of it.
type scenario struct {
	corpus  *bench.Corpus
	blocks  *bench.ProvedBlocks
	encoder *ethjson.Encoder

	history []*chain.Block // dropped once all is known of it
	head    chain.BlockRef // of the history

	queries []expected
	batches []expected
	tips    []*tip
	events  []*event
	filters []*followed
	heads   uint64 // that are told in all
}

// event is one line of the script: a block, or a branch that replaces others.
type event struct {
	lines           []byte
	undone, applied []*blockJSON // in the order in which they are told
}

// blockJSON is a block as a client gets to see it.
type blockJSON struct {
	block *chain.Block
	logs  [][]byte
	head  []byte
}

func newScenario(seed, history uint64) *scenario {
	c := bench.NewCorpus(seed, history)
	return &scenario{
		corpus: c, blocks: bench.NewProvedBlocks(c),
		encoder: ethjson.NewEncoder(chain.UnscheduledNetwork(chainName, bench.CorpusChainID)),
	}
}

// make makes the next block after its parent.
func (s *scenario) make(parent *chain.BlockRef) (*blockJSON, error) {
	b, err := s.blocks.After(parent)
	if err != nil {
		return nil, err
	}
	return &blockJSON{block: b}, nil
}

// each gives the logs of a block as they are found.
func each(b *chain.Block, yield func(i int, l *chain.FoundLog)) {
	found := chain.FoundLog{Block: &b.BlockRef}
	for t := range b.Receipts {
		found.TransactionHash, found.TransactionIndex = &b.TransactionHashes[t], uint32(t)
		from := uint32(0)
		if t > 0 {
			from = b.Receipts[t-1].LogsEnd
		}
		for i := from; i < b.Receipts[t].LogsEnd; i++ {
			found.Log, found.LogIndex = b.Logs[i], i
			yield(int(i), &found)
		}
	}
}

// write makes the JSON of a block.
func (s *scenario) write(b *blockJSON) (err error) {
	b.logs = make([][]byte, len(b.block.Logs))
	each(b.block, func(i int, l *chain.FoundLog) { b.logs[i] = s.encoder.AppendLog(nil, l) })
	b.head, err = s.encoder.AppendHeader(nil, b.block)
	return err
}

// makeHistory makes the blocks that the node is filled with, and writes their era file into a folder.
func (s *scenario) makeHistory(ctx context.Context, folder string) error {
	var parent *chain.BlockRef
	for range s.corpus.Blocks {
		b, err := s.make(parent)
		if err != nil {
			return err
		}
		s.history = append(s.history, b.block)
		parent = &b.block.BlockRef
	}
	s.head = *parent
	path := filepath.Join(folder, era.FileName(chainName, 0, s.head.Hash))
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // closed below where it matters
	read := func(_ context.Context, n uint64, _ chain.Parts, dst *chain.Block) error {
		*dst = *s.history[n]
		return nil
	}
	if _, err := era.Write(ctx, f, chain.Range{From: 0, To: s.corpus.Blocks}, read, era.WriteOptions{}); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return writeChecksums(folder, path)
}

// makeEvents makes what happens while the node serves: one block after the other, and after every reorgEvery of them a branch that
// replaces the newest one, two or three.
func (s *scenario) makeEvents(blocks, reorgEvery int) error {
	branch := []*blockJSON{{block: &chain.Block{BlockRef: s.head}}} // its first block is of the history
	for n := 1; n <= blocks; n++ {
		e := new(event)
		if undo := 1 + n/max(1, reorgEvery)%3; reorgEvery > 0 && n%reorgEvery == 0 && len(branch) > undo {
			for range undo {
				e.undone = append(e.undone, branch[len(branch)-1])
				branch = branch[:len(branch)-1]
			}
		}
		for range max(1, len(e.undone)) {
			b, err := s.make(&branch[len(branch)-1].block.BlockRef)
			if err == nil {
				err = s.write(b)
			}
			if err != nil {
				return err
			}
			e.applied = append(e.applied, b)
			branch = append(branch, b)
		}
		s.heads += uint64(len(e.applied))
		if err := e.script(); err != nil {
			return err
		}
		if n%finalEvery == 0 && len(branch) > finalBehind {
			final := branch[len(branch)-finalBehind].block.Number
			e.lines = fmt.Appendf(e.lines, "{\"finalized\":{\"number\":%d}}\n", final)
		}
		s.events = append(s.events, e)
	}
	return nil
}

// script writes the line of an event.
func (e *event) script() error {
	type material struct {
		Header       hexutil.Bytes   `json:"header"`
		Transactions []hexutil.Bytes `json:"transactions"`
		Withdrawals  hexutil.Bytes   `json:"withdrawals"`
		Receipts     []hexutil.Bytes `json:"receipts"`
	}
	var list []material
	for _, a := range e.applied {
		b := a.block
		m := material{Header: b.Header, Withdrawals: b.Withdrawals}
		for i, tx := range b.Transactions {
			logs := b.ReceiptLogs(i)
			var bloom types.Bloom
			for k := range logs {
				bloom.Add(logs[k].Address[:])
				for _, topic := range logs[k].Topics[:logs[k].NumTopics] {
					bloom.Add(topic[:])
				}
			}
			m.Transactions = append(m.Transactions, tx)
			m.Receipts = append(m.Receipts, receipt.AppendCanonical(nil, &b.Receipts[i], logs, &bloom))
		}
		list = append(list, m)
	}
	line, err := json.Marshal(map[string]any{"apply": map[string]any{"blocks": list}})
	if err != nil {
		return err
	}
	e.lines = append(line, '\n')
	return nil
}

// hash is the hash of a block of the history.
func (s *scenario) hash(n uint64) common.Hash { return s.history[n].Hash }

// states calls visit with the live blocks of the chain after each event, the first time before all.
func (s *scenario) states(visit func(state int, live []*blockJSON)) {
	var live []*blockJSON
	visit(0, live)
	for i, e := range s.events {
		live = append(slices.Clip(live[:len(live)-len(e.undone)]), e.applied...)
		visit(i+1, live)
	}
}
