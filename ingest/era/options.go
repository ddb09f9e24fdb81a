package era

// Options limit what a file can make its reader do. The zero value is ready.
type Options struct {
	// MaximumBlockBytes bounds the decompressed header, body and receipts of one block
	// together. Default 64 MiB: several times what a block of 100 M gas can hold. More than
	// 1 GiB counts as 1 GiB.
	MaximumBlockBytes int
	// MaximumBatchBytes bounds the decompressed data, and apart from it the file data, that
	// one ReadBlocks call loads; it always loads at least one block. Default 64 MiB.
	MaximumBatchBytes int
}

const (
	defaultBlockBytes = 64 << 20
	defaultBatchBytes = 64 << 20
	// maximumBlockBytes is beyond what maximumTransactions can hold: at the 10 gas that a byte of
	// input costs at least (EIP-7623), 5.5 G gas pay for half of it.
	maximumBlockBytes = 1 << 30
)

func (o Options) withDefaults() Options {
	if o.MaximumBlockBytes <= 0 {
		o.MaximumBlockBytes = defaultBlockBytes
	}
	o.MaximumBlockBytes = min(o.MaximumBlockBytes, maximumBlockBytes)
	if o.MaximumBatchBytes <= 0 {
		o.MaximumBatchBytes = defaultBatchBytes
	}
	return o
}

// Limits that are not for tuning.
const (
	// maximumBlocks is the number of blocks of a full file, in both formats.
	maximumBlocks = 8192
	// maximumTransactions of one block: 5.5 G gas at the 21,000 that each costs at least. It
	// bounds what tiny items of a large list expand to in memory.
	maximumTransactions = 1 << 18
	// maximumWithdrawals of one block; the protocol allows 16 (EIP-4895).
	maximumWithdrawals = 1 << 10
)
