package rpc

import (
	"strconv"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
)

// Coverage of methods as leani_getCapabilities names it.
const (
	coverageMetadata = "node_metadata"
	coverageRetained = "retained_recent_window"
	coverageLookup   = "retained_recent_and_compatible_history_lookup"
	coverageOnDemand = "retained_recent_and_on_demand"
	coverageLive     = "post_commit_live_stream"
	coverageChanges  = "committed_changes_since_poll"
)

// metadataMethods and retainedMethods are listed in the order they are reported.
func metadataMethods() []string {
	return []string{
		jsonrpc.ClientVersion, jsonrpc.NetVersion, jsonrpc.ChainID, jsonrpc.BlockNumber, jsonrpc.Syncing,
		jsonrpc.Config, jsonrpc.Capabilities,
	}
}

// retainedMethod is a method about blocks, and how it finds them.
type retainedMethod struct {
	name   string
	lookup lookup
}

// lookup is how a method finds a block.
type lookup uint8

const (
	byNumber lookup = iota
	byBlockHash
	byRetained // never on demand
)

func retainedMethods() []retainedMethod {
	return []retainedMethod{
		{jsonrpc.GetBlockByNumber, byNumber},
		{jsonrpc.GetBlockByHash, byBlockHash},
		{jsonrpc.GetBlockTransactionCountByNumber, byNumber},
		{jsonrpc.GetBlockTransactionCountByHash, byBlockHash},
		{jsonrpc.GetTransactionByBlockNumberAndIndex, byNumber},
		{jsonrpc.GetTransactionByBlockHashAndIndex, byBlockHash},
		{jsonrpc.GetTransactionByHash, byRetained},
		{jsonrpc.GetTransactionReceipt, byRetained},
		{jsonrpc.GetBlockReceipts, byNumber},
		{jsonrpc.FeeHistory, byRetained},
	}
}

// filterMethods poll for changes behind the head at the time.
func filterMethods() []string {
	return []string{jsonrpc.NewFilter, jsonrpc.NewBlockFilter, jsonrpc.GetFilterChanges, jsonrpc.UninstallFilter}
}

// unsupportedMethod is a method that clients know and the node refuses.
type unsupportedMethod struct{ name, reason string }

func unsupportedMethods() []unsupportedMethod {
	var methods []unsupportedMethod
	for _, name := range []string{
		jsonrpc.Call, jsonrpc.GetBalance, "eth_getCode", "eth_getStorageAt", "eth_getTransactionCount", "eth_getProof",
		"eth_estimateGas", "eth_createAccessList", "eth_simulateV1",
	} {
		methods = append(methods, unsupportedMethod{name, jsonrpc.ReasonEVMState})
	}
	for _, name := range []string{
		"eth_gasPrice", "eth_maxPriorityFeePerGas", "eth_sendRawTransaction",
	} {
		methods = append(methods, unsupportedMethod{name, jsonrpc.ReasonPlanned})
	}
	return append(methods, unsupportedMethod{jsonrpc.NewPendingTransactionFilter, jsonrpc.ReasonPendingBlock})
}

