package rpc

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/holiman/uint256"

	"github.com/ethereum/go-ethereum/params"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/header"
	"github.com/leani-go/leani/internal/hexenc"
)

const (
	// maxFeeBlocks is the most blocks of eth_feeHistory, as the specification of the method has it.
	maxFeeBlocks = 1024
	// maxFeePercentiles is the most percentiles of it, as in go-ethereum.
	maxFeePercentiles = 100
	// headerRows and bodyRows say how many candidate rows of a log query the work on one block of
	// a fee history is worth: its header alone, or all its transactions and receipts.
	headerRows, bodyRows = 8, 256
)

// feeHistory answers eth_feeHistory from the headers and receipts of retained blocks: every value
// is computed exactly, or the call fails.
func feeHistory(c *call) error {
	p, err := readBetween(c.params, 2, 3)
	if err != nil {
		return err
	}
	count, err := readCount(p[0], "blockCount")
	if err != nil {
		return err
	}
	if count < 1 || count > maxFeeBlocks {
		return jsonrpc.InvalidParams(fmt.Sprintf("blockCount has to be from 1 to %d", maxFeeBlocks))
	}
	newest, err := readSelector(p[1], "newestBlock")
	if err != nil {
		return err
	}
	percentiles, err := readPercentiles(p[2])
	if err != nil {
		return err
	}
	if err := c.openView(); err != nil {
		return err
	}
	head, known := c.view.Head()
	if !known {
		return noFeeHistory()
	}
	last, err := c.resolve(newest, head)
	switch {
	case err != nil:
		return err
	case newest.tag == tagNone && last > head:
		return jsonrpc.BeyondHead("newestBlock", last, head)
	case last == math.MaxUint64:
		return noFeeHistory()
	}
	run := feeRun{call: c, ctx: c.context(), percentiles: percentiles, blocks: chain.Range{From: last + 1 - min(count, last+1), To: last + 1}}
	if !firstMissing(run.blocks, c.view.Coverage()).Empty() {
		return noFeeHistory()
	}
	rows := run.blocks.Len() * headerRows
	if len(percentiles) > 0 {
		rows = run.blocks.Len() * bodyRows
	}
	if rows < laneCost {
		return run.do()
	}
	if err := c.out.reserve(run.ctx); err != nil {
		return err
	}
	return c.lane.do(run.ctx, run.do)
}

// noFeeHistory says that blocks of a fee history are not retained.
func noFeeHistory() error {
	return jsonrpc.UnavailableMethod(jsonrpc.ReasonFeeHistory, jsonrpc.FeeHistory)
}

// readPercentiles reads an optional list of ascending numbers from 0 to 100.
func readPercentiles(v value) ([]float64, error) {
	if !present(v) {
		return nil, nil
	}
	if v.kind() != '[' {
		return nil, jsonrpc.InvalidParams("rewardPercentiles has to be an array")
	}
	var list []float64
	for elements := v.elements(); ; {
		element, ok := elements.next()
		if !ok {
			return list, nil
		}
		if len(list) == maxFeePercentiles {
			return nil, jsonrpc.InvalidParams(fmt.Sprintf("more than %d percentiles", maxFeePercentiles))
		}
		if k := element.kind(); k != '-' && !isDigit(k) {
			return nil, jsonrpc.InvalidParams("a percentile is a number")
		}
		p, err := strconv.ParseFloat(string(element), 64)
		if err != nil || p < 0 || p > 100 {
			return nil, jsonrpc.InvalidParams("a percentile has to be from 0 to 100")
		}
		if len(list) > 0 && p <= list[len(list)-1] {
			return nil, jsonrpc.InvalidParams("percentiles have to ascend")
		}
		list = append(list, p)
	}
}

// feeRun computes one fee history. Rewards go to the response block by block; what else there is
// of a block is a few words, which wait for their place.
type feeRun struct {
	*call
	ctx         context.Context
	percentiles []float64
	blocks      chain.Range

	baseFees, blobFees   []uint256.Int // of the blocks and the one behind them
	gasRatios, blobRatio []float64

	header header.Header
	tips   []uint256.Int
	paid   []paidGas
}

