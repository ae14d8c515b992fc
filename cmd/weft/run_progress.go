package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
)

// progressBar shows on a terminal how far a run is.
type progressBar struct {
	w        io.Writer
	quiet    bool
	terminal bool
}

func newProgressBar(w io.Writer, quiet bool) *progressBar {
	b := &progressBar{w: w, quiet: quiet}
	if f, ok := w.(*os.File); ok && !quiet {
		info, err := f.Stat()
		b.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	}
	return b
}

func (b *progressBar) show(p scenario.Progress) {
	if !b.terminal {
		return
	}
	const width = 24
	done := int(width * float64(p.Now) / float64(p.End))
	fmt.Fprintf(b.w, "\r[%s%s] %v of %v  %d of %d flows  %s packet-hops/s  %v left\x1b[K",
		strings.Repeat("=", done), strings.Repeat(" ", width-done), p.Now.Round(time.Microsecond), p.End,
		p.Finished, p.Flows, amount(p.PerWall), p.Left.Round(100*time.Millisecond))
}

// showRuns shows how many runs are done.
func (b *progressBar) showRuns(done, all int) {
	if b.terminal {
		fmt.Fprintf(b.w, "\r%d of %s done\x1b[K", done, plural.Count(all, "run"))
	}
}

func (b *progressBar) clear() {
	if b.terminal {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}

// done prints the speed of the run. It goes to standard error, because standard
// output depends on the scenario alone.
func (b *progressBar) done(r *scenario.Result) {
	if !b.quiet {
		fmt.Fprintf(b.w, "%s simulated in %s, %s packet-hops/s\n", model.FormatDuration(time.Duration(r.Run.End)),
			model.FormatDuration(r.Wall),
			amount(float64(r.Run.PacketHops)/max(r.Wall.Seconds(), 1e-9)))
	}
}

// amount formats a large number with three significant digits.
func amount(v float64) string {
	unit := ""
	for _, u := range []string{"k", "M", "G"} {
		if v < 1000 {
			break
		}
		v, unit = v/1000, " "+u
	}
	return strings.TrimSpace(figure(v, "")) + unit
}
