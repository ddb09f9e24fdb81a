package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest"
)

// Chain is a test chain on disk: a folder with era files and, beside or above them, its queries and
// its genesis file.
type Chain struct {
	Network *chain.Network
	Source  *ingest.EraFolder
	Ranges  []chain.Range // the blocks of its files
	Queries []Query       // nil when the folder has none
}

// names of what a test chain consists of, by convention.
const (
	chainName    = "chainlab" // prefix of its era files
	eraFolder    = "ere"
	queriesFile  = "queries.jsonl"
	genesisFile  = "genesis.json"
	genesisFileZ = "genesis.json.gz"
)

// OpenChain opens the test chain in a folder: era files there or in the folder ere below it, queries
// in queries.jsonl, and the fork schedule in genesis.json or genesis.json.gz.
func OpenChain(folder string) (*Chain, error) {
	network, err := openGenesis(folder)
	if err != nil {
		return nil, err
	}
	eras := filepath.Join(folder, eraFolder)
	if _, err := os.Stat(eras); errors.Is(err, fs.ErrNotExist) {
		eras = folder
	}
	c, err := OpenEras(eras, network)
	if err != nil {
		return nil, err
	}
	c.Queries, err = ReadQueries(filepath.Join(folder, queriesFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return c, nil
}

// OpenEras opens the era files of a network in a folder as a chain without queries.
func OpenEras(folder string, network *chain.Network) (*Chain, error) {
	source, err := ingest.OpenEraFolder(folder, network.Name())
	if err != nil {
		return nil, fmt.Errorf("open chain: %w", err)
	}
	c := &Chain{Network: network, Source: source}
	for _, e := range source.Catalog().Entries() {
		c.Ranges = append(c.Ranges, e.Range)
	}
	if len(c.Ranges) == 0 {
		return nil, fmt.Errorf("open chain: %s has no era files of %s", folder, network.Name())
	}
	return c, nil
}

// Missing lists the blocks of the chain that a store does not hold.
func (c *Chain) Missing(s *Store) (missing []chain.Range) {
	for _, r := range c.Ranges {
		missing = append(missing, s.History.Missing(r)...)
	}
	return missing
}

func openGenesis(folder string) (*chain.Network, error) {
	var first error
	for _, name := range []string{genesisFile, genesisFileZ} {
		f, err := os.Open(filepath.Join(folder, name))
		if err != nil {
			first = errors.Join(first, err)
			continue
		}
		network, err := chain.LoadGenesis(chainName, f)
		_ = f.Close() // it was only read
		if err != nil {
			return nil, fmt.Errorf("read genesis of test chain %s: %w", folder, err)
		}
		return network, nil
	}
	return nil, fmt.Errorf("open genesis of test chain: %w", first)
}
