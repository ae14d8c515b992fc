package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// WriteText writes the summary for a terminal.
func (s Summary) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintln(&b, s.Title)
	head := table{}
	head.add("fabric", s.Fabric)
	head.add("seed", decimal(s.Seed))
	head.add("simulated", showDuration(s.Simulated))
	head.add("packet-hops", s.hops())
	f := s.Flows
	head.add("flows", fmt.Sprintf("%s of %s finished, %s of %s delivered",
		showCount(f.Finished), showCount(f.Total), showBytes(f.Delivered), showBytes(f.Offered)))
	head.add("goodput", showRate(f.Goodput))
	head.add("retransmitted", countOf(int(f.Retransmitted), "packet"))
	head.add("pauses", s.Pauses.text())
	head.add("drops", s.dropsText())
	head.write(&b)

	t := table{right: true}
	t.add("FCT slowdown", "flows", "mean", "p50", "p95", "p99", "max")
	addStats(&t, "all", s.Slowdown.All)
	for _, n := range s.Slowdown.BySize {
		addStats(&t, n.Name, n.Stats)
	}
	for _, n := range s.Slowdown.ByGroup {
		addStats(&t, "group "+n.Name, n.Stats)
	}
	fmt.Fprintln(&b)
	t.write(&b)
	fmt.Fprintf(&b, "percentiles by %s\n", s.Slowdown.Percentile)

	writePorts(&b, "busiest ports", s.Busiest)
	writePorts(&b, "deepest queues", s.Deepest)
	if len(s.Notes) > 0 {
		fmt.Fprint(&b, "\nnotes\n")
	}
	for _, n := range s.Notes {
		fmt.Fprintf(&b, "- %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s Summary) hops() string {
	hops := showAmount(float64(s.PacketHops))
	if s.Wall <= 0 {
		return hops
	}
	return fmt.Sprintf("%s (%s/s, %s of wall time)", hops, showAmount(s.HopsPerSecond), showDuration(s.Wall))
}

func (p PauseSummary) text() string {
	if p.PauseFrames == 0 {
		return "none"
	}
	return fmt.Sprintf("%s (%s to hosts), %s, %s paused for %s in total, longest %s",
		countOf(p.PauseFrames, "pause frame"), showCount(p.ToHosts), countOf(p.ResumeFrames, "resume"),
		countOf(p.Queues, "queue"), showDuration(p.Total), showDuration(p.Longest))
}

func (s Summary) dropsText() string {
	if len(s.Drops) == 0 {
		return "none"
	}
	var parts []string
	for _, d := range s.Drops {
		parts = append(parts, showCount(d.Packets)+" "+d.Reason)
	}
	return strings.Join(parts, ", ")
}

func addStats(t *table, name string, s Stats) {
	if s.Flows == 0 {
		t.add(name, "0", "-", "-", "-", "-", "-")
		return
	}
	t.add(name, showCount(s.Flows), showSlowdown(s.Mean), showSlowdown(s.P50),
		showSlowdown(s.P95), showSlowdown(s.P99), showSlowdown(s.Max))
}

func writePorts(b *strings.Builder, title string, ports []PortSummary) {
	if len(ports) == 0 {
		return
	}
	t := table{right: true}
	t.add(title, "utilisation", "sent", "peak queue", "paused")
	for _, p := range ports {
		t.add(p.Name(), showPercent(p.Utilisation), showBytes(p.Tx), showBytes(p.PeakQueue), showPercent(p.Paused))
	}
	fmt.Fprintln(b)
	t.write(b)
}

// table aligns cells by their width in runes. The first column is left-aligned,
// the others are right-aligned if right is set.
type table struct {
	rows  [][]string
	right bool
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(b *strings.Builder) {
	var width []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	for _, row := range t.rows {
		var line strings.Builder
		for i, c := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			switch {
			case i == 0:
				line.WriteString(c + pad)
			case t.right:
				line.WriteString("  " + pad + c)
			default:
				line.WriteString("  " + c + pad)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}
