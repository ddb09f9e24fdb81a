package jsonrpc

// Methods that the node serves.
const (
	ClientVersion = "web3_clientVersion"
	NetVersion    = "net_version"
	ChainID       = "eth_chainId"
	BlockNumber   = "eth_blockNumber"
	Syncing       = "eth_syncing"
	Config        = "eth_config"
	Capabilities  = "leani_getCapabilities"

	GetBlockByNumber                    = "eth_getBlockByNumber"
	GetBlockByHash                      = "eth_getBlockByHash"
	GetBlockTransactionCountByNumber    = "eth_getBlockTransactionCountByNumber"
	GetBlockTransactionCountByHash      = "eth_getBlockTransactionCountByHash"
	GetTransactionByBlockNumberAndIndex = "eth_getTransactionByBlockNumberAndIndex"
	GetTransactionByBlockHashAndIndex   = "eth_getTransactionByBlockHashAndIndex"
	GetTransactionByHash                = "eth_getTransactionByHash"
	GetTransactionReceipt               = "eth_getTransactionReceipt"
	GetBlockReceipts                    = "eth_getBlockReceipts"
	GetLogs                             = "eth_getLogs"
	FeeHistory                          = "eth_feeHistory"

	NewFilter        = "eth_newFilter"
	NewBlockFilter   = "eth_newBlockFilter"
	GetFilterChanges = "eth_getFilterChanges"
	GetFilterLogs    = "eth_getFilterLogs"
	UninstallFilter  = "eth_uninstallFilter"
)

// Methods that the node serves over WebSocket only, and the method of the notifications that follow.
const (
	Subscribe    = "eth_subscribe"
	Unsubscribe  = "eth_unsubscribe"
	Subscription = "eth_subscription"
)

// Methods that the node knows and refuses with a code of their own or names in its
// capabilities.
const (
	Call       = "eth_call"
	GetBalance = "eth_getBalance"

	NewPendingTransactionFilter = "eth_newPendingTransactionFilter"
)
