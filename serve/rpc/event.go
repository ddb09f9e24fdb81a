package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
)

// event is one block that became part of the chain, or a whole reorganization: what the subscriptions of a
// connection get at once, or not at all. It belongs to the goroutine of the hub.
type event struct {
	sections []*section
}

// section is a block of an event: one that was undone, whose logs are removed, or one that was applied, with its
// logs and then its head. What is needed of it is loaded and written as JSON when the first subscription wants
// it, and shared by all others.
type section struct {
	ref     chain.BlockRef
	removed bool
	view    View

	logs struct {
		loaded bool
		err    error
		block  chain.Block
		places []place // by log
		json   [][]byte
		// byAddress and byTopic list the logs by their address and by each of their topics.
		byAddress map[common.Address][]uint32
		byTopic   [chain.MaximumTopics]map[common.Hash][]uint32
	}
	head struct {
		loaded bool
		err    error
		json   []byte
	}
}

// place is the transaction of a log.
type place struct{ transaction uint32 }

// eventsOf divides a change into events. Undone blocks are read from the view before the change, applied ones
// from the one after it.
func eventsOf(c *Change, before, after View) []*event {
	var sections []*section
	for _, ref := range c.Undone {
		sections = append(sections, &section{ref: ref, removed: true, view: before})
	}
	for _, ref := range c.Applied {
		sections = append(sections, &section{ref: ref, view: after})
	}
	if len(c.Undone) > 0 {
		return []*event{{sections}}
	}
	events := make([]*event, len(sections))
	for i := range sections {
		events[i] = &event{sections[i : i+1]}
	}
	return events
}

// errReplaced says that a view holds another block than the change named.
var errReplaced = errors.New("the view does not show the chain of the change")

func (s *section) load(ctx context.Context, parts chain.Parts, dst *chain.Block) error {
	if s.view == nil {
		return fmt.Errorf("load block %s: %w", s.ref, chain.ErrNotRetained)
	}
	if err := s.view.LoadBlock(ctx, s.ref.Number, parts, dst); err != nil {
		return fmt.Errorf("load block %s: %w", s.ref, err)
	}
	if dst.Hash != s.ref.Hash {
		return fmt.Errorf("load block %s: got %s: %w", s.ref, dst.BlockRef, errReplaced)
	}
	return nil
}

// loadLogs makes the logs known.
func (s *section) loadLogs(ctx context.Context) error {
	l := &s.logs
	if l.loaded {
		return l.err
	}
	l.loaded = true
	if l.err = s.load(ctx, chain.PartReceipts|chain.PartTransactionHashes, &l.block); l.err != nil {
		return l.err
	}
	b := &l.block
	l.places, l.json = make([]place, 0, len(b.Logs)), make([][]byte, len(b.Logs))
	l.byAddress = make(map[common.Address][]uint32)
	for k := range l.byTopic {
		l.byTopic[k] = make(map[common.Hash][]uint32)
	}
	for t := range b.Receipts {
		for uint32(len(l.places)) < b.Receipts[t].LogsEnd {
			i := uint32(len(l.places))
			l.places = append(l.places, place{uint32(t)})
			l.byAddress[*b.Logs[i].Address] = append(l.byAddress[*b.Logs[i].Address], i)
			for k, topic := range b.Logs[i].Topics[:b.Logs[i].NumTopics] {
				l.byTopic[k][*topic] = append(l.byTopic[k][*topic], i)
			}
		}
	}
	if len(l.places) != len(b.Logs) || len(b.TransactionHashes) != len(b.Receipts) {
		l.err = fmt.Errorf("block %s: %d logs of which receipts have %d, %d receipts and %d transactions", s.ref,
			len(b.Logs), len(l.places), len(b.Receipts), len(b.TransactionHashes))
	}
	return l.err
}

// match appends the logs that a filter selects, ascending. Of what the filter asks for, it looks only at the logs with what
// fewest logs have.
func (s *section) match(dst []uint32, f *chain.LogFilter) []uint32 {
	l := &s.logs
	few, address, position := len(l.block.Logs), false, -1
	if len(f.Addresses) > 0 {
		if n := candidates(l.byAddress, f.Addresses, few); n < few {
			few, address = n, true
		}
	}
	for i := range f.Topics {
		if i < len(l.byTopic) && len(f.Topics[i]) > 0 {
			if n := candidates(l.byTopic[i], f.Topics[i], few); n < few {
				few, address, position = n, false, i
			}
		}
	}
	start, lists := len(dst), 0
	check := func(found []uint32) {
		if len(found) > 0 {
			lists++
		}
		for _, i := range found {
			if f.Match(&l.block.Logs[i]) {
				dst = append(dst, i)
			}
		}
	}
	switch {
	case few == 0:
	case address:
		for i := range f.Addresses {
			check(l.byAddress[f.Addresses[i]])
		}
	case position >= 0:
		for i := range f.Topics[position] {
			check(l.byTopic[position][f.Topics[position][i]])
		}
	default:
		for i := range l.block.Logs {
			if f.Match(&l.block.Logs[i]) {
				dst = append(dst, uint32(i))
			}
		}
	}
	if lists > 1 {
		slices.Sort(dst[start:])
		dst = dst[:start+len(slices.Compact(dst[start:]))] // a value may stand twice in a filter
	}
	return dst
}

// candidates counts the logs with one of some values, up to a limit.
func candidates[V comparable](index map[V][]uint32, values []V, limit int) (n int) {
	for i := range values {
		if n += len(index[values[i]]); n >= limit {
			return n
		}
	}
	return n
}

// log is a log as JSON.
func (s *section) log(encode encoder, i uint32) []byte {
	l := &s.logs
	if l.json[i] != nil {
		return l.json[i]
	}
	t := l.places[i].transaction
	found := chain.FoundLog{
		Log: l.block.Logs[i], Block: &l.block.BlockRef, TransactionHash: &l.block.TransactionHashes[t],
		TransactionIndex: t, LogIndex: i,
	}
	buf := make([]byte, 0, 2*len(found.Data)+logOverhead)
	if s.removed {
		buf = encode.AppendRemovedLog(buf, &found)
	} else {
		buf = encode.AppendLog(buf, &found)
	}
	l.json[i] = buf
	return buf
}

// logOverhead is more than the JSON of a log without data takes: names, hashes, four topics.
const logOverhead = 960

// header is the head as JSON.
func (s *section) header(ctx context.Context, encode encoder) ([]byte, error) {
	h := &s.head
	if h.loaded {
		return h.json, h.err
	}
	h.loaded = true
	var b chain.Block
	const parts = chain.PartHeader | chain.PartTransactions | chain.PartOmmers | chain.PartWithdrawals
	if h.err = s.load(ctx, parts, &b); h.err == nil {
		h.json, h.err = encode.AppendHeader(nil, &b)
	}
	return h.json, h.err
}
