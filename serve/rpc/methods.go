package rpc

import "github.com/leani-go/leani/api/jsonrpc"

// method answers one call: it reads the parameters, opens a view if it needs the store, and
// appends the result to the response. What it returned an error for is cut off again.
type method func(c *call) error

// methodTable is what the node serves. A method that is not in it does not exist (-32601).
//
// Methods that push stand in a table of the transport that can: socketMethodTable.
func methodTable() map[string]method {
	return map[string]method{
		jsonrpc.ClientVersion: clientVersion,
		jsonrpc.NetVersion:    netVersion,
		jsonrpc.ChainID:       chainID,
		jsonrpc.BlockNumber:   blockNumber,
		jsonrpc.Syncing:       syncing,
		jsonrpc.Config:        forkConfig,
		jsonrpc.Capabilities:  capabilities,

		jsonrpc.GetBlockByNumber:                    blockByNumber,
		jsonrpc.GetBlockByHash:                      blockByHash,
		jsonrpc.GetBlockTransactionCountByNumber:    transactionCountByNumber,
		jsonrpc.GetBlockTransactionCountByHash:      transactionCountByHash,
		jsonrpc.GetTransactionByBlockNumberAndIndex: transactionByNumberAndIndex,
		jsonrpc.GetTransactionByBlockHashAndIndex:   transactionByBlockHashAndIndex,
		jsonrpc.GetTransactionByHash:                transactionByHash,
		jsonrpc.GetTransactionReceipt:               transactionReceipt,
		jsonrpc.GetBlockReceipts:                    blockReceipts,
		jsonrpc.GetLogs:                             logs,
		jsonrpc.FeeHistory:                          feeHistory,

		jsonrpc.NewFilter:                   newLogFilter,
		jsonrpc.NewBlockFilter:              newBlockFilter,
		jsonrpc.NewPendingTransactionFilter: newPendingTransactionFilter,
		jsonrpc.GetFilterChanges:            filterChanges,
		jsonrpc.GetFilterLogs:               filterLogs,
		jsonrpc.UninstallFilter:             uninstallFilter,
	}
}
