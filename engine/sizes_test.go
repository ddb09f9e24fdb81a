package engine

import (
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/announced"
	"github.com/leani-go/leani/keys"
)

// SEC-012: whatever lengths stored values and the file GENERATION announce, they take memory in proportion to their
// bytes.
func TestAnnouncedSizes(t *testing.T) {
	b, frame, content := hotExample()
	r := newRow(KindData, 0, chain.Range{From: 1, To: 2}, []byte("x"))
	k := keys.Segment{Kind: KindData, From: 1, Generation: 1}
	announced.Sizes(t, 64<<10, 200, func(value []byte) {
		_, _ = decodeCanonical(keys.Canonical{Number: 7}, value)
		_, _ = decodeFrame(frame.Append(nil), value)
		_, _ = decodeFinality(value)
		_, _ = decodeSegmentRow(k, value)
		_, _ = decodeTombstone(keys.Retired(k), value)
		_, _ = decodeCoverage(keys.RawCoverage{Field: FieldIndex, From: 1}, value)
		_, _ = decodeProfile(keys.Profile{ID: 1}, value)
		_, _ = parseGenerationFile(value)
	}, appendProfileValue(nil, &Profile{Groups: testProfiles[1], Description: testDescription(1)}),
		appendCanonicalValue(nil, b), appendFrame(nil, frame.Append(nil), content), appendFinalityValue(nil, b.BlockRef),
		appendSegmentValue(nil, &r), appendTombstoneValue(nil, tombstoneOf(&r)),
		appendCoverageValue(nil, CoverageRun{Completeness: Complete, Range: chain.Range{From: 1, To: 2}}))
}
