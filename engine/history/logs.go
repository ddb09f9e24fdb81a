package history

import (
	"context"
	"sort"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/engine"
	"github.com/leani-go/leani/segments"
)

// scanRows is the number of rows up to which reading all of them is cheaper than asking the index: a
// page holds some 200 rows, and the terms of a query cost a page or more each.
const scanRows = 1024

// logPlan is what was found out about a query before it runs. LogsCost leaves it for Logs.
type logPlan struct {
	r      chain.Range
	filter *chain.LogFilter
	valid  bool
	parts  []logPart
	cost   uint64
}

// logPart is the piece of a query that one index file, or a scan, answers.
type logPart struct {
	files    []positioned // the data files under the index
	from, to uint64       // positions of logs, half-open
	index    *segments.Index
	clauses  []clause // empty: read all rows
}

// LogsCost estimates the number of rows or postings that a query visits.
func (v *View) LogsCost(r chain.Range, f *chain.LogFilter) (uint64, error) {
	if err := v.planLogs(r, f); err != nil {
		return 0, err
	}
	return v.plan.cost, nil
}

// Logs yields the matching logs of a range in order. It fails with *chain.NotRetainedError when a
// block of the range is missing, with the error of yield, and with the context's error soon after it
// is cancelled.
func (v *View) Logs(ctx context.Context, r chain.Range, f *chain.LogFilter, yield func(*chain.FoundLog) error) error {
	if err := v.planLogs(r, f); err != nil {
		return err
	}
	v.plan.valid = false // cursors are used up
	run := logRun{ctx: ctx, view: v, matcher: segments.NewMatcher(f), yield: yield}
	defer run.close()
	for i := range v.plan.parts {
		p := &v.plan.parts[i]
		var err error
		if len(p.clauses) == 0 {
			err = run.scan(p)
		} else {
			err = run.intersect(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// planLogs finds the parts of a query and looks up its terms.
func (v *View) planLogs(r chain.Range, f *chain.LogFilter) error {
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
	at := r.From
	for _, part := range v.snapshot.IndexFiles(r) {
		if part.From > at { // committed files always have an index; do not depend on it
			if err := v.planScan(chain.Range{From: at, To: part.From}); err != nil {
				return err
			}
		}
		if err := v.planPart(part, f); err != nil {
			return err
		}
		at = part.To
	}
	if at < r.To {
		if err := v.planScan(chain.Range{From: at, To: r.To}); err != nil {
			return err
		}
	}
	v.plan.valid = true
	return nil
}

func (v *View) planScan(r chain.Range) error {
	for _, row := range v.snapshot.DataFiles(r) {
		p := logPart{files: []positioned{{row: row}}}
		if err := v.cut(&p, row.Range().Intersect(r)); err != nil {
			return err
		}
		v.addPart(p, p.to-p.from)
	}
	return nil
}

func (v *View) addPart(p logPart, cost uint64) {
	if p.from < p.to {
		v.plan.parts = append(v.plan.parts, p)
		v.plan.cost += cost
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

func (v *View) planPart(part engine.IndexPart, f *chain.LogFilter) error {
	files, err := v.filesOf(part.Row)
	if err != nil {
		return err
	}
	p := logPart{files: files}
	if err := v.cut(&p, part.Range); err != nil {
		return err
	}
	if p.to-p.from <= v.store.opts.scanRows {
		v.addPart(p, p.to-p.from)
		return nil
	}
	if p.index, err = v.store.index(part.Row); err != nil {
		return err
	}
	possible, err := p.findClauses(f, &v.access)
	if err != nil || !possible {
		return err
	}
	cost := p.to - p.from
	if len(p.clauses) > 0 {
		cost = min(cost, p.clauses[0].count)
	}
	v.addPart(p, cost)
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

// rows visits positions, which ascend.
func (r *logRun) rows(p *logPart, positions []uint32) error {
	i := 0
	for _, at := range positions {
		for uint64(at) >= p.files[i].logs+p.files[i].row.Logs {
			i++
		}
		if err := r.visit(&p.files[i], uint32(uint64(at)-p.files[i].logs)); err != nil {
			return err
		}
	}
	return nil
}
