// Package ethjson writes the JSON objects of the Ethereum JSON-RPC API: blocks, headers,
// transactions, receipts, logs, and the fork configuration of EIP-7910. Values and members are
// those of go-ethereum 1.17; the order of members is not.
//
// It appends to the caller's buffer straight from the consensus encodings in a chain.Block:
// there is no intermediate transaction or receipt, and nothing is allocated once an Encoder
// and the buffer are warm. What is not in the encodings is computed: effective gas prices,
// contract addresses, block sizes, and the blooms of receipts.
//
// It does not verify. Material is expected to match the roots of its header; an encoding that
// cannot be read gives an error, whatever its bytes, and so does a part that is missing. After
// an error the buffer is as long as it was before the call.
//
// An Encoder belongs to one goroutine at a time. Reuse it: it remembers the text of the last
// block and transaction and the bloom bits of the values it saw.
package ethjson
