package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/leani-go/leani/internal/regular"
)

// Version is the only schema version this package reads.
const Version = 1

// maximumFileBytes bounds a settings file. Real ones have a few kilobytes; the cap keeps a
// mistyped path (a disk image, /dev/zero) from being read into memory.
const maximumFileBytes = 1 << 20

// Config is the whole settings file.
//
// It has two forms. The advanced form spells out chain, budgets, sources, processors and rpc.
// The starter form names a network and a preset and leaves the rest to defaults.
type Config struct {
	// ConfigVersion is the version of the schema the file is written for, always 1.
	ConfigVersion uint64 `toml:"config_version" jsonschema:"required,enum=1"`
	// Network marks the starter form and names its chain.
	Network string `toml:"network" jsonschema:"enum=ethereum-mainnet"`
	// DataDir is the directory of everything the node writes. A relative path starts at the
	// directory of the settings file.
	DataDir string `toml:"data_dir" jsonschema:"minLength=1" default:"./data"`
	// Chain says which chain the node works on.
	Chain Chain `toml:"chain"`
	// RawHistory sets what of the chain's own material is kept, and how much.
	RawHistory RawHistory `toml:"raw_history"`
	// ArtifactStorage sets where finalized results of processors are kept.
	ArtifactStorage ArtifactStorage `toml:"artifact_storage"`
	// Budgets bounds memory, disk and parallel work.
	Budgets Budgets `toml:"budgets"`
	// Sources says where blocks come from.
	Sources Sources `toml:"sources"`
	// Finality says how the node learns which blocks are final.
	Finality Finality `toml:"finality"`
	// Processors lists the derivations that run over the chain. The list may be empty when
	// raw history is enabled (an extension of this node).
	Processors []Processor `toml:"processors"`
	// Blocks is the starter preset for block summaries; the table is empty.
	Blocks *BlocksPreset `toml:"blocks"`
	// Uniswap is the starter preset for Uniswap prices.
	Uniswap *UniswapPreset `toml:"uniswap"`
	// RPC sets the Ethereum JSON-RPC listeners and their limits.
	RPC RPC `toml:"rpc"`
	// API sets the native HTTP interface.
	API API `toml:"api"`

	// Warnings names settings that were accepted and have no effect in this build, are
	// deprecated, or count as another value.
	Warnings []Warning `toml:"-"`
}

// BlocksPreset is the [blocks] table of the starter form. It has no keys.
type BlocksPreset struct{}

// UniswapPreset is the [uniswap] table of the starter form.
type UniswapPreset struct {
	// Markets are the pairs to follow.
	Markets []string `toml:"markets" jsonschema:"required,minItems=1,uniqueItems=true,enum=ETH/USDC,enum=ETH/USDT,enum=WBTC/ETH"`
}

// Warning is a remark on a setting that was accepted.
type Warning struct {
	Field   string `json:"field"`   // the key's path
	Message string `json:"message"` // one sentence without a final period
}

// Load reads and checks the settings file at path. Every error is an *Error; a file that
// cannot be read gives one Problem of kind Unreadable.
func Load(path string) (*Config, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return Parse(data, path, filepath.Dir(abs))
}

// Parse checks a settings document. name is what problems call the file, and dir the absolute
// directory at which its relative paths start. Every error is an *Error.
func Parse(data []byte, name, dir string) (*Config, error) {
	doc, err := parseDocument(data)
	if err != nil {
		return nil, &Error{Path: name, Problems: []Problem{err.located(name)}}
	}
	c := &checker{doc: doc, file: name, config: new(Config)}
	c.decode()
	c.rules()
	c.availability()
	c.resolve(dir)
	if err := c.result(); err != nil {
		return nil, err
	}
	return c.config, nil
}

func readFile(path string) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maximumFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maximumFileBytes {
		return nil, fmt.Errorf("larger than %d bytes", maximumFileBytes)
	}
	return data, nil
}

// unreadable reports a file that could not be read, with the operating system's reason once
// and the path once.
func unreadable(path string, err error) *Error {
	var pathError *os.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	fix := "check the path and its permissions"
	if errors.Is(err, os.ErrNotExist) {
		fix = "write one with `leani init`, or name another file with --config"
	}
	return &Error{Path: path, Problems: []Problem{{
		Kind:    Unreadable,
		Message: fmt.Sprintf("failed to read configuration at %s: %v", path, err),
		Fix:     fix,
	}}}
}
