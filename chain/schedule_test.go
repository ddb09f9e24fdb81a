package chain

import (
	"cmp"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/forkid"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The Mainnet schedule by published figures. RPC-083
func TestMainnetSchedule(t *testing.T) {
	type row struct {
		Name         string
		Time         uint64
		ID           string
		Blobs        BlobParameters
		ReservePrice bool
		Precompiles  int
		System       int
	}
	want := []row{
		{"cancun", 1_710_338_135, "9f3d2254", BlobParameters{3, 6, 3_338_477}, false, 10, 1},
		{"prague", 1_746_612_311, "c376cf8b", BlobParameters{6, 9, 5_007_716}, false, 17, 5},
		{"osaka", 1_764_798_551, "5167e2a6", BlobParameters{6, 9, 5_007_716}, true, 18, 5},
		{"bpo1", 1_765_290_071, "cba2a1c0", BlobParameters{10, 15, 8_346_193}, true, 18, 5},
		{"bpo2", 1_767_747_671, "07c9462e", BlobParameters{14, 21, 11_684_671}, true, 18, 5},
	}
	var got []row
	for _, f := range Mainnet().Forks() {
		got = append(got, row{f.Name, f.ActivationTime, common.Bytes2Hex(f.ID[:]), f.Blobs, f.ReservePrice, len(f.Precompiles), len(f.SystemContracts)})
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("schedule (-want +got):\n%s", diff)
	}
	if n := Mainnet(); n.Name() != "mainnet" || n.ChainID() != MainnetChainID {
		t.Errorf("got network %q with chain id %d", n.Name(), n.ChainID())
	}
	if g, ok := Mainnet().Genesis(); !ok || g.Hash != params.MainnetGenesisHash {
		t.Errorf("got genesis %v, %v", g, ok)
	}
}

// The fork in force is chosen by the timestamp, to the second. RPC-081, RPC-084, RPC-086
func TestUpgradesAt(t *testing.T) {
	for _, c := range []struct {
		time                uint64
		current, next, last string
	}{
		{1_710_338_135, "cancun", "prague", "bpo2"},
		{1_746_612_310, "cancun", "prague", "bpo2"},
		{1_746_612_311, "prague", "osaka", "bpo2"},
		{1_764_798_551, "osaka", "bpo1", "bpo2"},
		{1_765_290_071, "bpo1", "bpo2", "bpo2"},
		{1_767_747_670, "bpo1", "bpo2", "bpo2"},
		{1_767_747_671, "bpo2", "", ""},
		{1<<64 - 1, "bpo2", "", ""},
	} {
		u, err := Mainnet().UpgradesAt(c.time)
		if err != nil {
			t.Errorf("at %d: %v", c.time, err)
			continue
		}
		name := func(f *Fork) string {
			if f == nil {
				return ""
			}
			return f.Name
		}
		if name(u.Current) != c.current || name(u.Next) != c.next || name(u.Last) != c.last {
			t.Errorf("at %d: got %s, %s, %s; want %s, %s, %s", c.time,
				name(u.Current), name(u.Next), name(u.Last), c.current, c.next, c.last)
		}
	}
	for _, time := range []uint64{0, 1_438_269_973, 1_710_338_134} {
		if _, err := Mainnet().UpgradesAt(time); !errors.Is(err, ErrPredatesSchedule) {
			t.Errorf("at %d: got error %v, want %v", time, err, ErrPredatesSchedule)
		}
	}
}

// Another chain never gets Mainnet's schedule. RPC-087
func TestUnscheduledNetwork(t *testing.T) {
	n := UnscheduledNetwork("holesky", 17_000)
	if _, err := n.UpgradesAt(1_767_747_671); !errors.Is(err, ErrScheduleUnavailable) {
		t.Errorf("got error %v, want %v", err, ErrScheduleUnavailable)
	}
	if _, ok := n.Genesis(); ok {
		t.Error("a network known by its id has a genesis")
	}
	if len(n.Forks()) != 0 || n.ChainID() != 17_000 || n.Name() != "holesky" {
		t.Errorf("got %d forks, chain id %d, name %q", len(n.Forks()), n.ChainID(), n.Name())
	}
}

// For every fork of a random configuration the entry holds what go-ethereum derives for that
// moment: fork id, blob parameters, precompiles and system contracts.
func TestScheduleEqualsGeth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := drawConfig(t)
		header := &types.Header{Time: rapid.Uint64Range(0, 30).Draw(t, "genesis time"), Number: new(big.Int), Difficulty: new(big.Int)}
		block := types.NewBlockWithHeader(header)
		network, err := newNetwork("random", config, Genesis{Hash: block.Hash(), Timestamp: header.Time})
		if err != nil {
			t.Fatal(err)
		}
		for time := header.Time; time < 200; time++ {
			got, err := network.ForkAt(time)
			blobs := config.BlobConfig(config.LatestFork(time))
			if blobs == nil {
				if !errors.Is(err, ErrPredatesSchedule) && !errors.Is(err, ErrScheduleUnavailable) {
					t.Fatalf("at %d: got error %v", time, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("at %d: %v", time, err)
			}
			if got.ActivationTime > time || got.ActivationTime != 0 && got.ActivationTime <= header.Time {
				t.Fatalf("at %d: activation time %d, genesis %d", time, got.ActivationTime, header.Time)
			}
			rules := config.Rules(config.LondonBlock, true, time)
			if want := (BlobParameters{uint64(blobs.Target), uint64(blobs.Max), blobs.UpdateFraction}); got.Blobs != want {
				t.Fatalf("at %d: got %v, want %v", time, got.Blobs, want)
			}
			if got.ReservePrice != rules.IsOsaka {
				t.Fatalf("at %d: reserve price %v", time, got.ReservePrice)
			}
			if id := forkid.NewID(config, block, ^uint64(0), time).Hash; got.ID != id {
				t.Fatalf("at %d: got fork id %x, want %x", time, got.ID, id)
			}
			precompiles := make(map[string]common.Address)
			for address, contract := range vm.ActivePrecompiledContracts(rules) {
				precompiles[contract.Name()] = address
			}
			if diff := gocmp.Diff(precompiles, byName(got.Precompiles)); diff != "" {
				t.Fatalf("at %d: precompiles (-want +got):\n%s", time, diff)
			}
			if diff := gocmp.Diff(config.ActiveSystemContracts(time), byName(got.SystemContracts)); diff != "" {
				t.Fatalf("at %d: system contracts (-want +got):\n%s", time, diff)
			}
			if !slices.IsSortedFunc(got.Precompiles, func(a, b NamedContract) int { return a.Address.Cmp(b.Address) }) ||
				!slices.IsSortedFunc(got.SystemContracts, func(a, b NamedContract) int { return cmp.Compare(a.Name, b.Name) }) {
				t.Fatalf("at %d: contracts out of order", time)
			}
		}
	})
}

