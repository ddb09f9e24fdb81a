package history

import (
	"context"
	"sort"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/internal/invariants"
	"github.com/leani-go/leani/segments"
)

// scanRows is the number of rows up to which reading all of them is cheaper than asking the index: a
// page holds some 200 rows, and the terms of a query cost a page or more each.
const scanRows = 1024

// planLookups bounds the term look-ups that planning makes, and with them the lists that a plan holds: a
// query with more is heavy whatever it finds, and looks up its terms part by part as it runs.
const planLookups = 512

// logPlan is what was found out about a query before it runs. LogsCost leaves it for Logs.
type logPlan struct {
	r      chain.Range
	filter *chain.LogFilter
	valid  bool
	parts  []logPart
	hot    []hotPart
	terms  hotTerms // for hot
	cost   uint64
}

// logPart is the piece of a query that one index file, or a scan, answers. Positions count from the first
// log of the store.
type logPart struct {
	files    []positioned    // the data files under the index
	from, to uint64          // positions of logs, half-open
	row      *engine.FileRow // of the index; nil to read all rows

	// What follows is set once the terms were looked up.
	found   bool
	base    uint64 // position of the first log of the index
	index   *segments.Index
	clauses []clause // empty: read all rows
}

// LogsCost estimates the number of rows and postings that a query visits. It looks up terms and keeps what
// it found for Logs, as long as that is called next with the same range and filter, which must not change
// in between.
func (v *View) LogsCost(ctx context.Context, r chain.Range, f *chain.LogFilter) (uint64, error) {
	if err := v.planLogs(ctx, r, f); err != nil {
		return 0, err
	}
	return v.plan.cost, nil
}

// Logs yields the matching logs of a range in order. It fails with *chain.NotRetainedError when a
// block of the range is missing, with the error of yield, and with the context's error soon after it
// is cancelled.
func (v *View) Logs(ctx context.Context, r chain.Range, f *chain.LogFilter, yield func(*chain.FoundLog) error) error {
	if err := v.planLogs(ctx, r, f); err != nil {
		return err
	}
	plan := v.plan
	v.plan = logPlan{} // its cursors are used up
	run := logRun{ctx: ctx, view: v, matcher: segments.NewMatcher(f), yield: yield}
	defer run.close()
	for i := range plan.parts {
		p := plan.parts[i]
		plan.parts[i] = logPart{} // lists of parts that are done go
		if err := v.findPart(ctx, &p, f); err != nil {
			return err
		}
		var err error
		if len(p.clauses) == 0 {
			err = run.scan(&p)
		} else {
			err = run.intersect(&p)
		}
		if err != nil {
			return err
		}
	}
	return run.hotLogs(plan.hot, &plan.terms)
}

// planLogs finds the parts of a query and, if they are not many, looks up its terms.
func (v *View) planLogs(ctx context.Context, r chain.Range, f *chain.LogFilter) error {
	if v.plan.valid && v.plan.r == r && v.plan.filter == f {
		return nil
	}
	v.plan = logPlan{r: r, filter: f}
	if r.Empty() {
		v.plan.valid = true
		return nil
	}
	if missing, ok := v.snapshot.Missing(engine.FieldReceipts, r); ok {
		return &chain.NotRetainedError{Range: missing}
	}
	if err := v.planHot(ctx, r, f); err != nil {
		return err
	}
	if !v.hot.span.Empty() {
		r.To = min(r.To, max(r.From, v.hot.span.From)) // the files
	}
	at := r.From
	for _, part := range v.snapshot.IndexFiles(r) {
		if part.From > at { // committed files always have an index; do not depend on it
			if err := v.planScan(chain.Range{From: at, To: part.From}); err != nil {
				return err
			}
		}
		if err := v.planPart(part); err != nil {
			return err
		}
		at = part.To
	}
	if at < r.To {
		if err := v.planScan(chain.Range{From: at, To: r.To}); err != nil {
			return err
		}
	}
	terms := len(f.Addresses)
	for _, alternatives := range f.Topics {
		terms += len(alternatives)
	}
	lookups := terms*len(v.plan.parts) <= planLookups
	for i := range v.plan.parts {
		p := &v.plan.parts[i]
		if lookups {
			if err := v.findPart(ctx, p, f); err != nil {
				return err
			}
		}
		v.plan.cost += p.cost()
	}
	v.plan.valid = true
	return nil
}

