package main

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/leani-go/leani/chain"
)

// counted is a number and what it counts: "1 problem", "12,000 blocks".
func counted(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return humanize.Comma(int64(n)) + " " + what + "s"
}

// listedSpans bounds how many spans a line lists.
const listedSpans = 6

// String is the span in words.
func (s blockSpan) String() string {
	if s.From == s.To {
		return fmt.Sprintf("block %d", s.From)
	}
	return fmt.Sprintf("blocks %d to %d", s.From, s.To)
}

// spansOf joins ranges that touch, and leaves out empty ones.
func spansOf(ranges []chain.Range) []blockSpan {
	spans := []blockSpan{}
	for _, r := range ranges {
		if r.Empty() {
			continue
		}
		if n := len(spans); n > 0 && spans[n-1].To+1 == r.From {
			spans[n-1].To = r.To - 1
			continue
		}
		spans = append(spans, blockSpan{r.From, r.To - 1})
	}
	return spans
}

// listSpans names spans in a line, the first few and the last when there are many.
func listSpans(spans []blockSpan) string {
	var parts []string
	for i, s := range spans {
		if i >= listedSpans-1 && i < len(spans)-1 {
			if i == listedSpans-1 {
				parts = append(parts, "…")
			}
			continue
		}
		parts = append(parts, s.String())
	}
	return strings.Join(parts, ", ")
}
