package rpc

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/consensus/misc/eip1559"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/google/go-cmp/cmp"
	"github.com/holiman/uint256"

	"github.com/leani-go/leani/chain"
)

// feeGenesis schedules the forks that matter to fees along a chain of blocks 12 seconds apart:
// London at block 4, blobs from 14, the reserve price of blobs from 24, other blob parameters
// from 34.
const feeGenesis = `{"config":{"chainId":1337,"homesteadBlock":0,"eip150Block":0,"eip155Block":0,"eip158Block":0,
	"byzantiumBlock":0,"constantinopleBlock":0,"petersburgBlock":0,"istanbulBlock":0,"berlinBlock":0,"londonBlock":4,
	"terminalTotalDifficulty":0,"shanghaiTime":1120,"cancunTime":1168,"pragueTime":1228,"osakaTime":1288,"bpo1Time":1408,
	"blobSchedule":{"cancun":{"target":3,"max":6,"baseFeeUpdateFraction":3338477},
	"prague":{"target":6,"max":9,"baseFeeUpdateFraction":5007716},
	"bpo1":{"target":10,"max":15,"baseFeeUpdateFraction":8346193}}},
	"timestamp":"0x3e8","gasLimit":"0x1c9c380","difficulty":"0x0","alloc":{}}`

// feeBlock is a block of the generated chain as go-ethereum has it.
type feeBlock struct {
	header   *types.Header
	body     types.Transactions
	gas      []uint64
	nextBase *big.Int
}

// feeChain generates blocks whose fees follow from each other by go-ethereum's own functions, with
// all kinds of transactions and any fullness.
func feeChain(t *testing.T, n int) (*fakeStore, *chain.Network, *params.ChainConfig, []feeBlock) {
	t.Helper()
	network, err := chain.LoadGenesis("fees", strings.NewReader(feeGenesis))
	if err != nil {
		t.Fatal(err)
	}
	var genesis struct{ Config *params.ChainConfig }
	if err := json.Unmarshal([]byte(feeGenesis), &genesis); err != nil {
		t.Fatal(err)
	}
	config := genesis.Config
	random := rand.New(rand.NewPCG(1, 2))
	store := &fakeStore{blocks: make(map[uint64]*chain.Block), coverage: []chain.Range{{From: 0, To: uint64(n)}}}
	var blocks []feeBlock
	for number := range n {
		h := &types.Header{
			Number: big.NewInt(int64(number)), Time: 1000 + 12*uint64(number), Difficulty: new(big.Int), GasLimit: 30_000_000,
			UncleHash: types.EmptyUncleHash, TxHash: types.EmptyTxsHash, ReceiptHash: types.EmptyReceiptsHash,
		}
		cancun := config.IsCancun(h.Number, h.Time)
		if number > 0 {
			parent := blocks[number-1].header
			h.ParentHash = parent.Hash()
			if config.IsLondon(h.Number) {
				h.BaseFee = eip1559.CalcBaseFee(config, parent)
			}
			if cancun {
				excess := eip4844.CalcExcessBlobGas(config, parent, h.Time)
				h.ExcessBlobGas, h.BlobGasUsed, h.ParentBeaconRoot = &excess, new(uint64), new(common.Hash)
			}
		}
		if config.IsShanghai(h.Number, h.Time) {
			h.WithdrawalsHash = &types.EmptyWithdrawalsHash
		}
		b := feeBlock{header: h}
		b.body, b.gas = feeTransactions(t, random, config, h, random.IntN(7)*random.IntN(2))
		for _, gas := range b.gas {
			h.GasUsed += gas
		}
		if b.nextBase = new(big.Int); config.IsLondon(big.NewInt(int64(number + 1))) {
			b.nextBase = eip1559.CalcBaseFee(config, h)
		}
		blocks = append(blocks, b)
		store.blocks[uint64(number)] = storedFeeBlock(t, &b)
	}
	return store, network, config, blocks
}

