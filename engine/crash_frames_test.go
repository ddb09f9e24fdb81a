package engine

import (
	"fmt"
	"slices"

	"github.com/leani-go/leani/chain"
)

// testProfiles are the kinds of partial material of the tests, from 1 on; a frames file of the model has its
// profile in place of a level. Numbers in a store differ: they come in the order of first use.
var testProfiles = [...][]ProfileGroup{
	1: {{FieldHeaders, Complete}},
	2: {{FieldHeaders, Complete}, {FieldBodies, Partial}},
	3: {{FieldLogs, Declared}},
	4: {},
}

func testDescription(profile uint8) []byte {
	return fmt.Appendf(nil, "profile %d of the model", profile)
}

// asFrames makes the row of a frames file of the model.
func asFrames(e *Engine, r *FileRow) error {
	id, err := e.ProfileID(testProfiles[r.Level], testDescription(r.Level))
	r.Profile, r.Level = id, 0
	return err
}

// levelOf is the level of a file of the model: for frames their profile.
func levelOf(s *Snapshot, r *FileRow) uint8 {
	if r.Kind != KindFrames {
		return r.Level
	}
	p := profileOf(s.Profiles(), r.Profile)
	for i := range testProfiles {
		if p != nil && string(p.Description) == string(testDescription(uint8(i))) && slices.Equal(p.Groups, testProfiles[i]) {
			return uint8(i)
		}
	}
	return 0xff
}

// frames adds a frames file of a profile, alone or with one of another profile that it overlaps.
func (w *world) frames() {
	var add []modelFile
	from, room := uint64(w.rng.IntN(60)), uint64(1+w.rng.IntN(12))
	for range 1 + w.rng.IntN(2) {
		profile := uint8(1 + w.rng.IntN(len(testProfiles)-1))
		free := chain.Range{From: from, To: from + room}
		for _, f := range append(w.of(KindFrames, int(profile)), add...) {
			if f.level == profile && !f.blocks.Intersect(free).Empty() {
				free = chain.Range{}
			}
		}
		if !free.Empty() {
			add = append(add, w.newFile(KindFrames, profile, free))
		}
		from += uint64(w.rng.IntN(3))
	}
	var remove []modelFile
	if old := w.of(KindFrames, -1); len(old) > 0 && w.rng.IntN(3) == 0 {
		remove = append(remove, old[w.rng.IntN(len(old))])
	}
	w.commit("frames", add, remove)
}

// verifyFrames compares the coverage of partial material with the model, and that it is nobody else's.
func (w *world) verifyFrames(s *Snapshot) {
	const end = 400
	for i := 1; i < len(testProfiles); i++ {
		var has [end]bool
		for _, f := range w.of(KindFrames, i) {
			for n := f.blocks.From; n < f.blocks.To; n++ {
				has[n] = true
			}
		}
		for _, p := range s.Profiles() {
			if string(p.Description) != string(testDescription(uint8(i))) {
				continue
			}
			for _, g := range testProfiles[i] {
				var covered [end]bool
				for _, run := range s.PartialCoverage(g.Field, p.ID) {
					if run.Completeness != g.Completeness || run.Profile != p.ID {
						w.fail("run %+v of %+v", run, g)
					}
					for n := run.From; n < run.To; n++ {
						covered[n] = true
					}
				}
				if covered != has {
					w.fail("coverage of %s of profile %d differs from the files", g.Field, p.ID)
				}
			}
			for _, r := range s.Frames(p.ID) {
				if r.Profile != p.ID {
					w.fail("%s is listed for profile %d", r, p.ID)
				}
			}
			has = [end]bool{}
		}
		if has != [end]bool{} {
			w.fail("profile %d of the model has files and no row", i)
		}
	}
	for _, g := range []FieldGroup{FieldHeaders, FieldBodies, FieldReceipts, FieldLogs} {
		for _, run := range s.Coverage(g) {
			if run.Profile != ProfileComplete || run.Completeness != Complete || g == FieldLogs {
				w.fail("partial material counts as complete: %+v", run)
			}
		}
	}
}
