package progress

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
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

// text is the state in one line.
func (s state) text() string {
	blocks := humanize.Comma(int64(s.Blocks))
	if s.TotalBlock > 0 {
		blocks = fmt.Sprintf("%s/%s blocks, %.1f%%", blocks, humanize.Comma(int64(s.TotalBlock)), 100*float64(s.Blocks)/float64(s.TotalBlock))
	} else {
		blocks += " blocks"
	}
	eta := "-"
	if left, ok := s.left(); ok {
		eta = left.Round(time.Second).String()
	}
	return fmt.Sprintf("%s, %s blocks/s, %.1f MiB/s, ETA %s", blocks, rate(s.BlocksPerSecond), s.BytesPerSecond/(1<<20), eta)
}

// rate shows small rates with a decimal and large ones without.
func rate(perSecond float64) string {
	if perSecond < 10 {
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	}
	return humanize.Comma(int64(math.Round(perSecond)))
}

// writeJSON prints the state as one line. Rates are rounded to a thousandth.
func (s state) writeJSON(w io.Writer, event string) {
	line := struct {
		Event string `json:"event"`
		Count
		TotalBlocks     uint64   `json:"totalBlocks,omitempty"`
		ElapsedSeconds  float64  `json:"elapsedSeconds"`
		BlocksPerSecond float64  `json:"blocksPerSecond"`
		BytesPerSecond  float64  `json:"bytesPerSecond"`
		ETASeconds      *float64 `json:"etaSeconds,omitempty"`
	}{
		Event: event, Count: s.Count, TotalBlocks: s.TotalBlock, ElapsedSeconds: thousandths(s.Elapsed.Seconds()),
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
