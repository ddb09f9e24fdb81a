package chain

import (
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/params"
)

// MainnetChainID is the chain id of Ethereum Mainnet (EIP-155).
const MainnetChainID = 1

// mainnetName is what Mainnet is called in configuration, status and archive file names.
const mainnetName = "mainnet"

// Network is one Ethereum chain: its identity and, where known, its fork schedule. It is
// immutable and safe for concurrent use.
type Network struct {
	name    string
	chainID uint64
	// genesis is nil and forks are empty for a network that is known by its id alone.
	genesis *Genesis
	forks   []Fork // ascending ActivationTime
	// london is the first block with a base fee (EIP-1559); nil where none is scheduled.
	london *uint64
}

// Genesis identifies the first block of a chain.
type Genesis struct {
	Hash      common.Hash
	Timestamp uint64 // Unix seconds
}

// Mainnet is Ethereum Mainnet with the schedule that is built in.
func Mainnet() *Network {
	network, err := newNetwork(mainnetName, params.MainnetChainConfig, Genesis{Hash: params.MainnetGenesisHash})
	if err != nil {
		panic("built-in mainnet schedule: " + err.Error())
	}
	return network
}

// UnscheduledNetwork is a chain that is known by its id alone. What needs a schedule fails
// with ErrScheduleUnavailable: another chain's must never stand in for it.
func UnscheduledNetwork(name string, chainID uint64) *Network {
	return &Network{name: name, chainID: chainID}
}

// newNetwork derives the schedule from a chain configuration, which it does not keep.
func newNetwork(name string, config *params.ChainConfig, genesis Genesis) (*Network, error) {
	if err := checkConfig(config); err != nil {
		return nil, err
	}
	network := &Network{
		name:    name,
		chainID: config.ChainID.Uint64(),
		genesis: &genesis,
		forks:   scheduleForks(config, genesis),
	}
	if config.LondonBlock != nil {
		london := config.LondonBlock.Uint64() // fits: checkConfig saw it
		network.london = &london
	}
	return network, nil
}

// Name is the configured name of the network, "mainnet" for Ethereum Mainnet.
func (n *Network) Name() string { return n.name }

// ChainID is the EIP-155 chain id.
func (n *Network) ChainID() uint64 { return n.chainID }

// Genesis gives the first block, or false for a network known by its id alone.
func (n *Network) Genesis() (Genesis, bool) {
	if n.genesis == nil {
		return Genesis{}, false
	}
	return *n.genesis, true
}

// blockForkNumbers are the activation blocks that a configuration sets, in no order.
func blockForkNumbers(c *params.ChainConfig) []*big.Int {
	blocks := []*big.Int{
		c.HomesteadBlock, c.DAOForkBlock, c.EIP150Block, c.EIP155Block, c.EIP158Block, c.ByzantiumBlock,
		c.ConstantinopleBlock, c.PetersburgBlock, c.IstanbulBlock, c.MuirGlacierBlock, c.BerlinBlock,
		c.LondonBlock, c.ArrowGlacierBlock, c.GrayGlacierBlock, c.MergeNetsplitBlock,
	}
	return slices.DeleteFunc(blocks, func(b *big.Int) bool { return b == nil })
}

// blockForks are the distinct activation blocks of a configuration, ascending, without the
// forks that are active from block 0 (EIP-2124).
func blockForks(c *params.ChainConfig) []uint64 {
	numbers := blockForkNumbers(c)
	blocks := make([]uint64, len(numbers))
	for i, n := range numbers {
		blocks[i] = n.Uint64()
	}
	return distinctAbove(blocks, 0)
}

// timeForks are the distinct activation times of a configuration, ascending, without those
// at or before genesis (EIP-6122).
func timeForks(c *params.ChainConfig, genesisTime uint64) []uint64 {
	var times []uint64
	for _, time := range []*uint64{
		c.ShanghaiTime, c.CancunTime, c.PragueTime, c.OsakaTime, c.BPO1Time, c.BPO2Time, c.BPO3Time,
		c.BPO4Time, c.BPO5Time, c.AmsterdamTime, c.BogotaTime, c.UBTTime,
	} {
		if time != nil {
			times = append(times, *time)
		}
	}
	return distinctAbove(times, genesisTime)
}
