package bench

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Goals of LargeCold: how many times as long as on the first chain a class may take.
const (
	goalSparse = 1.5 // classes that find little, or look at a part of the chain
	goalWide   = 3.0 // classes whose logs lie scattered over the whole chain
	goalFresh  = 5.0 // the first queries of a process
)

// goalOf is the goal of a class.
func goalOf(class string) float64 {
	switch prefix, _, _ := strings.Cut(class, "_"); prefix {
	case "a2", "c1", "f2":
		return goalWide
	}
	return goalSparse
}

// Ratio is how many times as long the median of t is than that of a base.
func (t Times) Ratio(base Times) float64 {
	if base.Median() == 0 {
		return 0
	}
	return float64(t.Median()) / float64(base.Median())
}

// WriteLargeCold writes the result of LargeCold as Markdown tables: one with the figures of each
// chain, and one with the ratios of each chain to the first.
func WriteLargeCold(w io.Writer, chains []LargeColdChain) error {
	var b strings.Builder
	for i := range chains {
		chains[i].table(&b)
	}
	for i := 1; i < len(chains); i++ {
		ratios(&b, &chains[0], &chains[i])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *LargeColdChain) table(b *strings.Builder) {
	fmt.Fprintf(b, "%d blocks, %.1f M logs, %d files, data %.1f and index %.1f B a log; peak memory %d MiB. Milliseconds (least to most of the runs).\n\n",
		c.Blocks, float64(c.Space.Logs)/1e6, c.Space.Files,
		float64(c.Space.DataBytes)/float64(c.Space.Logs), float64(c.Space.IndexBytes)/float64(c.Space.Logs), c.PeakMemory>>20)
	b.WriteString("| class | logs | warm, in process | warm, HTTP | empty page cache | fresh process | from device | its first query | pages touched | pages read cold | KiB read cold | KiB from device |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, k := range c.Classes {
		fmt.Fprintf(b, "| %s | %.0f | %s | %s | %s | %s | %s | %s | %.0f | %.0f | %.0f | %.0f |\n", k.Class, k.Logs,
			k.Warm.spread(), k.HTTP.spread(), k.Cold.spread(), k.Fresh.spread(), k.Device.spread(), k.DeviceFirst.spread(),
			k.Pages, k.Reads, k.Bytes/1024, k.DeviceBytes/1024)
	}
	b.WriteString("\n")
}

// ratios compares chains. Fresh processes are compared with the warm one of the first chain, over HTTP
// like it, and from the device also with that of the first chain.
func ratios(b *strings.Builder, base, c *LargeColdChain) {
	fmt.Fprintf(b, "%d blocks against %d, times as long.\n\n", c.Blocks, base.Blocks)
	b.WriteString("| class | in process | HTTP | empty page cache | pages read cold | goal | met | fresh process | from device | from device on both | goal | met |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for i, k := range c.Classes {
		f := base.Classes[i]
		goal, fresh := goalOf(k.Class), k.Fresh.Ratio(f.HTTP)
		fmt.Fprintf(b, "| %s | %.2f | %.2f | %.2f | %.2f | %.1f | %s | %.2f | %.2f | %.2f | %.1f | %s |\n", k.Class,
			k.Warm.Ratio(f.Warm), k.HTTP.Ratio(f.HTTP), k.Cold.Ratio(f.Cold), k.Reads/max(1, f.Reads),
			goal, met(k.HTTP.Ratio(f.HTTP) <= goal), fresh, k.Device.Ratio(f.HTTP), k.Device.Ratio(f.Device), goalFresh, met(fresh <= goalFresh))
	}
	b.WriteString("\n")
}

func met(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// spread writes the median in milliseconds, and the least and the most.
func (t Times) spread() string {
	if len(t) == 0 {
		return "-"
	}
	if len(t) == 1 {
		return milliseconds(t[0])
	}
	return fmt.Sprintf("%s (%s to %s)", milliseconds(t.Median()), milliseconds(t.Quantile(0)), milliseconds(t.Quantile(1)))
}

func milliseconds(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 1:
		return fmt.Sprintf("%.3f", ms)
	case ms < 10:
		return fmt.Sprintf("%.2f", ms)
	default:
		return fmt.Sprintf("%.1f", ms)
	}
}