// paidGas is the gas of one transaction and what it paid the proposer for a unit of it.
type paidGas struct {
	gas uint64
	tip *uint256.Int
}

func (r *feeRun) do() error {
	buf := append(r.out.buf, `{"oldestBlock":"`...)
	r.out.buf = append(hexenc.AppendQuantity(buf, r.blocks.From), `",`...)
	n := int(r.blocks.Len())
	r.baseFees, r.blobFees = make([]uint256.Int, 0, n+1), make([]uint256.Int, 0, n+1)
	r.gasRatios, r.blobRatio = make([]float64, 0, n), make([]float64, 0, n)
	parts := chain.PartHeader
	if len(r.percentiles) > 0 {
		parts |= chain.PartTransactions | chain.PartReceipts
		r.out.buf = append(r.out.buf, `"reward":[`...)
	}
	for number := r.blocks.From; number < r.blocks.To; number++ {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if err := r.loadHeader(number, parts); err != nil {
			return err
		}
		if err := r.addFees(); err != nil {
			return fmt.Errorf("fees of block %d: %w", number, err)
		}
		r.addRatios()
		if len(r.percentiles) == 0 {
			continue
		}
		if number > r.blocks.From {
			r.out.buf = append(r.out.buf, ',')
		}
		if err := r.appendRewards(); err != nil {
			return err
		}
	}
	if len(r.percentiles) > 0 {
		r.out.buf = append(r.out.buf, `],`...)
	}
	if err := r.addNext(); err != nil {
		return fmt.Errorf("fees behind block %d: %w", r.blocks.To-1, err)
	}
	return r.appendColumns()
}

// loadHeader loads a block and reads its header.
func (r *feeRun) loadHeader(number uint64, parts chain.Parts) error {
	if err := r.load(number, parts); err != nil {
		return err
	}
	if err := header.Parse(r.block.Header, &r.header); err != nil {
		return fmt.Errorf("header of block %d: %w", number, err)
	}
	return nil
}

// addFees adds the fees that the header in hand sets, 0 where it is older than they are.
func (r *feeRun) addFees() error {
	var baseFee, blobFee uint256.Int
	baseFee.SetBytes(r.header.BaseFee)
	if r.header.Fields >= header.FieldsCancun {
		var err error
		if blobFee, err = r.network.BlobGasPrice(r.header.Timestamp, &r.header.ExcessBlobGas); err != nil {
			return err
		}
	}
	r.baseFees, r.blobFees = append(r.baseFees, baseFee), append(r.blobFees, blobFee)
	return nil
}

// addRatios adds how full the block is of gas and of blob gas.
func (r *feeRun) addRatios() {
	var gas, blobs float64
	if r.header.GasLimit > 0 {
		gas = float64(r.header.GasUsed) / float64(r.header.GasLimit)
	}
	if r.header.Fields >= header.FieldsCancun {
		// The fork is there: the fee of the block has been computed by it.
		if fork, err := r.network.ForkAt(r.header.Timestamp); err == nil && fork.Blobs.Max > 0 {
			blobs = float64(r.header.BlobGasUsed) / float64(fork.Blobs.Max*params.BlobTxBlobGasPerBlob)
		}
	}
	r.gasRatios, r.blobRatio = append(r.gasRatios, gas), append(r.blobRatio, blobs)
}

// addNext adds the fees of the block behind the last one: those of its header where it is retained,
// else those that follow from the last one, as long as no fork comes between.
func (r *feeRun) addNext() error {
	if r.view != nil && firstMissing(chain.Range{From: r.blocks.To, To: r.blocks.To + 1}, r.view.Coverage()).Empty() {
		if err := r.loadHeader(r.blocks.To, chain.PartHeader); err != nil {
			return err
		}
		return r.addFees()
	}
	var baseFee, blobFee uint256.Int
	var err error
	last := &r.baseFees[len(r.baseFees)-1]
	if r.header.Fields >= header.FieldsLondon {
		if baseFee, err = chain.NextBaseFee(last, r.header.GasUsed, r.header.GasLimit); err != nil {
			return err
		}
	} else {
		begins, err := r.network.HasBaseFee(r.blocks.To)
		if err != nil {
			return noFeeHistory()
		}
		if begins {
			baseFee = chain.InitialBaseFee()
		}
	}
	if r.header.Fields >= header.FieldsCancun {
		fork, err := r.network.ForkAt(r.header.Timestamp)
		if err != nil {
			return err
		}
		excess, err := fork.NextExcessBlobGas(r.header.ExcessBlobGas, r.header.BlobGasUsed, last)
		if err != nil {
			return err
		}
		if blobFee, err = fork.Blobs.Fee(excess); err != nil {
			return err
		}
	}
	r.baseFees, r.blobFees = append(r.baseFees, baseFee), append(r.blobFees, blobFee)
	return nil
}

