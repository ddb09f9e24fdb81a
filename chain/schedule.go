package chain

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/params"
)

// What asking a Network's schedule fails with.
var (
	// ErrScheduleUnavailable says that the network is known by its id alone.
	ErrScheduleUnavailable = errors.New("no fork schedule for this chain")
	// ErrPredatesSchedule says that a timestamp lies before the first scheduled fork.
	ErrPredatesSchedule = errors.New("timestamp before every scheduled fork")
)

// Fork is one entry of a schedule: the rules from one activation time to the next. The
// schedule starts with the first fork that brings blobs (Cancun); earlier rules leave nothing
// to ask it for. Forks that activate together are one entry, named after the last.
type Fork struct {
	// Name is the lower-case name of the fork: "cancun", "prague", "osaka", "bpo1", …
	Name string
	// ActivationTime is in Unix seconds, 0 for a fork that is active from genesis on.
	ActivationTime uint64
	// ID is the fork hash of EIP-2124 and EIP-6122, with every fork by block number passed.
	ID [4]byte
	// Blobs are the blob parameters in force. A fork that sets none inherits those before it.
	Blobs BlobParameters
	// ReservePrice tells whether the blob fee is bounded below by execution cost (EIP-7918,
	// from Osaka on). It governs how excess blob gas develops, not what a given excess costs.
	ReservePrice bool
	// Precompiles are the precompiled contracts in force by their EIP-7910 name, ascending by
	// address.
	Precompiles []NamedContract
	// SystemContracts are the contracts that block processing calls, ascending by name.
	SystemContracts []NamedContract
}

// NamedContract is a contract with the name that EIP-7910 gives it.
type NamedContract struct {
	Name    string
	Address common.Address
}

// Upgrades is a schedule as seen from one moment: what eth_config reports (EIP-7910).
type Upgrades struct {
	Current *Fork
	// Next and Last are the following and the final fork, nil when Current is the final one.
	Next, Last *Fork
}

// Forks is the schedule, ascending by activation time; empty for a network known by its id
// alone. The caller must not change it.
func (n *Network) Forks() []Fork { return n.forks }

// ForkAt is the scheduled fork that a block of this timestamp belongs to. It fails with
// ErrScheduleUnavailable or ErrPredatesSchedule.
func (n *Network) ForkAt(timestamp uint64) (*Fork, error) {
	i, err := n.forkIndex(timestamp)
	if err != nil {
		return nil, err
	}
	return &n.forks[i], nil
}

// UpgradesAt is the schedule as seen from a head block of this timestamp; neither its number
// nor the clock play a part. It fails with ErrScheduleUnavailable or ErrPredatesSchedule.
func (n *Network) UpgradesAt(timestamp uint64) (Upgrades, error) {
	i, err := n.forkIndex(timestamp)
	if err != nil {
		return Upgrades{}, err
	}
	upgrades := Upgrades{Current: &n.forks[i]}
	if last := len(n.forks) - 1; i < last {
		upgrades.Next, upgrades.Last = &n.forks[i+1], &n.forks[last]
	}
	return upgrades, nil
}

func (n *Network) forkIndex(timestamp uint64) (int, error) {
	if len(n.forks) == 0 {
		return 0, fmt.Errorf("%w: chain %d", ErrScheduleUnavailable, n.chainID)
	}
	after, _ := slices.BinarySearchFunc(n.forks, timestamp, func(f Fork, t uint64) int {
		if f.ActivationTime <= t {
			return -1
		}
		return 1
	})
	if after == 0 {
		return 0, fmt.Errorf("%w: %d is before %s at %d", ErrPredatesSchedule, timestamp, n.forks[0].Name,
			n.forks[0].ActivationTime)
	}
	return after - 1, nil
}

// step is what one fork changes. Forks imply the rules of all that precede them in the list
// of scheduleForks, configured or not.
type step struct {
	name  string
	time  *uint64
	blobs *params.BlobConfig // nil: inherits
	// rules ranks what the fork switches on beyond blob parameters.
	rules rules
}

