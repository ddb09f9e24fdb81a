package history

import (
	"bytes"
	"context"
	"fmt"
	"sort"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/segments"
)

// PartialProfile is a kind of partial material in the store.
type PartialProfile struct {
	ID uint16
	// Profile is what its frames hold. It is shared: read only.
	Profile *chain.Profile
	// Ranges are the maximal runs of blocks with a frame, in order.
	Ranges []chain.Range
	Blocks uint64
	Files  int
	Bytes  int64
}

// Partial lists the kinds of partial material that the view sees, by number. Those whose files are all gone are
// not listed.
func (v *View) Partial() ([]PartialProfile, error) {
	var list []PartialProfile
	for _, p := range v.snapshot.Profiles() {
		rows := v.snapshot.Frames(p.ID)
		if len(rows) == 0 {
			continue
		}
		profile, err := v.store.profile(p)
		if err != nil {
			return nil, err
		}
		part := PartialProfile{ID: p.ID, Profile: profile, Files: len(rows)}
		for _, r := range rows {
			part.Blocks += r.Blocks()
			part.Bytes += r.Size
			if n := len(part.Ranges); n > 0 && part.Ranges[n-1].To == r.From {
				part.Ranges[n-1].To = r.To
			} else {
				part.Ranges = append(part.Ranges, r.Range())
			}
		}
		list = append(list, part)
	}
	return list, nil
}

// Frames yields frames of partial material in a range, in block order, at most one of a block: of the first
// profile whose material supplies all that is needed. What no frame supplies is left out, and the result says
// for which blocks one was yielded, as maximal runs: the others are not empty, they are not known here. A frame
// is valid until yield returns; its bytes stay valid and are shared. An error of yield ends the iteration and is
// returned.
//
// Complete material is not consulted: it answers for itself.
func (v *View) Frames(ctx context.Context, r chain.Range, need chain.Requirement, yield func(*chain.Frame) error) (supplied []chain.Range, err error) {
	cursors, err := v.frameCursors(r)
	if err != nil {
		return nil, err
	}
	var f chain.Frame
	for n := r.From; n < r.To; {
		if err := ctx.Err(); err != nil {
			return supplied, err
		}
		row, next := supplier(cursors, n, r.To, &need)
		if row == nil {
			n = next
			continue
		}
		file, err := v.store.frames(v.snapshot, row)
		if err != nil {
			return supplied, err
		}
		if err := file.Load(n, &f, &v.access); err != nil {
			return supplied, err
		}
		if err := yield(&f); err != nil {
			return supplied, err
		}
		n++
		if last := len(supplied) - 1; last >= 0 && supplied[last].To == n-1 {
			supplied[last].To = n
		} else {
			supplied = append(supplied, chain.Range{From: n - 1, To: n})
		}
	}
	return supplied, nil
}

// frameCursor walks the files of one profile.
type frameCursor struct {
	profile *chain.Profile
	rows    []*engine.FileRow
}

func (v *View) frameCursors(r chain.Range) (list []frameCursor, err error) {
	for _, p := range v.snapshot.Profiles() {
		rows := v.snapshot.Frames(p.ID)
		rows = rows[sort.Search(len(rows), func(i int) bool { return rows[i].To > r.From }):]
		if len(rows) == 0 || rows[0].From >= r.To {
			continue
		}
		profile, err := v.store.profile(p)
		if err != nil {
			return nil, err
		}
		list = append(list, frameCursor{profile, rows})
	}
	return list, nil
}

// supplier finds a file whose frame of block n supplies what is needed; if there is none, next is the first
// block after n, at most end, where that can change.
func supplier(cursors []frameCursor, n, end uint64, need *chain.Requirement) (row *engine.FileRow, next uint64) {
	next = end
	for i := range cursors {
		c := &cursors[i]
		for len(c.rows) > 0 && c.rows[0].To <= n {
			c.rows = c.rows[1:]
		}
		switch {
		case len(c.rows) == 0:
		case c.rows[0].From > n:
			next = min(next, c.rows[0].From)
		case c.profile.Supplies(n, need):
			return c.rows[0], n
		default:
			next = min(next, n+1) // a scope can be restricted to blocks
		}
	}
	return nil, next
}

// profile decodes the description of a profile. Profiles of the engine never change.
func (s *Store) profile(p *engine.Profile) (*chain.Profile, error) {
	if known, ok := s.profiles.Load(p); ok {
		return known.(*chain.Profile), nil
	}
	profile, err := segments.DecodeProfile(p.Description)
	if err != nil {
		return nil, fmt.Errorf("profile %d: %w", p.ID, err)
	}
	s.profiles.Store(p, profile)
	return profile, nil
}

// frames opens a frames file, whose profile must be the one that the store describes.
func (s *Store) frames(snap *engine.Snapshot, row *engine.FileRow) (*segments.Frames, error) {
	return segment(s, row, func(f *segments.File) (*segments.Frames, error) { return framesOf(snap, row, f) })
}

func framesOf(snap *engine.Snapshot, row *engine.FileRow, f *segments.File) (*segments.Frames, error) {
	v, err := segments.NewFrames(f)
	if err != nil {
		return nil, err
	}
	for _, p := range snap.Profiles() {
		if p.ID == row.Profile && bytes.Equal(p.Description, v.EncodedProfile()) {
			return v, nil
		}
	}
	return nil, corruptRow(row, fmt.Errorf("frames are not of profile %d as the store describes it", row.Profile))
}

// groupsOf are the field groups that frames of a profile hold.
func groupsOf(p *chain.Profile) (groups []engine.ProfileGroup) {
	add := func(field engine.FieldGroup, c engine.Completeness) {
		if c != 0 {
			groups = append(groups, engine.ProfileGroup{Field: field, Completeness: c})
		}
	}
	state := func(c chain.Capability) engine.Completeness {
		switch m := &p.Materials[c]; {
		case m.Complete():
			return engine.Complete
		case !m.Present():
			return 0
		case m.Completeness == chain.VerifiedPredicate:
			return engine.Proved
		case m.Completeness == chain.DatasetDeclared:
			return engine.Declared
		}
		return engine.Partial
	}
	// exactly is what is left of a state when the encodings that prove it are not there.
	exactly := func(c engine.Completeness, details chain.Details) engine.Completeness {
		if _, missing := p.Details.Missing(details); missing && c != 0 {
			return engine.Partial
		}
		return c
	}
	transactions, withdrawals := state(chain.CapabilityTransactions), state(chain.CapabilityWithdrawals)
	receipts, logs := state(chain.CapabilityReceipts), state(chain.CapabilityLogs)
	body := exactly(transactions, chain.DetailEnvelopes)
	if (transactions != 0 || withdrawals != 0 || p.Ommers) && (withdrawals != engine.Complete || !p.Ommers || transactions == 0) {
		body = engine.Partial
	}
	add(engine.FieldHeaders, exactly(state(chain.CapabilityHeader), chain.DetailHeaderRLP))
	add(engine.FieldBodies, body)
	add(engine.FieldReceipts, exactly(receipts, chain.DetailReceiptEncodings))
	if p.Details&chain.DetailSenders != 0 {
		add(engine.FieldSenders, transactions)
	}
	if receipts != engine.Complete {
		add(engine.FieldLogs, logs)
	}
	return groups
}
