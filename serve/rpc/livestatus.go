package rpc

import "github.com/leani-go/leani/api/jsonrpc"

// LiveStatus is how the node follows the head of the chain.
type LiveStatus struct {
	// Running is set while there is a live source that is followed.
	Running bool
	// Ready is set while everything that the source has told is committed, and the source has nothing more.
	Ready bool
	// Newest is the highest block that the source has named and that is not committed; 0 when there is none.
	Newest uint64
}

// liveHead is the head of the view that the call opens, the highest block that the node knows of, and why it does not
// take its head for that of the chain; empty if it does.
func (c *call) liveHead() (head, highest uint64, reason string, err error) {
	// Asked first: what is ready then is committed, and the view shows it.
	status := c.live()
	if err := c.openView(); err != nil {
		return 0, 0, "", err
	}
	head, ok := c.view.Head()
	return head, max(head, status.Newest), status.reason(head, ok), nil
}

// reason is why the node is not live at a head, if it has one; empty if it is live.
func (s LiveStatus) reason(head uint64, ok bool) string {
	switch {
	case !s.Running:
		return jsonrpc.ReasonNotAnchored
	case !s.Ready, !ok, head < s.Newest:
		return jsonrpc.ReasonLiveBehind
	default:
		return ""
	}
}
