package jsonrpc

// Reasons of CodeUnavailable, in data.reason. They do not change once released.
const (
	// ReasonPendingBlock: the tag "pending" was asked for; the node has no mempool.
	ReasonPendingBlock = "pending_block_unavailable"
	// ReasonFinalizedBlock: "finalized" or "safe" before any verified finalized block.
	ReasonFinalizedBlock = "finalized_block_unavailable"
	// ReasonBlockNotRetained: the block is at or below the head, or named by an unknown hash,
	// and the node does not hold it.
	ReasonBlockNotRetained = "block_not_retained"
	// ReasonBlockHashNotRetained: a log query by a block hash the node does not hold.
	ReasonBlockHashNotRetained = "block_hash_not_retained"
	// ReasonTransactionNotRetained: an unknown transaction hash while history is incomplete, so
	// that the transaction may exist.
	ReasonTransactionNotRetained = "transaction_not_retained"
	// ReasonLogRange: blocks of the range of a log query are not retained; data.missing names
	// the first run of them.
	ReasonLogRange = "requested_range_outside_recent_window"
	// ReasonLatestForLogs: a log query with an open end while no block is known.
	ReasonLatestForLogs = "latest_block_unavailable_for_open_log_range"
	// ReasonFeeHistory: eth_feeHistory of blocks that are not retained.
	ReasonFeeHistory = "raw_execution_material_not_retained"
	// ReasonConfigTimestamp: eth_config without a retained block to take the time from.
	ReasonConfigTimestamp = "eth_config_head_timestamp_unavailable"
	// ReasonConfigPredates: eth_config while the newest block is older than the schedule.
	ReasonConfigPredates = "eth_config_head_predates_schedule"
	// ReasonConfigChain: eth_config on a chain without a fork schedule.
	ReasonConfigChain = "eth_config_chain_schedule_unavailable"
	// ReasonBlobSchedule: a blob gas price that no scheduled fork covers.
	ReasonBlobSchedule = "blob_gas_price_schedule_unavailable"
	// ReasonBlobExcess: a blob transaction in a block whose header has no excess blob gas.
	ReasonBlobExcess = "header_excess_blob_gas_missing"
	// ReasonQuantityU128: a price above 128 bits.
	ReasonQuantityU128 = "quantity_exceeds_u128"
	// ReasonNoHistorySource: no history source holds what was asked for as complete, final material.
	ReasonNoHistorySource = "no_viable_historical_source"
	// ReasonHistoryFailed: the history sources that hold it could not be read. Trying again may help.
	ReasonHistoryFailed = "historical_source_failed"
	// ReasonHistoryInvalid: what history sources gave is not what its headers, links or digests commit to.
	ReasonHistoryInvalid = "historical_source_returned_invalid_material"
	// ReasonHistoryBudget: history on demand takes more bytes than one request may.
	ReasonHistoryBudget = "historical_request_budget_exceeded"
	// ReasonHistoryRange: history on demand takes more blocks than one request may.
	ReasonHistoryRange = "historical_request_range_exceeded"
	// ReasonHistoryTime: history on demand took too long. Trying again may help.
	ReasonHistoryTime = "historical_request_timed_out"
	// ReasonHistoryHandoff: history on demand does not follow the retained blocks beside it, or they not it.
	ReasonHistoryHandoff = "historical_recent_handoff_mismatch"
	// ReasonHistoryIncomplete: history on demand ended before the last block of a range.
	ReasonHistoryIncomplete = "historical_log_range_incomplete"
	// ReasonFilterChanges: what changed since the last poll of a filter cannot be told any more; the filter is
	// uninstalled.
	ReasonFilterChanges = "filter_changes_not_retained"
	// ReasonEVMState: the capability reason of methods that need state or execution.
	ReasonEVMState = "evm_state_unavailable"
	// ReasonSubscriptionKind: eth_subscribe to what the node cannot tell, such as pending transactions.
	ReasonSubscriptionKind = "subscription_type_unsupported"
	// ReasonLiveDisconnected: eth_subscribe while the node follows no chain. It also closes connections with
	// subscriptions when the node stops following.
	ReasonLiveDisconnected = "live_subscription_disconnected"
	// ReasonPlanned: the capability reason of methods that a later version may serve.
	ReasonPlanned = "method_planned"
)

// Reasons of eth_syncing for not being live.
const (
	// ReasonNotAnchored: the node follows no live source.
	ReasonNotAnchored = "live_head_not_anchored"
	// ReasonLiveBehind: the live source has told more than the node has committed, or nothing yet.
	ReasonLiveBehind = "live_lane_behind"
)

// Reasons with which a WebSocket is closed (1011) because an event cannot be told.
const (
	// ReasonUndoneFrame: the logs of an undone block cannot be read any more.
	ReasonUndoneFrame = "reverted_subscription_frame_missing"
	// ReasonCompleteLogs: the logs of a new block are not retained.
	ReasonCompleteLogs = "complete_logs_not_retained"
	// ReasonCompleteHeader: the header of a new block, or what its size is made of, is not retained.
	ReasonCompleteHeader = "complete_header_not_retained"
	// ReasonLiveReset: the node lost track of the chain's changes and began anew.
	ReasonLiveReset = "live_subscription_reset"
)

// Reasons of CodeLimitExceeded, in data.reason beside data.limit.
const (
	// ReasonRequestSize: the HTTP body is larger than the limit in bytes.
	ReasonRequestSize = "request_size_limit_exceeded"
	// ReasonResponseSize: the response would be larger than the limit in bytes.
	ReasonResponseSize = "response_size_limit_exceeded"
	// ReasonLogResults: one block alone holds more matching logs than the limit.
	ReasonLogResults = "log_result_limit_exceeded"
	// ReasonFilters: as many filters are installed as the limit allows.
	ReasonFilters = "filter_limit_exceeded"
	// ReasonFilterMemory: the installed filters hold as many bytes as the limit allows.
	ReasonFilterMemory = "filter_memory_limit_exceeded"
	// ReasonTime: the request took longer than the limit in milliseconds.
	ReasonTime = "time_limit_exceeded"
	// ReasonSubscriptions: the connection has as many subscriptions as the limit allows.
	ReasonSubscriptions = "subscription_limit_exceeded"
	// ReasonFilterBytes: the filters of the connection's subscriptions together are larger than the limit in bytes.
	ReasonFilterBytes = "subscription_filter_limit_exceeded"
	// ReasonBusy: the node has as many large requests, large responses or heavy queries in
	// hand as the limit allows. Trying again later helps.
	ReasonBusy = "concurrency_limit_exceeded"
)
