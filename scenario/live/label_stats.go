package live

import (
	"time"

	"github.com/weft-telemetry/weft/model"
)

// LabelStats is the coverage of labels in a run, and their cost: on the links, and to
// the collector.
type LabelStats struct {
	Coverage    float64       `json:"coverage"`  // share of ports with traffic that labels reported, over all windows
	Window      time.Duration `json:"window_ns"` // length of the newest window of label coverage
	Windows     uint64        `json:"windows"`
	Labels      uint64        `json:"labels"`
	Exports     uint64        `json:"exports"`         // packets whose labels were exported
	ExportBytes uint64        `json:"export_bytes"`    // without headers of datagrams
	ExportRate  model.Rate    `json:"export_rate_bps"` // average of the run
	LinkBytes   model.Bytes   `json:"link_bytes"`      // of labels, over all links
	LinkRate    model.Rate    `json:"link_rate_bps"`   // average of the run
	LinkShare   float64       `json:"link_share"`      // of all bytes that switches sent
	Rejected    uint64        `json:"rejected"`        // implausible labels and malformed reports
	Commands    uint64        `json:"commands"`        // to silent ports, to write labels more often
}

// LabelStats returns the coverage and cost of labels so far, and false if the scenario has no
// labels. It may be called while the run has stopped.
func (r *Running) LabelStats() (LabelStats, bool) {
	if r.load == nil {
		return LabelStats{}, false
	}
	s, all, newest := r.core.Controller.LabelStats()
	seconds := max(r.sim.net.Now().Duration().Seconds(), 1e-9)
	rate := func(bytes float64) model.Rate { return model.Rate(bytes * 8 / seconds) }
	return LabelStats{
		Coverage: all.Coverage(), Window: newest.To.Sub(newest.From), Windows: s.Windows,
		Labels: s.Labels, Exports: s.Exports, ExportBytes: s.Bytes,
		ExportRate: rate(float64(s.Bytes)), LinkBytes: r.load.Labels, LinkRate: rate(float64(r.load.Labels)),
		LinkShare: r.load.Share(), Commands: s.Commands,
		Rejected: s.Malformed + s.Repeated + s.Unknown + s.Future + s.Stale,
	}, true
}