// checkConfig refuses what no schedule can be derived from.
func checkConfig(c *params.ChainConfig) error {
	switch {
	case c.ChainID == nil || c.ChainID.Sign() <= 0:
		return errors.New("chain configuration without chain id")
	case !c.ChainID.IsUint64():
		return fmt.Errorf("chain id %v does not fit 64 bits", c.ChainID)
	}
	for _, block := range blockForkNumbers(c) {
		if !block.IsUint64() {
			return fmt.Errorf("fork block %v does not fit 64 bits", block)
		}
	}
	return c.CheckConfigForkOrder()
}

// scheduleForks derives the schedule. Forks take effect in the order of their times. (go-ethereum's
// eth_config goes by the order of its fork list instead, which differs when a parameter-only
// fork follows Amsterdam.)
func scheduleForks(c *params.ChainConfig, genesis Genesis) []Fork {
	blobs := c.BlobScheduleConfig
	if blobs == nil {
		blobs = new(params.BlobScheduleConfig)
	}
	steps := []step{
		{"cancun", c.CancunTime, blobs.Cancun, rulesCancun},
		{"prague", c.PragueTime, blobs.Prague, rulesPrague},
		{"osaka", c.OsakaTime, nil, rulesOsaka},
		{"bpo1", c.BPO1Time, blobs.BPO1, rulesCancun},
		{"bpo2", c.BPO2Time, blobs.BPO2, rulesCancun},
		{"bpo3", c.BPO3Time, blobs.BPO3, rulesCancun},
		{"bpo4", c.BPO4Time, blobs.BPO4, rulesCancun},
		{"bpo5", c.BPO5Time, blobs.BPO5, rulesCancun},
		{"amsterdam", c.AmsterdamTime, nil, rulesAmsterdam},
		{"bogota", c.BogotaTime, nil, rulesAmsterdam},
	}
	steps = slices.DeleteFunc(steps, func(s step) bool { return s.time == nil })
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(*a.time, *b.time) })

	ids := newForkIDs(c, genesis)
	var (
		forks  []Fork
		active rules
		params *params.BlobConfig
	)
	for _, s := range steps {
		active = max(active, s.rules)
		if s.blobs != nil {
			params = s.blobs
		}
		if params == nil {
			continue
		}
		fork := Fork{
			Name:            s.name,
			ActivationTime:  *s.time,
			ID:              ids.at(*s.time),
			Blobs:           BlobParameters{Target: uint64(params.Target), Max: uint64(params.Max), UpdateFraction: params.UpdateFraction},
			ReservePrice:    active >= rulesOsaka,
			Precompiles:     active.precompiles(),
			SystemContracts: active.systemContracts(c.DepositContractAddress),
		}
		if fork.ActivationTime <= genesis.Timestamp {
			fork.ActivationTime = 0
		}
		if last := len(forks) - 1; last >= 0 && forks[last].ActivationTime == fork.ActivationTime {
			forks[last] = fork
		} else {
			forks = append(forks, fork)
		}
	}
	return forks
}

// forkIDs computes fork hashes: the CRC-32 of the genesis hash and of every fork passed, as
// big-endian 64-bit numbers (EIP-2124), activation times after activation blocks (EIP-6122).
type forkIDs struct {
	merged uint32 // checksum with all forks by block number
	times  []uint64
}

func newForkIDs(c *params.ChainConfig, genesis Genesis) forkIDs {
	sum := crc32.ChecksumIEEE(genesis.Hash[:])
	for _, block := range blockForks(c) {
		sum = addFork(sum, block)
	}
	return forkIDs{merged: sum, times: timeForks(c, genesis.Timestamp)}
}

// at is the fork hash with every fork passed that activates at or before the time.
func (f forkIDs) at(time uint64) (id [4]byte) {
	sum := f.merged
	for _, t := range f.times {
		if t > time {
			break
		}
		sum = addFork(sum, t)
	}
	binary.BigEndian.PutUint32(id[:], sum)
	return id
}

func addFork(sum uint32, fork uint64) uint32 {
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], fork)
	return crc32.Update(sum, crc32.IEEETable, number[:])
}

// distinctAbove sorts the values and drops repeated ones and those up to floor.
func distinctAbove(values []uint64, floor uint64) []uint64 {
	slices.Sort(values)
	values = slices.Compact(values)
	first, found := slices.BinarySearch(values, floor)
	if found {
		first++
	}
	return values[first:]
}