// feeTransactions makes transactions of all types with random tips and gas; the last one fills the
// block now and then.
func feeTransactions(t *testing.T, random *rand.Rand, config *params.ChainConfig, h *types.Header, n int) (list types.Transactions, gas []uint64) {
	t.Helper()
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("serve/rpc fee key")))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		tip, base := random.Uint64N(5), uint64(0)
		if h.BaseFee != nil {
			base = h.BaseFee.Uint64()
		}
		cap := base + random.Uint64N(4)
		var data types.TxData = &types.LegacyTx{GasPrice: new(big.Int).SetUint64(cap), Gas: 30_000_000, To: &tokenAddress}
		switch kind := random.IntN(3); {
		case kind == 1 && h.BaseFee != nil:
			data = &types.DynamicFeeTx{ChainID: config.ChainID, GasTipCap: new(big.Int).SetUint64(tip), GasFeeCap: new(big.Int).SetUint64(max(tip, cap)), To: &tokenAddress}
		case kind == 2 && h.ExcessBlobGas != nil:
			hashes := make([]common.Hash, 1+random.IntN(3))
			*h.BlobGasUsed += uint64(len(hashes)) * params.BlobTxBlobGasPerBlob
			data = &types.BlobTx{ChainID: uint256.MustFromBig(config.ChainID), GasTipCap: uint256.NewInt(tip), GasFeeCap: uint256.NewInt(max(tip, cap)), BlobHashes: hashes}
		}
		tx, err := types.SignNewTx(key, types.LatestSigner(config), data)
		if err != nil {
			t.Fatal(err)
		}
		used := 21_000 + random.Uint64N(2_000_000)
		if i == n-1 && random.IntN(2) == 0 {
			used = 18_000_000
		}
		list, gas = append(list, tx), append(gas, used)
	}
	return list, gas
}

func storedFeeBlock(t *testing.T, b *feeBlock) *chain.Block {
	t.Helper()
	out := &chain.Block{HasReceipts: true, Ommers: []byte{0xc0}}
	var err error
	if out.Header, err = rlp.EncodeToBytes(b.header); err != nil {
		t.Fatal(err)
	}
	out.BlockRef = chain.BlockRef{Number: b.header.Number.Uint64(), Hash: b.header.Hash(), ParentHash: b.header.ParentHash, Timestamp: b.header.Time}
	sum := uint64(0)
	for i, tx := range b.body {
		envelope, err := tx.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		sum += b.gas[i]
		out.Transactions = append(out.Transactions, envelope)
		out.TransactionHashes = append(out.TransactionHashes, tx.Hash())
		out.Receipts = append(out.Receipts, chain.Receipt{Type: tx.Type(), Status: 1, CumulativeGasUsed: sum})
	}
	return out
}

// feeAnswer is the result with the members and types of go-ethereum's.
type feeAnswer struct {
	OldestBlock       *hexutil.Big     `json:"oldestBlock"`
	Reward            [][]*hexutil.Big `json:"reward,omitempty"`
	BaseFeePerGas     []*hexutil.Big   `json:"baseFeePerGas,omitempty"`
	GasUsedRatio      []float64        `json:"gasUsedRatio"`
	BaseFeePerBlobGas []*hexutil.Big   `json:"baseFeePerBlobGas,omitempty"`
	BlobGasUsedRatio  []float64        `json:"blobGasUsedRatio,omitempty"`
}

// expectedFees is eth_feeHistory as go-ethereum computes it, with its functions for all fees. The
// block behind the last one has the fees of its own header where there is one.
func expectedFees(config *params.ChainConfig, blocks []feeBlock, from, to int, percentiles []float64) feeAnswer {
	want := feeAnswer{OldestBlock: (*hexutil.Big)(big.NewInt(int64(from)))}
	addFees := func(base *big.Int, blob *types.Header) {
		if base == nil {
			base = new(big.Int)
		}
		fee := new(big.Int)
		if blob.ExcessBlobGas != nil {
			fee = eip4844.CalcBlobFee(config, blob)
		}
		want.BaseFeePerGas = append(want.BaseFeePerGas, (*hexutil.Big)(base))
		want.BaseFeePerBlobGas = append(want.BaseFeePerBlobGas, (*hexutil.Big)(fee))
	}
	for _, b := range blocks[from:to] {
		addFees(b.header.BaseFee, b.header)
		want.GasUsedRatio = append(want.GasUsedRatio, float64(b.header.GasUsed)/float64(b.header.GasLimit))
		ratio := 0.0
		if b.header.BlobGasUsed != nil {
			ratio = float64(*b.header.BlobGasUsed) / float64(eip4844.MaxBlobGasPerBlock(config, b.header.Time))
		}
		want.BlobGasUsedRatio = append(want.BlobGasUsedRatio, ratio)
		if len(percentiles) > 0 {
			want.Reward = append(want.Reward, expectedRewards(&b, percentiles))
		}
	}
	last := blocks[to-1]
	if to < len(blocks) {
		addFees(blocks[to].header.BaseFee, blocks[to].header)
	} else {
		next := &types.Header{Time: last.header.Time}
		if last.header.ExcessBlobGas != nil {
			excess := eip4844.CalcExcessBlobGas(config, last.header, last.header.Time)
			next.ExcessBlobGas = &excess
		}
		addFees(last.nextBase, next)
	}
	return want
}