func byName(contracts []NamedContract) map[string]common.Address {
	m := make(map[string]common.Address)
	for _, c := range contracts {
		m[c.Name] = c.Address
	}
	return m
}

// drawConfig makes a configuration that geth accepts: forks in order, some of them at the same
// time. Named forks are scheduled up to some point, parameter-only forks at will.
func drawConfig(t *rapid.T) *params.ChainConfig {
	c := *params.MainnetChainConfig
	c.DepositContractAddress = common.BytesToAddress(rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "deposit contract"))
	block := int64(0)
	for _, field := range []**big.Int{
		&c.HomesteadBlock, &c.EIP150Block, &c.EIP155Block, &c.EIP158Block, &c.ByzantiumBlock,
		&c.ConstantinopleBlock, &c.PetersburgBlock, &c.IstanbulBlock, &c.BerlinBlock, &c.LondonBlock,
	} {
		block += rapid.Int64Range(0, 3).Draw(t, "blocks between forks")
		*field = big.NewInt(block)
	}
	c.DAOForkBlock, c.MuirGlacierBlock, c.ArrowGlacierBlock, c.GrayGlacierBlock = nil, nil, nil, nil
	if rapid.Bool().Draw(t, "merge netsplit") {
		c.MergeNetsplitBlock = big.NewInt(block + rapid.Int64Range(0, 3).Draw(t, "netsplit after London"))
	}
	c.BlobScheduleConfig = &params.BlobScheduleConfig{}
	blobs := func(name string) *params.BlobConfig {
		return &params.BlobConfig{
			Target:         rapid.IntRange(0, 50).Draw(t, name+" target"),
			Max:            rapid.IntRange(0, 50).Draw(t, name+" max"),
			UpdateFraction: rapid.Uint64Range(1, 1<<40).Draw(t, name+" fraction"),
		}
	}
	time := uint64(0)
	named := rapid.IntRange(1, 6).Draw(t, "named forks")
	for _, fork := range []struct {
		name  string
		time  **uint64
		blobs **params.BlobConfig
		named int // forks up to this one; parameter-only forks say which they need
	}{
		{"shanghai", &c.ShanghaiTime, nil, 1},
		{"cancun", &c.CancunTime, &c.BlobScheduleConfig.Cancun, 2},
		{"prague", &c.PragueTime, &c.BlobScheduleConfig.Prague, 3},
		{"osaka", &c.OsakaTime, nil, 4},
		{"bpo1", &c.BPO1Time, &c.BlobScheduleConfig.BPO1, 4},
		{"bpo2", &c.BPO2Time, &c.BlobScheduleConfig.BPO2, 4},
		{"amsterdam", &c.AmsterdamTime, nil, 5},
		{"bogota", &c.BogotaTime, nil, 6},
	} {
		*fork.time = nil
		if fork.named > named || strings.HasPrefix(fork.name, "bpo") && !rapid.Bool().Draw(t, fork.name) {
			continue
		}
		time += rapid.Uint64Range(0, 20).Draw(t, "seconds before "+fork.name)
		at := time
		*fork.time = &at
		if fork.blobs != nil {
			*fork.blobs = blobs(fork.name)
		}
	}
	c.BPO3Time, c.BPO4Time, c.BPO5Time, c.UBTTime = nil, nil, nil, nil
	return &c
}

// Parameter-only forks after Amsterdam take effect at their own time and keep its contracts.
func TestParameterForkAfterAmsterdam(t *testing.T) {
	c := *params.MainnetChainConfig
	at := func(v uint64) *uint64 { return &v }
	c.AmsterdamTime, c.BPO3Time = at(1_800_000_000), at(1_900_000_000)
	schedule := *c.BlobScheduleConfig
	schedule.BPO3 = &params.BlobConfig{Target: 20, Max: 30, UpdateFraction: 7}
	c.BlobScheduleConfig = &schedule
	n, err := newNetwork("mainnet", &c, Genesis{Hash: params.MainnetGenesisHash})
	if err != nil {
		t.Fatal(err)
	}
	before, _ := n.ForkAt(1_899_999_999)
	after, _ := n.ForkAt(1_900_000_000)
	if before.Name != "amsterdam" || before.Blobs.Target != 14 {
		t.Errorf("before: got %s with target %d", before.Name, before.Blobs.Target)
	}
	if after.Name != "bpo3" || after.Blobs.Target != 20 || len(after.SystemContracts) != 7 {
		t.Errorf("after: got %s with target %d and %d system contracts", after.Name, after.Blobs.Target, len(after.SystemContracts))
	}
}
