package chain

import (
	"errors"
	"fmt"
)

// ErrNotRetained says that the store does not hold the asked material, which may well exist on
// the chain. Match it with errors.Is; a *NotRetainedError in the chain names the blocks.
var ErrNotRetained = errors.New("not retained")

// NotRetainedError is ErrNotRetained with the blocks that are missing. Missing material is never
// answered as if it were empty: whoever meets a hole in a range returns this error.
type NotRetainedError struct {
	// Range holds the first run of missing blocks, cut to what was asked for.
	Range Range
}

// Error names the missing blocks.
func (e *NotRetainedError) Error() string {
	return fmt.Sprintf("blocks %s are not retained", e.Range)
}

// Is makes errors.Is(err, ErrNotRetained) true.
func (e *NotRetainedError) Is(target error) bool { return target == ErrNotRetained }
