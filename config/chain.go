package config

import "github.com/leani-go/leani/chain"

// MainnetMergeBlock is Mainnet's first proof-of-stake block.
const MainnetMergeBlock = 15_537_394

// Chain is the [chain] table.
type Chain struct {
	// Name is the network's name. History files carry it in their names.
	Name string `toml:"name" jsonschema:"required,minLength=1"`
	// ChainID is the network's id (EIP-155).
	ChainID uint64 `toml:"chain_id" jsonschema:"required,minimum=1"`
	// MergeBlock is the first proof-of-stake block. When absent it is 15537394 on chain 1 and
	// 0 on every other chain.
	MergeBlock uint64 `toml:"merge_block" jsonschema:"minimum=0"`
	// Genesis is the path of a genesis.json as geth writes it, plain or with the ending .gz,
	// for chains other than Mainnet: it supplies fork times and blob schedule. An extension
	// of this node.
	Genesis string `toml:"genesis" jsonschema:"minLength=1"`
}

// FilePrefix is what names of this chain's history files start with: the chain's name, except
// that the files of Ethereum Mainnet say "mainnet" whatever the settings call it.
func (c Chain) FilePrefix() string {
	if c.ChainID == chain.MainnetChainID {
		return "mainnet"
	}
	return c.Name
}
