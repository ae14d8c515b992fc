package traffic

import (
	"fmt"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// Stats describes a list before it is run.
type Stats struct {
	Flows        int
	Groups       int
	Computations int           // not among Flows
	Open         int           // flows without a size, which send until their Stop
	Bytes        model.Bytes   // payload of the others
	First        model.Time    // earliest start
	Last         model.Time    // latest start or Stop; flows with After may start later
	Span         time.Duration // the time that loads refer to
	Hosts        []HostLoad    // in the order of the argument
}

// HostLoad is what a list offers to one host's link.
type HostLoad struct {
	Host
	Sent, Received Load
}

// Load is offered load, not throughput.
type Load struct {
	Flows int
	Bytes float64 // payload; an open flow counts its rate, or the sender's whole link, from Start to Stop
	Share float64 // of the host's link over the span; 0 without a link or a span
}

// Summarize counts a list that Check accepts. Loads refer to span, or, if that
// is 0, to the time from First to Last. Flows of other hosts are not counted.
func Summarize(flows []Flow, hosts []Host, span time.Duration) Stats {
	s := Stats{Flows: len(flows), Hosts: make([]HostLoad, len(hosts))}
	index := make(map[model.NodeID]*HostLoad, len(hosts))
	for i, h := range hosts {
		s.Hosts[i].Host = h
		index[h.ID] = &s.Hosts[i]
	}
	groups := make(map[int]struct{})
	for i := range flows {
		f := &flows[i]
		if f.IsComputation() {
			s.Flows--
			s.Computations++
			continue
		}
		if i == s.Computations || f.Start < s.First {
			s.First = f.Start
		}
		s.Last = max(s.Last, f.Start, f.Stop)
		s.Bytes += f.Bytes
		if f.Stop > 0 {
			s.Open++
		}
		if f.Group > 0 {
			groups[f.Group] = struct{}{}
		}
		src, dst := index[f.Src], index[f.Dst]
		var link model.Rate
		if src != nil {
			link = src.Rate
		}
		n := f.offered(link)
		if src != nil {
			src.Sent.add(n)
		}
		if dst != nil {
			dst.Received.add(n)
		}
	}
	s.Groups = len(groups)
	if s.Span = span; span == 0 {
		s.Span = s.Last.Sub(s.First)
	}
	for i := range s.Hosts {
		h := &s.Hosts[i]
		if full := float64(h.Rate) / 8 * s.Span.Seconds(); full > 0 {
			h.Sent.Share = h.Sent.Bytes / full
			h.Received.Share = h.Received.Bytes / full
		}
	}
	return s
}

// offered returns the payload of a flow, if its sender's link is that fast.
func (f *Flow) offered(link model.Rate) float64 {
	if f.Stop == 0 {
		return float64(f.Bytes)
	}
	if f.Rate > 0 && (link == 0 || f.Rate < link) {
		link = f.Rate
	}
	return float64(link) / 8 * f.Stop.Sub(f.Start).Seconds()
}

func (l *Load) add(n float64) {
	l.Flows++
	l.Bytes += n
}

// String prints a line for people:
//
//	118 flows, 210 MB, 12 groups, from +20 µs to +9.9 ms; hosts send 31.2 % of their links (27 % to 38.1 %), receive …
func (s Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s", plural.Count(s.Flows, "flow"), model.FormatBytes(s.Bytes))
	if s.Open > 0 {
		fmt.Fprintf(&b, " and %d without end", s.Open)
	}
	if s.Groups > 0 {
		fmt.Fprintf(&b, ", %s", plural.Count(s.Groups, "group"))
	}
	if s.Computations > 0 {
		fmt.Fprintf(&b, ", %s", plural.Count(s.Computations, "computation"))
	}
	if s.Flows > 0 {
		fmt.Fprintf(&b, ", from +%s to +%s", model.FormatDuration(time.Duration(s.First)), model.FormatDuration(time.Duration(s.Last)))
	}
	if s.Span > 0 && len(s.Hosts) > 0 {
		fmt.Fprintf(&b, "; hosts send %s, receive %s",
			s.spread(func(h HostLoad) float64 { return h.Sent.Share }),
			s.spread(func(h HostLoad) float64 { return h.Received.Share }))
	}
	return b.String()
}

// spread prints the mean of a share over the hosts, and its range.
func (s Stats) spread(share func(HostLoad) float64) string {
	least, most, sum := share(s.Hosts[0]), share(s.Hosts[0]), 0.0
	for _, h := range s.Hosts {
		v := share(h)
		least, most, sum = min(least, v), max(most, v), sum+v
	}
	mean := sum / float64(len(s.Hosts))
	return fmt.Sprintf("%s of their links (%s to %s)", model.FormatShare(mean), model.FormatShare(least), model.FormatShare(most))
}
