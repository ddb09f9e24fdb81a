package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/leani-go/leani/api/ethjson"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/engine/history"
	"github.com/leani-go/leani/keys"
	"github.com/leani-go/leani/segments"
)

// StoreOptions configure OpenStore. Dir is required, and ChainID for a new store.
type StoreOptions struct {
	Dir          string
	ChainID      uint64
	CacheBytes   int64             // page cache; 0 is the default of package history
	Compression  codec.Compression // of cold pages
	TargetBlocks uint64            // blocks of a data file; 0 is the default of package history
	ReadOnly     bool
}

// Store is an open store. Safe for concurrent use.
type Store struct {
	Engine  *engine.Engine
	History *history.Store
}

// OpenStore opens or creates a store. The caller closes it.
func OpenStore(o StoreOptions) (*Store, error) {
	e, err := engine.Open(engine.Options{Dir: o.Dir, ChainID: o.ChainID, ReadOnly: o.ReadOnly})
	if err != nil {
		return nil, err
	}
	h := history.New(e, history.Options{CacheBytes: o.CacheBytes, Compression: o.Compression, TargetBlocks: o.TargetBlocks})
	return &Store{Engine: e, History: h}, nil
}

// Close closes the store; nothing uses it any more.
func (s *Store) Close() error { return s.Engine.Close() }

// Space says what the files of a store hold and how large they are.
type Space struct {
	Files                      int
	Blocks, Transactions, Logs uint64
	DataBytes, IndexBytes      int64
	SendersBytes               int64
}

// Space adds up the files.
func (s *Store) Space() Space {
	snap := s.Engine.Acquire()
	defer snap.Release()
	var sum Space
	for _, kind := range keys.Kinds() {
		for _, r := range snap.Rows(kind) {
			sum.Files++
			switch kind {
			case engine.KindData:
				sum.Blocks += r.Blocks()
				sum.Transactions += r.Transactions
				sum.Logs += r.Logs
				sum.DataBytes += r.Size
			case engine.KindIndex:
				sum.IndexBytes += r.Size
			case engine.KindSenders:
				sum.SendersBytes += r.Size
			}
		}
	}
	return sum
}

// Answer is what a query in process returned and cost.
type Answer struct {
	Logs   int
	JSON   []byte // the result without an envelope; on the buffer that was given
	Access segments.Access
}

// errCount says that an answer has not the logs it must have.
var errCount = errors.New("wrong number of logs")

// Ask answers a log query in process: it opens a view, finds the logs and encodes them with the
// encoder, or only counts them when that is nil. buf is reused for the JSON. The number of logs must be
// as expected.
func (s *Store) Ask(ctx context.Context, q *Query, encoder *ethjson.Encoder, buf []byte) (Answer, error) {
	a, err := s.ask(ctx, q, encoder, buf[:0])
	if err == nil && a.Logs != q.Expect {
		err = fmt.Errorf("%w: got %d want %d", errCount, a.Logs, q.Expect)
	}
	if err != nil {
		return a, fmt.Errorf("query %s: %w", q.ID, err)
	}
	return a, nil
}

func (s *Store) ask(ctx context.Context, q *Query, encoder *ethjson.Encoder, buf []byte) (Answer, error) {
	v, err := s.History.View()
	if err != nil {
		return Answer{}, err
	}
	defer v.Close()
	blocks := q.Blocks
	if q.BlockHash != nil {
		n, ok, err := v.NumberByHash(*q.BlockHash)
		if err != nil {
			return Answer{}, err
		}
		if !ok {
			return Answer{}, fmt.Errorf("block %x is not there", *q.BlockHash)
		}
		blocks = chain.Range{From: n, To: n + 1}
	}
	a := Answer{JSON: append(buf, '[')}
	err = v.Logs(ctx, blocks, &q.Filter, func(l *chain.FoundLog) error {
		a.Logs++
		if encoder != nil {
			if a.Logs > 1 {
				a.JSON = append(a.JSON, ',')
			}
			a.JSON = encoder.AppendLog(a.JSON, l)
		}
		return nil
	})
	a.JSON = append(a.JSON, ']')
	a.Access = v.Access()
	return a, err
}