// capabilities answers leani_getCapabilities: what each method covers, what is refused and
// why, and which blocks are retained.
func capabilities(c *call) error {
	if _, err := readPositions(c.params, 0); err != nil {
		return err
	}
	_, _, behind, err := c.liveHead()
	if err != nil {
		return err
	}
	buf := append(c.out.buf, `{"profile":"`+jsonrpc.Profile+`","chainId":`...)
	buf = strconv.AppendUint(buf, c.network.ChainID(), 10)
	buf = append(buf, `,"clientVersion":`...)
	buf = jsonrpc.AppendString(buf, c.clientVersion)
	buf = append(buf, `,"http":true,"webSocket":`...)
	buf = strconv.AppendBool(buf, c.hub.open.Load())
	buf = append(buf, `,"liveReady":`...)
	buf = strconv.AppendBool(buf, behind == "")
	buf = append(buf, `,"progressProcessor":null,`...)
	buf, onDemand := c.appendOnDemand(buf)
	buf = append(buf, `"retainedHistory":{"complete":`...)
	buf = strconv.AppendBool(buf, c.completeHistory())
	buf = append(buf, `,"ranges":`...)
	buf = appendRanges(buf, c.view.Coverage())
	buf = append(buf, `},`...)
	buf = append(c.appendProvenance(buf), `,"methods":{`...)
	for _, name := range metadataMethods() {
		buf = append(buf, `"`+name+`":{"supported":true,"coverage":"`+coverageMetadata+`"},`...)
	}
	for _, m := range retainedMethods() {
		coverage := coverageRetained
		if onDemand.viable && (m.lookup == byNumber || m.lookup == byBlockHash && onDemand.blockHashes) {
			coverage = coverageLookup
		}
		buf = append(buf, `"`+m.name+`":{"supported":true,"coverage":"`+coverage+`"},`...)
	}
	logsCoverage, maximumRange := coverageRetained, "null" // retained ranges have no maximum
	if onDemand.viable {
		logsCoverage, maximumRange = coverageOnDemand, strconv.FormatUint(onDemand.maximumBlocks, 10)
	}
	buf = append(buf, `"`+jsonrpc.GetFilterLogs+`":{"supported":true,"coverage":"`+logsCoverage+`"},`...)
	buf = append(buf, `"`+jsonrpc.GetLogs+`":{"supported":true,"coverage":"`+logsCoverage+`","maximumRange":`+maximumRange+`,"maximumResults":`...)
	buf = strconv.AppendInt(buf, int64(c.limits.MaxLogResults), 10)
	buf = append(buf, '}')
	for _, name := range filterMethods() {
		buf = append(buf, `,"`+name+`":{"supported":true,"coverage":"`+coverageChanges+`","reorgAware":true,"extension":true}`...)
	}
	for _, name := range []string{"eth_subscribe(newHeads)", "eth_subscribe(logs)"} {
		buf = append(buf, `,"`+name+`":{"supported":`...)
		buf = strconv.AppendBool(buf, c.hub.open.Load() && c.hub.live())
		buf = append(buf, `,"coverage":"`+coverageLive+`","reorgAware":true}`...)
	}
	for _, m := range unsupportedMethods() {
		buf = append(buf, `,"`+m.name+`":{"supported":false,"reason":"`+m.reason+`"}`...)
	}
	c.out.buf = append(buf, "}}"...)
	return nil
}

// onDemand is what history on demand covers.
type onDemand struct {
	viable, blockHashes bool
	maximumBlocks       uint64
}

// appendOnDemand appends the members about history on demand. A source that may answer has whole blocks: what is exact of
// one kind of material is of all.
func (c *call) appendOnDemand(dst []byte) ([]byte, onDemand) {
	var o onDemand
	mode := "disabled"
	if c.history != nil {
		a := c.history.Abilities()
		mode, o = "on_demand", onDemand{len(a.Sources) > 0, a.BlockHashes && len(a.Sources) > 0, a.MaximumBlocks}
	}
	dst = append(dst, `"historicalMode":"`+mode+`","onDemandHistory":{"configured":`...)
	dst = strconv.AppendBool(dst, c.history != nil)
	dst = strconv.AppendBool(append(dst, `,"exactBlocks":`...), o.viable)
	dst = strconv.AppendBool(append(dst, `,"exactReceipts":`...), o.viable)
	dst = strconv.AppendBool(append(dst, `,"blockHashLocators":`...), o.blockHashes)
	dst = strconv.AppendBool(append(dst, `,"transactionHashLocators":false,"exactLogs":`...), o.viable)
	return append(dst, `},`...), o
}

// appendRanges appends ranges as objects with inclusive bounds.
func appendRanges(dst []byte, ranges []chain.Range) []byte {
	dst = append(dst, '[')
	for i, r := range ranges {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"fromBlock":`...)
		dst = strconv.AppendUint(dst, r.From, 10)
		dst = append(dst, `,"toBlock":`...)
		dst = append(strconv.AppendUint(dst, r.To-1, 10), '}')
	}
	return append(dst, ']')
}
