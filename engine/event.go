package engine

// EventKind numbers the events of a store.
type EventKind uint8

// The events.
const (
	// EventCommitted: an edit is durable and visible. Generation, Added and Removed are set.
	EventCommitted EventKind = iota + 1
	// EventDeleted: a replaced file is durably gone. Path is set.
	EventDeleted
	// EventRemoved: recovery removed a file of an interrupted commit. Path is set.
	EventRemoved
	// EventQuarantined: recovery moved an unexplained file aside. Path is where it lay, To
	// where it lies now.
	EventQuarantined
	// EventFailed: a write failed and the store takes no more. Err is set.
	EventFailed
)

// String is the name of the event.
func (k EventKind) String() string {
	switch k {
	case EventCommitted:
		return "committed"
	case EventDeleted:
		return "deleted"
	case EventRemoved:
		return "removed"
	case EventQuarantined:
		return "quarantined"
	case EventFailed:
		return "failed"
	default:
		return "unknown"
	}
}

// Event tells what the store did. The slices and rows are shared: read only.
type Event struct {
	Kind       EventKind
	Generation uint64
	Added      []*FileRow
	Removed    []*FileRow
	Path, To   string
	Err        error
}
