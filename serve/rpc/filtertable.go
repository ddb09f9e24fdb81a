package rpc

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
)

// filterID names an installed filter. It is random, so that nobody polls another client's.
type filterID [16]byte

// newFilterID draws an id whose text is a QUANTITY too, which some clients insist on.
func newFilterID() (id filterID) {
	_, _ = rand.Read(id[:]) // never fails
	id[0] |= 0x80
	return id
}

// readFilterID reads the id of a filter.
func readFilterID(v value) (id filterID, err error) {
	text, ok := v.text()
	if !ok {
		return id, jsonrpc.InvalidParams("the filter id has to be a string")
	}
	if len(text) == 2+2*len(id) && text[0] == '0' && (text[1] == 'x' || text[1] == 'X') {
		if _, err := hex.Decode(id[:], text[2:]); err == nil {
			return id, nil
		}
	}
	return filterID{}, nil // no filter has it
}

func (id filterID) String() string { return "0x" + hex.EncodeToString(id[:]) }

// pollFilter is one installed filter and how far its client has been told about the chain.
//
// It remembers the newest blocks that its client has been told of, with their logs: when one of
// them is no longer part of the chain, its logs are told as removed from here, because the store
// has dropped them.
type pollFilter struct {
	id       filterID
	blocks   bool            // hashes of blocks are told, not logs
	query    logQuery        // bounds of the logs that are told
	criteria chain.LogFilter // never changed
	turn     chan struct{}   // holds one token; whoever has it polls
	table    *filterTable

	// Guarded by table.mu.
	polled time.Time
	held   int64

	// Of whoever has the turn.
	started bool   // next is known
	next    uint64 // first block that has not been told
	tail    []toldBlock
}

// toldBlock is a block below next. The tail ends right below next and has no gaps.
type toldBlock struct {
	ref   chain.BlockRef
	logs  []toldLog
	bytes int64 // of logs
	// forgotten says that logs are not remembered, because the block is final or memory is short.
	forgotten bool
}

// toldLog is a log in memory of its own.
type toldLog struct {
	address                    common.Address
	topics                     [4]common.Hash
	data                       []byte
	transaction                common.Hash
	transactionIndex, logIndex uint32
	topicCount                 uint8
}

// toldLogBytes is the size of a toldLog without its data.
const toldLogBytes = 232

// toldBlockBytes is the size of a toldBlock without its logs.
const toldBlockBytes = 144

func remember(l *chain.FoundLog) toldLog {
	t := toldLog{
		address: *l.Address, data: append([]byte(nil), l.Data...), transaction: *l.TransactionHash,
		transactionIndex: l.TransactionIndex, logIndex: l.LogIndex, topicCount: l.NumTopics,
	}
	for i := range int(l.NumTopics) {
		t.topics[i] = *l.Topics[i]
	}
	return t
}

// found gives the log as the encoder takes it.
func (t *toldLog) found(block *chain.BlockRef, dst *chain.FoundLog) {
	*dst = chain.FoundLog{
		Log:   chain.Log{Address: &t.address, NumTopics: t.topicCount, Data: t.data},
		Block: block, TransactionHash: &t.transaction, TransactionIndex: t.transactionIndex, LogIndex: t.logIndex,
	}
	for i := range int(t.topicCount) {
		dst.Topics[i] = &t.topics[i]
	}
}

// filterTable holds the installed filters of all clients. It is safe for concurrent use.
//
// Nothing runs in the background: filters that expired are dropped by the next call about any.
type filterTable struct {
	now      func() time.Time
	maximum  int
	maxBytes int64
	mu       sync.Mutex
	byID     map[filterID]*pollFilter
	held     int64 // sum of the filters' held
}

func newFilterTable(limits *Limits, now func() time.Time) *filterTable {
	return &filterTable{
		now: now, maximum: limits.MaxFilters, maxBytes: int64(limits.FilterBytes), byID: make(map[filterID]*pollFilter),
	}
}

// newFilter makes a filter that is not installed yet.
func (t *filterTable) newFilter() *pollFilter {
	f := &pollFilter{id: newFilterID(), turn: make(chan struct{}, 1), table: t}
	f.turn <- struct{}{}
	return f
}

// install makes the filter known under its id, if there is room for it with the least that it holds.
func (t *filterTable) install(f *pollFilter) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expireLocked()
	if len(t.byID) >= t.maximum {
		return jsonrpc.LimitExceeded("too many filters are installed", jsonrpc.ReasonFilters, uint64(t.maximum))
	}
	least := f.fixedBytes()
	if t.held+least > t.maxBytes {
		return jsonrpc.LimitExceeded("installed filters need too much memory", jsonrpc.ReasonFilterMemory, uint64(t.maxBytes))
	}
	f.polled, f.held = t.now(), least
	t.held += least
	t.byID[f.id] = f
	f.fitLocked()
	return nil
}

// take finds a filter and waits for its turn, which give ends. A filter that was polled no longer
// than filterExpiry ago lives on from now.
func (t *filterTable) take(ctx context.Context, id filterID) (*pollFilter, error) {
	t.mu.Lock()
	t.expireLocked()
	f := t.byID[id]
	if f != nil {
		f.polled = t.now()
	}
	t.mu.Unlock()
	if f == nil {
		return nil, jsonrpc.FilterNotFound()
	}
	select {
	case <-f.turn:
		return f, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// give ends a turn and accounts for what the filter remembers now.
func (f *pollFilter) give() {
	f.table.mu.Lock()
	if f.table.byID[f.id] == f {
		f.polled = f.table.now()
		f.fitLocked()
	}
	f.table.mu.Unlock()
	f.turn <- struct{}{}
}

// remove uninstalls a filter; false when there was none.
func (t *filterTable) remove(id filterID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expireLocked()
	return t.removeLocked(id)
}

func (t *filterTable) removeLocked(id filterID) bool {
	f := t.byID[id]
	if f == nil {
		return false
	}
	delete(t.byID, id)
	t.held -= f.held
	return true
}

func (t *filterTable) expireLocked() {
	oldest := t.now().Add(-filterExpiry)
	for id, f := range t.byID {
		if f.polled.Before(oldest) {
			t.removeLocked(id)
		}
	}
}

// fixedBytes is what a filter holds at least: itself, its criteria and a full tail without logs.
func (f *pollFilter) fixedBytes() int64 {
	n := int64(512 + toldBlockBytes*rememberedBlocks + len(f.criteria.Addresses)*common.AddressLength)
	for _, alternatives := range f.criteria.Topics {
		n += int64(len(alternatives) * common.HashLength)
	}
	return n
}

// fitLocked accounts for the logs that the filter remembers, and forgets the oldest of them as far as
// memory is short. The caller has the turn.
func (f *pollFilter) fitLocked() {
	t, fixed := f.table, f.fixedBytes()
	logs := int64(0)
	for i := range f.tail {
		logs += f.tail[i].bytes
	}
	room := t.maxBytes - (t.held - f.held) - fixed
	logs = forgetOldest(f.tail, logs, min(room, maxRememberedBytes))
	t.held += fixed + logs - f.held
	f.held = fixed + logs
}

// forgetOldest drops logs of the oldest blocks until the rest fits, and returns its size.
func forgetOldest(blocks []toldBlock, bytes, limit int64) int64 {
	for i := range blocks {
		if bytes <= limit {
			break
		}
		if b := &blocks[i]; b.bytes > 0 {
			bytes -= b.bytes
			b.logs, b.bytes, b.forgotten = nil, 0, true
		}
	}
	return bytes
}
