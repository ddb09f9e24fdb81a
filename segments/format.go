package segments

import (
	"fmt"
	"math"

	"github.com/leani-go/leani/codec"
)

// Kind says what a segment file holds. The numbers are part of the file format.
type Kind uint16

// The kinds of segment files.
const (
	KindData    Kind = 1 // columns of a run of blocks
	KindIndex   Kind = 2 // log terms and hash locators of a run of data files
	KindSenders Kind = 3 // transaction senders of one data file
	KindFrames  Kind = 4 // partial material of a run of blocks
)

// String gives the name that is also the folder of the kind.
func (k Kind) String() string {
	switch k {
	case KindData:
		return "data"
	case KindIndex:
		return "index"
	case KindSenders:
		return "senders"
	case KindFrames:
		return "frames"
	default:
		return fmt.Sprintf("kind %d", uint16(k))
	}
}

const (
	// magic opens and closes every segment file.
	magic = "LEANISEG"
	// formatVersion is the version of the container and of all columns. Version 1 is the first.
	formatVersion = 1

	headerSize  = 16 // magic, version u16, kind u16, flags u32 (0)
	trailerSize = 32 // footer offset u64, footer size u32, version u16, kind u16, reserved u64 (0), magic
	digestSize  = 16 // stored bytes of a page's BLAKE3
)

// columnID names a column. The numbers are part of the file format and are never reused.
type columnID uint16

const (
	columnBlocks       columnID = 1  // fixed: hash, timestamp, first transaction, first log; one extra row closes the last block
	columnHeaders      columnID = 2  // blobs by block: header RLP
	columnBodies       columnID = 3  // blobs by block: ommers and withdrawals
	columnTransactions columnID = 4  // blobs by transaction: EIP-2718 bytes
	columnReceipts     columnID = 5  // blobs by block: receipt scalars
	columnLogs         columnID = 6  // log pages: logs and transaction hashes
	columnShapes       columnID = 7  // fixed: address, first topic, topic count, data length
	columnShortWords   columnID = 8  // fixed: topics that fit 20 bytes
	columnWords        columnID = 9  // fixed: all other topics
	columnTerms        columnID = 10 // hash table: log terms
	columnPostings     columnID = 11 // posting pages
	columnTxLocator    columnID = 12 // hash table: transaction hash to transaction position
	columnBlockLocator columnID = 13 // hash table: block hash to block position
	columnSenders      columnID = 14 // fixed: sender addresses
	columnDigests      columnID = 15 // fixed: BLAKE3 of every page before it, in file order
	columnFrameRows    columnID = 16 // fixed: hash, timestamp
	columnFrames       columnID = 17 // blobs by block: frames
	columnProfile      columnID = 18 // blobs, one row: the profile of all frames
)

var columnNames = map[columnID]string{
	columnBlocks: "blocks", columnHeaders: "headers", columnBodies: "bodies", columnTransactions: "transactions",
	columnReceipts: "receipts", columnLogs: "logs", columnShapes: "shapes",
	columnShortWords: "short words", columnWords: "words", columnTerms: "terms", columnPostings: "postings",
	columnTxLocator: "transaction locator", columnBlockLocator: "block locator", columnSenders: "senders",
	columnDigests: "digests", columnFrameRows: "frame rows", columnFrames: "frames", columnProfile: "profile",
}

func (c columnID) String() string {
	if n := columnNames[c]; n != "" {
		return n
	}
	return fmt.Sprintf("column %d", uint16(c))
}

// Sizes of pages. A query reads log pages, dictionaries and postings at random, so those are small
// and not compressed; headers, bodies and transactions are read in runs.
const (
	randomPageSize = 4096      // raw bytes of a page that queries touch
	blobPageSize   = 32 * 1024 // raw bytes of a page of blobs
)

// tableEntrySize is the size of one page table entry: offset u40, stored size u24, first row u32, first
// transaction u32.
const (
	tableEntrySize  = 16
	tablePageRows   = randomPageSize / tableEntrySize
	maximumFileSize = 1<<40 - 1
)

const (
	// maximumRows bounds blocks, transactions and logs of one file, so that positions fit 32 bits with
	// room to add.
	maximumRows = math.MaxUint32 / 2
	// maximumBlockRows bounds transactions and logs of one block. A log costs 375 gas and more
	// (Yellow Paper, appendix G): this many take 1.5 billion, far above any gas limit.
	maximumBlockRows = 1 << 22
	// maximumLogData bounds the data of one log in bytes: in any form it fits a page.
	maximumLogData = codec.MaximumPage / 2
)

// UnsupportedError reports a file of a version, kind, flag, profile or column that this build does not
// know. The file is not damaged.
type UnsupportedError struct {
	File   string
	What   string // "version", "kind", "flags", "profile", "column"
	Number uint64
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("segment file %s has %s %d, which this build does not know: use a newer release", e.File, e.What, e.Number)
}
