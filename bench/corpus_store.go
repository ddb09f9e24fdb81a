package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/leani-go/leani/chain"
)

// corpusVersion changes when a store that was made by an older release of this package must be made
// again.
const corpusVersion = 1

// corpusMark is written last into the folder of a corpus: it says that all before is complete.
type corpusMark struct {
	Version      int
	Seed, Blocks uint64
}

const (
	markFile    = "corpus.json"
	storeFolder = "store"
)

// CorpusStore is a folder with a store of the corpus and the queries over it.
type CorpusStore struct {
	Folder  string // holds the folder store and the file queries.jsonl
	Queries []Query
}

// Store is the data directory of the store.
func (c *CorpusStore) Store() string { return filepath.Join(c.Folder, storeFolder) }

// Network is the chain of the corpus.
func (c *CorpusStore) Network() *chain.Network {
	return chain.UnscheduledNetwork("corpus", CorpusChainID)
}

// MakeCorpusStore finds the complete store of a corpus in a folder, or makes it anew: it writes all
// blocks, merges the index files, and writes the queries. progress is called after each block; it may
// be nil.
func MakeCorpusStore(ctx context.Context, folder string, c *Corpus, progress func(blocks uint64)) (*CorpusStore, error) {
	want := corpusMark{corpusVersion, c.Seed, c.Blocks}
	made := &CorpusStore{Folder: folder}
	mark := filepath.Join(folder, markFile)
	queries := filepath.Join(folder, queriesFile)
	var have corpusMark
	text, err := os.ReadFile(mark)
	switch {
	case err == nil && json.Unmarshal(text, &have) == nil && have == want:
		made.Queries, err = ReadQueries(queries)
		return made, err
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("open corpus store: %w", err)
	}
	if err := errors.Join(os.RemoveAll(mark), os.RemoveAll(made.Store()), os.MkdirAll(folder, 0o755)); err != nil {
		return nil, fmt.Errorf("make corpus store: %w", err)
	}
	if err := fillCorpus(ctx, made.Store(), c, progress); err != nil {
		return nil, err
	}
	if made.Queries, err = c.Queries(); err != nil {
		return nil, err
	}
	if err := WriteQueries(queries, made.Queries); err != nil {
		return nil, err
	}
	if text, err = json.Marshal(want); err == nil {
		err = os.WriteFile(mark, text, 0o644)
	}
	if err != nil {
		return nil, fmt.Errorf("make corpus store: %w", err)
	}
	return made, nil
}

func fillCorpus(ctx context.Context, dir string, c *Corpus, progress func(uint64)) (err error) {
	s, err := OpenStore(StoreOptions{Dir: dir, ChainID: CorpusChainID})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := c.WriteTo(ctx, s, progress); err != nil {
		return err
	}
	_, err = s.History.Compact(ctx)
	return err
}
