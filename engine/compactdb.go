package engine

import (
	"context"
	"fmt"
)

// CompactDatabase rewrites the whole database, which drops rows that were replaced or deleted and gives their
// space back. It takes room for a second copy meanwhile, and commits go on beside it. Stores keep themselves
// compact; this is for after large removals.
func (e *Engine) CompactDatabase(ctx context.Context) error {
	if err := e.writable(); err != nil {
		return fmt.Errorf("compact database: %w", err)
	}
	// Keys are at least one byte long, and none begins with 0xff.
	if err := e.database(func() error { return e.db.Compact(ctx, []byte{0}, []byte{0xff}, true) }); err != nil {
		return fmt.Errorf("compact database: %w", err)
	}
	return nil
}
