package verify

import "fmt"

// Check names one of the properties that a block must have.
type Check uint8

// The checks, in the order they are made.
const (
	CheckHeader Check = iota + 1
	CheckHash
	CheckNumber
	CheckParent
	CheckTransactionsRoot
	CheckOmmersHash
	CheckWithdrawals
	CheckWithdrawalsRoot
	CheckReceiptsCount
	CheckReceiptType
	CheckLogs
	CheckCumulativeGas
	CheckReceiptsRoot
	CheckLogsBloom
)

// String is the name of the property in error texts.
func (c Check) String() string {
	names := [...]string{
		CheckHeader:           "header",
		CheckHash:             "block hash",
		CheckNumber:           "block number",
		CheckParent:           "parent hash",
		CheckTransactionsRoot: "transactions root",
		CheckOmmersHash:       "ommers hash",
		CheckWithdrawals:      "withdrawals",
		CheckWithdrawalsRoot:  "withdrawals root",
		CheckReceiptsCount:    "receipts count",
		CheckReceiptType:      "receipt type",
		CheckLogs:             "logs",
		CheckCumulativeGas:    "cumulative gas",
		CheckReceiptsRoot:     "receipts root",
		CheckLogsBloom:        "logs bloom",
	}
	if int(c) < len(names) && names[c] != "" {
		return names[c]
	}
	return fmt.Sprintf("check %d", uint8(c))
}

// Error says which block failed which check. The block is not what its header commits to, or
// does not follow the block before it.
type Error struct {
	Block uint64 // as expected
	Check Check
	Err   error // "got … want …", or why the material cannot be read
}

// Error writes block, check and cause.
func (e *Error) Error() string {
	return fmt.Sprintf("block %d: %v: %v", e.Block, e.Check, e.Err)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }
