package report

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// topPorts is how many ports a summary lists in each order.
const topPorts = 8

// Summary is a run in figures. Its JSON has plain numbers, with the unit at the
// end of the key where there is one.
type Summary struct {
	Title         string        `json:"title"`
	Fabric        string        `json:"fabric"`
	Seed          uint64        `json:"seed"`
	Simulated     time.Duration `json:"simulated_ns"` // since the start of the run
	PacketHops    uint64        `json:"packet_hops"`
	Wall          time.Duration `json:"wall_ns,omitempty"`
	HopsPerSecond float64       `json:"packet_hops_per_wall_s,omitempty"`

	Flows    FlowSummary     `json:"flows"`
	Slowdown SlowdownSummary `json:"slowdown"`
	Drops    []DropSummary   `json:"drops"` // the most first
	Pauses   PauseSummary    `json:"pauses"`
	Busiest  []PortSummary   `json:"busiest_ports"` // by utilisation, then bytes sent
	Deepest  []PortSummary   `json:"deepest_ports"` // by peak queue
	Notes    []string        `json:"notes"`
}

// FlowSummary counts flows and their bytes.
type FlowSummary struct {
	Total         int         `json:"total"`
	Finished      int         `json:"finished"`
	Offered       model.Bytes `json:"-"`
	Delivered     model.Bytes `json:"-"`
	Retransmitted uint64      `json:"retransmitted_packets"`
	// Goodput is Delivered over the time from the first start to the last
	// finish, or to the end of the run when a flow has not finished.
	Goodput model.Rate `json:"-"`
}

// MarshalJSON writes sizes and rates as numbers; on their own they are text.
func (f FlowSummary) MarshalJSON() ([]byte, error) {
	type plain FlowSummary
	return json.Marshal(struct {
		plain
		Offered   int64 `json:"offered_bytes"`
		Delivered int64 `json:"delivered_bytes"`
		Goodput   int64 `json:"goodput_bps"`
	}{plain(f), int64(f.Offered), int64(f.Delivered), int64(f.Goodput)})
}

// SlowdownSummary describes FCT over ideal FCT of the finished flows.
type SlowdownSummary struct {
	Percentile string       `json:"percentile"` // the definition in use
	All        Stats        `json:"all"`
	BySize     []NamedStats `json:"by_size"`
	ByGroup    []NamedStats `json:"by_group,omitempty"` // where there are two or more
}

// NamedStats is the Stats of a part of the flows.
type NamedStats struct {
	Name string `json:"name"`
	Stats
}

// DropSummary counts packets dropped for one reason.
type DropSummary struct {
	Reason  string `json:"reason"`
	Packets uint64 `json:"packets"`
}

// PauseSummary counts PFC frames and the time they cost. A queue is one
// priority of one port.
type PauseSummary struct {
	PauseFrames  int           `json:"pause_frames"` // refreshes included
	ResumeFrames int           `json:"resume_frames"`
	ToHosts      int           `json:"pause_frames_to_hosts"`
	Queues       int           `json:"queues_paused"`
	Total        time.Duration `json:"total_ns"` // summed over queues
	Longest      time.Duration `json:"longest_ns"`
}

// Summarize computes the figures.
func (r *Run) Summarize() Summary {
	s := Summary{
		Title: r.Title, Fabric: r.Fabric, Seed: r.Seed, Simulated: time.Duration(r.End),
		PacketHops: r.PacketHops, Wall: r.Wall,
		Flows: r.countFlows(), Slowdown: r.slowdowns(), Drops: r.countDrops(), Pauses: r.countPauses(r.pausedQueues()),
		Notes: append([]string{}, r.Notes...),
	}
	if r.Wall > 0 {
		s.HopsPerSecond = float64(r.PacketHops) / r.Wall.Seconds()
	}
	s.Busiest, s.Deepest = r.rankPorts(topPorts)
	return s
}

// WriteJSON writes the summary, indented.
func (s Summary) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(s)
}

func (r *Run) countFlows() FlowSummary {
	c := FlowSummary{Total: len(r.Flows)}
	var last model.Time
	for i := range r.Flows {
		f := &r.Flows[i]
		c.Offered += f.Bytes
		c.Delivered += f.delivered()
		c.Retransmitted += f.Retransmitted
		if f.Finished {
			c.Finished++
			last = max(last, f.Finish)
		}
	}
	if c.Finished < c.Total {
		last = max(last, r.End)
	}
	if active := last.Sub(r.firstStart()); active > 0 {
		c.Goodput = model.Rate(float64(c.Delivered) * 8 / active.Seconds())
	}
	return c
}

// sizeBins split flows by decades, the habit of papers on this subject: what
// happens to a flow of one round trip and to one of thousands is different.
var sizeBins = []struct {
	name string
	upTo model.Bytes // inclusive; zero has no bound
}{
	{"≤ 10 kB", 10 * model.KB},
	{"10–100 kB", 100 * model.KB},
	{"100 kB–1 MB", model.MB},
	{"1–10 MB", 10 * model.MB},
	{"> 10 MB", 0},
}

func sizeBin(n model.Bytes) int {
	for i, b := range sizeBins {
		if n <= b.upTo || b.upTo == 0 {
			return i
		}
	}
	panic("report: the last bin takes every size")
}

func (r *Run) slowdowns() SlowdownSummary {
	out := SlowdownSummary{Percentile: percentileRule, BySize: []NamedStats{}}
	all, bins := r.slowdownsBySize()
	groups := make(map[string][]float64)
	for i := range r.Flows {
		if v := r.Flows[i].Slowdown(); v > 0 {
			groups[r.Flows[i].Group] = append(groups[r.Flows[i].Group], v)
		}
	}
	out.All = statsOf(all)
	for i, b := range sizeBins {
		if len(bins[i]) > 0 {
			out.BySize = append(out.BySize, NamedStats{b.name, statsOf(bins[i])})
		}
	}
	if len(groups) < 2 {
		return out
	}
	for name, values := range groups {
		out.ByGroup = append(out.ByGroup, NamedStats{cmp.Or(name, "(no group)"), statsOf(values)})
	}
	slices.SortFunc(out.ByGroup, func(a, b NamedStats) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// slowdownsBySize returns the slowdowns of all flows that have one, and of
// each size bin.
func (r *Run) slowdownsBySize() (all []float64, bins [][]float64) {
	bins = make([][]float64, len(sizeBins))
	for i := range r.Flows {
		f := &r.Flows[i]
		if v := f.Slowdown(); v > 0 {
			all = append(all, v)
			b := sizeBin(f.Bytes)
			bins[b] = append(bins[b], v)
		}
	}
	return all, bins
}

func (r *Run) countDrops() []DropSummary {
	counts := make(map[string]uint64)
	for _, d := range r.Drops {
		counts[d.Reason] += d.Packets
	}
	out := []DropSummary{}
	for reason, n := range counts {
		if n > 0 {
			out = append(out, DropSummary{reason, n})
		}
	}
	slices.SortFunc(out, func(a, b DropSummary) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}

func (r *Run) countPauses(queues []*pausedQueue) PauseSummary {
	var p PauseSummary
	for i := range r.Pauses {
		switch e := &r.Pauses[i]; {
		case !e.Pause:
			p.ResumeFrames++
		case e.Switch:
			p.PauseFrames++
		default:
			p.PauseFrames++
			p.ToHosts++
		}
	}
	for _, q := range queues {
		if q.total > 0 {
			p.Queues++
		}
		p.Total += q.total
		p.Longest = max(p.Longest, q.longest)
	}
	return p
}