// cost is the number of rows of the part, or less when its clauses are known.
func (p *logPart) cost() uint64 {
	rows := p.to - p.from
	if len(p.clauses) == 0 {
		return rows
	}
	// The other lists are entered about once for each position of the first.
	return min(rows, p.clauses[0].count*uint64(len(p.clauses)))
}

func (v *View) planScan(r chain.Range) error {
	for _, f := range v.layout.files(r) {
		p := logPart{files: []positioned{f}}
		if err := v.cut(&p, f.row.Range().Intersect(r)); err != nil {
			return err
		}
		v.addPart(p)
	}
	return nil
}

func (v *View) addPart(p logPart) {
	if p.from < p.to {
		v.plan.parts = append(v.plan.parts, p)
	}
}

// cut sets the positions of the logs of a range of blocks, which lies within the files of p.
func (v *View) cut(p *logPart, r chain.Range) (err error) {
	if p.from, err = v.firstLog(p.files, r.From); err != nil {
		return err
	}
	p.to, err = v.firstLog(p.files, r.To)
	return err
}

// firstLog is the position of the first log of block n or later.
func (v *View) firstLog(files []positioned, n uint64) (uint64, error) {
	i := sort.Search(len(files), func(i int) bool { return files[i].row.To > n })
	if i == len(files) {
		last := files[len(files)-1]
		return last.logs + last.row.Logs, nil
	}
	if n <= files[i].row.From {
		return files[i].logs, nil
	}
	d, err := v.store.data(files[i].row)
	if err != nil {
		return 0, err
	}
	b, err := d.Block(n, &v.access)
	if err != nil {
		return 0, err
	}
	return files[i].logs + uint64(b.FirstLog), nil
}

func (v *View) planPart(part engine.IndexPart) error {
	files, err := v.filesOf(part.Row)
	if err != nil {
		return err
	}
	p := logPart{files: files}
	if err := v.cut(&p, part.Range); err != nil {
		return err
	}
	if p.to-p.from > v.store.opts.scanRows {
		p.row = part.Row
	}
	v.addPart(p)
	return nil
}

// findPart looks up the terms of a part. A part that cannot have a match becomes empty.
func (v *View) findPart(ctx context.Context, p *logPart, f *chain.LogFilter) (err error) {
	if p.found || p.row == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.index, err = v.store.index(p.row); err != nil {
		return err
	}
	p.base = p.files[0].logs
	possible, err := p.findClauses(f, &v.access)
	if err != nil {
		return err
	}
	if !possible {
		p.to = p.from
	}
	p.found = true
	return nil
}

// logRun carries out a plan.
type logRun struct {
	ctx     context.Context
	view    *View
	matcher *segments.Matcher
	yield   func(*chain.FoundLog) error

	cursor *segments.Cursor // of file
	file   *engine.FileRow
	visits uint
	next   uint64 // position behind the last visit; kept only where invariants are checked
}

// checkEvery is the number of rows between two looks at the context.
const checkEvery = 512

func (r *logRun) close() {
	if r.cursor != nil {
		r.cursor.Close()
		r.cursor = nil
	}
}

// visit yields the row of a file if it matches.
func (r *logRun) visit(f *positioned, row uint32) error {
	if invariants.Enabled {
		if f.logs+uint64(row) < r.next {
			invariants.Checkf(false, "a query goes back to log %d of %s", row, f.row)
		}
		r.next = f.logs + uint64(row) + 1
	}
	if r.visits++; r.visits%checkEvery == 0 && r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	if r.file != f.row {
		d, err := r.view.store.data(f.row)
		if err != nil {
			return err
		}
		r.close()
		r.cursor, r.file = d.Cursor(&r.view.access), f.row
	}
	l, err := r.cursor.Find(row, r.matcher)
	if l == nil || err != nil {
		return err
	}
	return r.yield(l)
}

// scan reads all rows of a part.
func (r *logRun) scan(p *logPart) error {
	for i := range p.files {
		f := &p.files[i]
		from, to := max(p.from, f.logs), min(p.to, f.logs+f.row.Logs)
		for at := from; at < to; at++ {
			if err := r.visit(f, uint32(at-f.logs)); err != nil {
				return err
			}
		}
	}
	return nil
}

// rows visits positions of the part's index, which ascend.
func (r *logRun) rows(p *logPart, positions []uint32) error {
	i := 0
	for _, position := range positions {
		at := p.base + uint64(position)
		for at >= p.files[i].logs+p.files[i].row.Logs {
			i++
		}
		if err := r.visit(&p.files[i], uint32(at-p.files[i].logs)); err != nil {
			return err
		}
	}
	return nil
}