// expectedRewards weighs the tips of one block by gas as go-ethereum does.
func expectedRewards(b *feeBlock, percentiles []float64) []*hexutil.Big {
	rewards := make([]*hexutil.Big, len(percentiles))
	order := make([]int, len(b.body))
	tips := make([]*big.Int, len(b.body))
	for i, tx := range b.body {
		order[i] = i
		tips[i], _ = tx.EffectiveGasTip(b.header.BaseFee)
	}
	slices.SortStableFunc(order, func(x, y int) int { return tips[x].Cmp(tips[y]) })
	for i, p := range percentiles {
		rewards[i] = (*hexutil.Big)(new(big.Int))
		threshold, sum := uint64(float64(b.header.GasUsed)*p/100), uint64(0)
		for at, x := range order {
			if sum += b.gas[x]; sum >= threshold || at == len(order)-1 {
				rewards[i] = (*hexutil.Big)(tips[x])
				break
			}
		}
	}
	return rewards
}

// Every fee, ratio and reward equals go-ethereum's, for all ranges of a chain that crosses the forks
// of fees, in any order of percentiles, with the last block retained and with the one behind it.
// INV-10.
func TestFeeHistoryEqualsGeth(t *testing.T) {
	store, network, config, blocks := feeChain(t, 48)
	s := startServer(t, store, func(o *Options) { o.Network, o.newEncoder = network, nil })
	check := func(from, to int, percentiles []float64) {
		t.Helper()
		list, _ := json.Marshal(percentiles)
		text := s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["%#x","%#x",%s]}`, to-from, to-1, list))
		var got struct{ Result json.RawMessage }
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.Result == nil {
			t.Fatalf("%v: %s", err, text)
		}
		encoded, err := json.Marshal(expectedFees(config, blocks, from, to, percentiles))
		if err != nil {
			t.Fatal(err)
		}
		if want := parseAny(t, string(encoded)); !reflect.DeepEqual(parseAny(t, string(got.Result)), want) {
			t.Errorf("blocks [%d, %d), percentiles %v (-want +got)\n%s", from, to, percentiles, cmp.Diff(want, parseAny(t, string(got.Result))))
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	for to := 1; to <= len(blocks); to++ {
		check(to-1, to, nil)
		check(0, to, []float64{0, 10, 25, 50, 75.5, 99, 100})
		from := random.IntN(to)
		p := random.Float64() * 50
		check(from, to, []float64{p, p + 1, p*1.5 + 2})
	}
	// The last block of a chain that ends before, at and after each fork.
	for _, n := range []int{1, 3, 4, 5, 13, 14, 15, 23, 24, 25, 33, 34, 35} {
		short := &fakeStore{blocks: store.blocks, coverage: []chain.Range{{From: 0, To: uint64(n)}}}
		all := blocks
		blocks, s = blocks[:n], startServer(t, short, func(o *Options) { o.Network, o.newEncoder = network, nil })
		check(max(0, n-3), n, []float64{50})
		blocks = all
	}
}

// Blocks that are not retained, or whose fees the schedule does not give, are refused with a
// reason; nothing is shortened or guessed.
func TestFeeHistoryRefusals(t *testing.T) {
	store, network, _, _ := feeChain(t, 20)
	store.coverage = []chain.Range{{From: 2, To: 4}, {From: 10, To: 20}}
	s := startServer(t, store, func(o *Options) { o.Network, o.newEncoder = network, nil })
	unscheduled := startServer(t, store, func(o *Options) { o.newEncoder = nil })
	ask := func(s *testServer, parameters string) string {
		return s.post(`{"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":[` + parameters + `]}`)
	}
	const missing = `"reason":"raw_execution_material_not_retained","retryable":false,"method":"eth_feeHistory"`
	for parameters, want := range map[string]string{
		`"0xb","latest"`:                missing, // one block too many
		`"0x1","0x9"`:                   missing,
		`"0x3","0x3",[]`:                missing,
		`"0x400","earliest"`:            missing,
		`"0x1","pending"`:               "pending_block_unavailable",
		`"0x1","finalized"`:             "finalized_block_unavailable",
		`"0x1","0x14"`:                  "block range extends beyond current head block",
		`"0x0","latest"`:                "-32602",
		`"0x401","latest"`:              "-32602",
		`10,"latest"`:                   "result",
		`"10","latest"`:                 "result",
		`"1\u0030","latest"`:            "result",
		`0,"latest"`:                    "-32602",
		`-1,"latest"`:                   "-32602",
		`"-1","latest"`:                 "-32602",
		`"+1","latest"`:                 "-32602",
		`1.0,"latest"`:                  "-32602",
		`1e0,"latest"`:                  "-32602",
		`"01","latest"`:                 "-32602",
		`"","latest"`:                   "-32602",
		`null,"latest"`:                 "-32602",
		`[1],"latest"`:                  "-32602",
		`1025,"latest"`:                 "blockCount has to be from 1 to 1024",
		`18446744073709551616,"latest"`: "-32602",
		`1` + strings.Repeat("0", 60) + `,"latest"`: "-32602",
		`"0x1"`:                                    "-32602",
		`"0x1","latest",[],1`:                      "-32602",
		`"0x1","latest",50`:                        "-32602",
		`"0x1","latest",["50"]`:                    "-32602",
		`"0x1","latest",[-1]`:                      "-32602",
		`"0x1","latest",[100.1]`:                   "-32602",
		`"0x1","latest",[1e999]`:                   "-32602",
		`"0x1","latest",[5,5]`:                     "-32602",
		`"0x1","latest",[9,8]`:                     "-32602",
		`"0x1","latest",[0` + ascending(101) + `]`: "-32602",
		`"0x1","latest",[0` + ascending(100) + `]`: "result",
		`"0xa","latest",null`:                      "result",
		`"0x2","0x3",[50]`:                         "result", // London from the schedule
	} {
		if got := ask(s, parameters); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", parameters, got, want)
		}
	}
	if got, want := ask(s, `2,"latest",[50]`), ask(s, `"0x2","latest",[50]`); got != want || ask(s, `"2","latest",[50]`) != want {
		t.Errorf("two blocks: got %s, want %s", got, want)
	}
	// Without a schedule there is no price of blobs, and no telling when base fees begin.
	if got := ask(unscheduled, `"0x1","latest"`); !strings.Contains(got, "blob_gas_price_schedule_unavailable") {
		t.Errorf("blob fee without schedule: %s", got)
	}
	if got := ask(unscheduled, `"0x1","0x3"`); !strings.Contains(got, missing) {
		t.Errorf("first base fee without schedule: %s", got)
	}
	if got := ask(unscheduled, `"0x1","0xa"`); !strings.Contains(got, `"baseFeePerGas"`) {
		t.Errorf("base fees without schedule: %s", got)
	}
	empty := startServer(t, newFakeStore(t, 0), nil)
	if got := ask(empty, `"0x1","latest"`); !strings.Contains(got, missing) {
		t.Errorf("empty store: %s", got)
	}
}

// ascending continues a list of percentiles that begins with 0 up to n of them.
func ascending(n int) string {
	var list strings.Builder
	for i := 1; i < n; i++ {
		fmt.Fprintf(&list, ",%g", float64(i)/2)
	}
	return list.String()
}

// A long history with rewards is a heavy query; it runs in the lane and stops at the size limit.
func TestFeeHistoryIsBounded(t *testing.T) {
	store, network, _, _ := feeChain(t, 48)
	s := startServer(t, store, func(o *Options) {
		o.Network, o.newEncoder = network, nil
		o.Limits.MaxResponseBytes = 2000
	})
	got := s.post(`{"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x30","latest",[0` + ascending(50) + `]]}`)
	if !strings.Contains(got, "response_size_limit_exceeded") {
		t.Errorf("got %.300s", got)
	}
}
