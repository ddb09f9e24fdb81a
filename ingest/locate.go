package ingest

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/verify"
)

// LocateDamage looks for the damage in an open file whose content differs from its digest, and adds the first block that
// shows it to the error. It reads the file up to there, on the calling goroutine.
func LocateDamage(ctx context.Context, name string, content File, difference error) error {
	return (&file{name: name, reader: content}).locate(ctx, difference)
}

// locate looks for the damage in a file whose content differs from its digest, and adds the first
// block that shows it to the error. It reads the file up to there, on the calling goroutine.
func (f *file) locate(ctx context.Context, difference error) error {
	var digest *era.DigestError
	if !errors.As(difference, &digest) {
		return difference
	}
	var (
		v    verify.Verifier
		c    = newChunk()
		all  = f.reader.Range()
		last common.Hash
	)
	c.file = f
	for next := all; !next.Empty(); {
		n, err := c.read(ctx, &v, chain.Range{From: next.From, To: min(next.To, next.From+chunkBlocks)})
		for i := range c.room[:n] {
			b := &c.room[i]
			if b.Number > all.From && b.ParentHash != last {
				err = f.blameCheck(b.Number, &verify.Error{
					Block: b.Number, Check: verify.CheckParent, Err: fmt.Errorf("got %x want %x", b.ParentHash, last),
				})
				break
			}
			last = b.Hash
		}
		switch {
		case ctx.Err() != nil || errors.Is(err, ErrNoReceipts):
			return difference
		case err != nil:
			return fmt.Errorf("%w; first bad block: %w", difference, err)
		}
		next.From += uint64(n)
	}
	return fmt.Errorf("%w; its blocks agree with their headers and with each other: the difference lies outside of them, or the digest is that of another version of the file", difference)
}
