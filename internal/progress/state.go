package progress

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// state is one snapshot of a run, ready to be shown.
type state struct {
	Count
	TotalBlock      uint64
	Elapsed         time.Duration
	BlocksPerSecond float64
	BytesPerSecond  float64
}

// left is the time the rest takes at the present rate; false while nothing tells.
func (s state) left() (time.Duration, bool) {
	if s.TotalBlock == 0 || s.BlocksPerSecond <= 0 || s.Blocks > s.TotalBlock {
		return 0, false
	}
	seconds := float64(s.TotalBlock-s.Blocks) / s.BlocksPerSecond
	if seconds > math.MaxInt64/float64(time.Second)/2 {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// text is the state in one line. What is not known, such as bytes of a run that counts none, is left out.
func (s state) text() string {
	var b strings.Builder
	if s.TotalBlock > 0 {
		fmt.Fprintf(&b, "%s/%s, %.1f%%", humanize.Comma(int64(s.Blocks)), blocks(s.TotalBlock), 100*float64(s.Blocks)/float64(s.TotalBlock))
	} else {
		b.WriteString(blocks(s.Blocks))
	}
	fmt.Fprintf(&b, ", %s blocks/s", rate(s.BlocksPerSecond))
	if s.Bytes > 0 {
		fmt.Fprintf(&b, ", %.1f MiB/s", s.BytesPerSecond/(1<<20))
	}
	if left, ok := s.left(); ok {
		fmt.Fprintf(&b, ", ETA %s", left.Round(time.Second))
	}
	return b.String()
}

// blocks is a number of blocks in words.
func blocks(n uint64) string {
	if n == 1 {
		return "1 block"
	}
	return humanize.Comma(int64(n)) + " blocks"
}

// rate shows small rates with a decimal and large ones without.
func rate(perSecond float64) string {
	if perSecond < 10 {
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	}
	return humanize.Comma(int64(math.Round(perSecond)))
}

// writeJSON prints the state as one line. Rates are rounded to a thousandth.
func (s state) writeJSON(w io.Writer, event, reason string) {
	line := struct {
		Event  string `json:"event"`
		Reason string `json:"reason,omitempty"`
		Count
		TotalBlocks     uint64   `json:"totalBlocks,omitempty"`
		ElapsedSeconds  float64  `json:"elapsedSeconds"`
		BlocksPerSecond float64  `json:"blocksPerSecond"`
		BytesPerSecond  float64  `json:"bytesPerSecond"`
		ETASeconds      *float64 `json:"etaSeconds,omitempty"`
	}{
		Event: event, Reason: reason, Count: s.Count, TotalBlocks: s.TotalBlock, ElapsedSeconds: thousandths(s.Elapsed.Seconds()),
		BlocksPerSecond: thousandths(s.BlocksPerSecond), BytesPerSecond: thousandths(s.BytesPerSecond),
	}
	if left, ok := s.left(); ok && event == "progress" {
		seconds := thousandths(left.Seconds())
		line.ETASeconds = &seconds
	}
	if text, err := json.Marshal(line); err == nil { // a struct of numbers always encodes
		fmt.Fprintf(w, "%s\n", text)
	}
}

func thousandths(f float64) float64 { return math.Round(f*1000) / 1000 }
