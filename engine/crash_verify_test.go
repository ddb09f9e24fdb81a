package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/keys"
)

// verifyQuarantine compares the quarantine with what was planted. A crash may have duplicated
// a file.
func (w *world) verifyQuarantine() {
	l := layout{fs: w.disk, dir: testDir}
	names, err := w.disk.List(l.quarantine())
	if err != nil {
		w.fail("list quarantine: %v", err)
		return
	}
	found := map[string]bool{}
	for _, n := range names {
		content, err := w.disk.UnsafeGetFileDataBuffer(w.disk.PathJoin(l.quarantine(), n))
		if err != nil {
			w.fail("read quarantine: %v", err)
			return
		}
		if !w.foreign[string(content)] {
			w.fail("%s is in quarantine and is none of the planted files", n)
		}
		found[string(content)] = true
	}
	if !maps.Equal(found, w.foreign) {
		w.fail("quarantine: got %d known files want %d: %v", len(found), len(w.foreign), slices.Collect(maps.Keys(w.foreign)))
	}
}

// verifyCheck runs Check; without pins and pending files nothing may be waiting after a reap.
func (w *world) verifyCheck() {
	w.t.Helper()
	report, err := w.engine.Check(context.Background(), CheckOptions{File: checkContent})
	if err != nil {
		w.expectStopped("check", err)
		return
	}
	for _, p := range report.Problems {
		w.fail("check: %s", p)
	}
	if len(w.pins) == 0 && w.engine.mu.pending == 0 && w.engine.opts.noReaper && len(w.engine.mu.deletable) == 0 && len(report.Waiting) > 0 {
		w.fail("leaked files: %v", report.Waiting)
	}
}

// verifyPins reads every held snapshot in full.
func (w *world) verifyPins() {
	for _, p := range w.pins {
		got, err := snapshotFiles(p.snapshot)
		if err != nil {
			w.fail("read pinned snapshot of generation %d: %v", p.snapshot.Generation(), err)
			continue
		}
		if !sameFiles(got, p.files) {
			w.fail("pinned snapshot: got %v want %v", describe(got), describe(p.files))
		}
		hot, err := snapshotHot(p.snapshot)
		if err != nil || !hot.same(&p.hot) {
			w.fail("recent blocks of a pinned snapshot: got %v, %v want %v", &hot, err, &p.hot)
		}
	}
}

func (w *world) releasePins() {
	for _, p := range w.pins {
		p.snapshot.Release()
	}
	w.pins = nil
}

// verifyCoverage compares coverage and look-ups with the blocks of the model, one by one.
func (w *world) verifyCoverage() {
	s := w.engine.Acquire()
	defer s.Release()
	w.verifyFrames(s)
	const end = 400
	for kind, groups := range map[Kind][]FieldGroup{
		KindData:    {FieldHeaders, FieldBodies, FieldReceipts},
		KindSenders: {FieldSenders},
		KindIndex:   {FieldIndex},
	} {
		var has [end]bool
		for _, f := range w.of(kind, -1) {
			for n := f.blocks.From; n < f.blocks.To; n++ {
				has[n] = true
			}
		}
		files := has
		if kind != KindSenders {
			for _, b := range w.hot.blocks {
				has[b.Number] = true
			}
		}
		for _, g := range groups {
			var covered [end]bool
			last := uint64(0)
			for i, run := range s.Coverage(g) {
				if i > 0 && run.From <= last {
					w.fail("coverage of %s: run %v is not maximal", g, run.Range)
				}
				last = run.To
				for n := run.From; n < run.To; n++ {
					covered[n] = true
				}
			}
			if covered != has {
				w.fail("coverage of %s differs from the files: %v", g, s.Coverage(g))
			}
		}
		if kind == KindData {
			for n := range uint64(end) {
				if r, ok := s.DataFile(n); ok != files[n] || ok && !r.Range().Contains(n) {
					w.fail("data file of block %d: got %v", n, r)
				}
			}
		}
		if kind == KindIndex {
			var indexed [end]bool
			for _, p := range s.IndexFiles(chain.Range{From: 0, To: end}) {
				for n := p.From; n < p.To; n++ {
					if indexed[n] || !p.Row.Range().Contains(n) {
						w.fail("index parts overlap or exceed their file at block %d", n)
					}
					indexed[n] = true
				}
			}
			if indexed != files {
				w.fail("index parts differ from the files")
			}
		}
	}
}

// readFiles reads everything that is committed.
func readFiles(e *Engine) ([]modelFile, error) {
	s := e.Acquire()
	defer s.Release()
	return snapshotFiles(s)
}

func snapshotFiles(s *Snapshot) ([]modelFile, error) {
	var list []modelFile
	for _, kind := range keys.Kinds() {
		for _, r := range s.Rows(kind) {
			f, err := s.Open(r)
			if err != nil {
				return nil, err
			}
			content, err := readAll(f)
			_ = f.Close()
			if err != nil {
				return nil, err
			}
			list = append(list, modelFile{r.Kind, levelOf(s, r), r.Range(), string(content)})
		}
	}
	return list, nil
}

// sameFiles compares two sets of files.
func sameFiles(a, b []modelFile) bool {
	count := map[modelFile]int{}
	for _, f := range a {
		count[f]++
	}
	for _, f := range b {
		count[f]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

func describe(list []modelFile) []string {
	out := make([]string, len(list))
	for i, f := range list {
		out[i] = fmt.Sprintf("%s%v.l%d(%d bytes)", f.kind, f.blocks, f.level, len(f.content))
	}
	sort.Strings(out)
	return out
}
