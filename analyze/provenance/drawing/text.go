package drawing

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// Text returns the drawing for a terminal: every port, nearest to the victim
// first, with what it waited for.
func (d *Drawing) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "victim %s\n", d.Victim)
	for _, e := range d.Edges {
		if e.Kind == FlowPort && e.From == d.Victim {
			fmt.Fprintf(&b, "  paused at  %-26s %s packets\n", e.To, compact(e.Weight))
		}
	}
	for i := range d.Ports {
		p := &d.Ports[i]
		fmt.Fprintf(&b, "%s  %s\n", p.ID, p.state())
		for _, e := range d.Edges {
			if e.From != p.ID {
				continue
			}
			switch {
			case e.Kind == PortPort && e.Held > 0:
				fmt.Fprintf(&b, "  waits for  %-26s %s, %s held now\n", e.To, compact(e.Weight),
					model.FormatBytes(model.Bytes(e.Held)))
			case e.Kind == PortPort:
				fmt.Fprintf(&b, "  waits for  %-26s %s\n", e.To, compact(e.Weight))
			case e.Weight > 0:
				fmt.Fprintf(&b, "  filled by  %-26s +%s\n", e.To, compact(e.Weight))
			default:
				fmt.Fprintf(&b, "  delays     %-26s %s\n", e.To, compact(e.Weight))
			}
		}
		if paused := d.pausedFlows(p.ID); len(paused) > 0 {
			fmt.Fprintf(&b, "  pauses     %s\n", strings.Join(paused, ", "))
		}
	}
	if d.Hidden > 0 {
		fmt.Fprintf(&b, "%s hidden\n", plural.Count(d.Hidden, "unrelated flow"))
	}
	return b.String()
}

// pausedFlows returns the flows, other than the victim, that were paused at a
// port.
func (d *Drawing) pausedFlows(port string) (list []string) {
	for _, e := range d.Edges {
		if e.Kind == FlowPort && e.To == port && e.From != d.Victim {
			list = append(list, e.From)
		}
	}
	return list
}

// state describes the counters of a port.
func (p *Port) state() string {
	words := []string{fmt.Sprintf("%d packets", p.Packets)}
	if p.Paused > 0 {
		words = append(words, fmt.Sprintf("%d paused", p.Paused))
	}
	if p.PauseFrames > 0 {
		frames := plural.Count(p.PauseFrames, "pause frame")
		if p.ToHost {
			frames += " from the host"
		}
		words = append(words, frames)
	}
	if p.Depth >= 0.5 {
		words = append(words, fmt.Sprintf("depth %.0f", p.Depth))
	}
	if p.PausedNow {
		words = append(words, fmt.Sprintf("paused now with %s queued", model.FormatBytes(model.Bytes(p.Queued))))
	}
	return strings.Join(words, ", ")
}

// compact returns a weight in a few characters.
func compact(v float64) string {
	sign := ""
	if v < 0 {
		sign, v = "-", -v
	}
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= u.size {
			return sign + strconv.FormatFloat(v/u.size, 'f', 1, 64) + u.name
		}
	}
	if v >= 100 {
		return sign + strconv.FormatFloat(v, 'f', 0, 64)
	}
	return sign + strconv.FormatFloat(v, 'f', 1, 64)
}