// appendRewards appends the tips at the percentiles of the block's gas: the transactions by
// ascending tip, equal ones in their order, and of them the one in whose gas the percentile lies.
func (r *feeRun) appendRewards() (err error) {
	if err := r.out.grow(r.context, hashFixed*(len(r.percentiles)+1)); err != nil {
		return err
	}
	b := &r.block
	if !b.HasReceipts || len(b.Receipts) != len(b.Transactions) {
		return fmt.Errorf("block %v has %d transactions and %d receipts", b.BlockRef, len(b.Transactions), len(b.Receipts))
	}
	if r.tips, err = r.encode.AppendTips(r.tips[:0], b); err != nil {
		return fmt.Errorf("tips of block %v: %w", b.BlockRef, err)
	}
	r.paid = r.paid[:0]
	before := uint64(0)
	for i := range b.Receipts {
		r.paid = append(r.paid, paidGas{b.Receipts[i].CumulativeGasUsed - before, &r.tips[i]})
		before = b.Receipts[i].CumulativeGasUsed
	}
	slices.SortStableFunc(r.paid, func(a, b paidGas) int { return a.tip.Cmp(b.tip) })

	at, sum := 0, uint64(0)
	if len(r.paid) > 0 {
		sum = r.paid[0].gas
	}
	r.out.buf = append(r.out.buf, '[')
	for i, p := range r.percentiles {
		if i > 0 {
			r.out.buf = append(r.out.buf, ',')
		}
		if len(r.paid) == 0 {
			r.out.buf = append(r.out.buf, `"0x0"`...)
			continue
		}
		for threshold := uint64(float64(r.header.GasUsed) * p / 100); sum < threshold && at < len(r.paid)-1; {
			at++
			sum += r.paid[at].gas
		}
		r.out.buf = append(r.out.buf, '"')
		r.out.buf = append(hexenc.AppendUint256(r.out.buf, r.paid[at].tip), '"')
	}
	r.out.buf = append(r.out.buf, ']')
	if len(r.out.buf) > r.out.limit {
		return errOversize
	}
	return nil
}

// appendColumns appends the members that have one value for each block.
func (r *feeRun) appendColumns() error {
	if err := r.out.grow(r.context, 2*hashFixed*(len(r.baseFees)+2)); err != nil {
		return err
	}
	buf := appendFees(r.out.buf, `"baseFeePerGas":[`, r.baseFees)
	buf = appendRatios(buf, `],"gasUsedRatio":[`, r.gasRatios)
	buf = appendFees(buf, `],"baseFeePerBlobGas":[`, r.blobFees)
	buf = appendRatios(buf, `],"blobGasUsedRatio":[`, r.blobRatio)
	r.out.buf = append(buf, `]}`...)
	return nil
}

func appendFees(dst []byte, open string, fees []uint256.Int) []byte {
	dst = append(dst, open...)
	for i := range fees {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '"')
		dst = append(hexenc.AppendUint256(dst, &fees[i]), '"')
	}
	return dst
}

// appendRatios appends numbers with as many digits as tell them apart, in plain notation unless
// they are tiny.
func appendRatios(dst []byte, open string, ratios []float64) []byte {
	dst = append(dst, open...)
	for i, ratio := range ratios {
		if i > 0 {
			dst = append(dst, ',')
		}
		format := byte('f')
		if ratio != 0 && ratio < 1e-6 {
			format = 'e'
		}
		dst = strconv.AppendFloat(dst, ratio, format, -1, 64)
	}
	return dst
}
