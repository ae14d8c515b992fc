package agent

import "github.com/prometheus/client_golang/prometheus"

var (
	packetsDesc = prometheus.NewDesc("weft_agent_packets_total",
		"Packets that arrived at interfaces, by where they were counted.", []string{"counted"}, nil)
	flowsDesc     = prometheus.NewDesc("weft_agent_flows_total", "Flows of all slots.", nil, nil)
	slotsDesc     = prometheus.NewDesc("weft_agent_slots_total", "Slots that ended and were reported.", nil, nil)
	wakesDesc     = prometheus.NewDesc("weft_agent_wakes_total", "Times that the process woke to report slots.", nil, nil)
	mirroredDesc  = prometheus.NewDesc("weft_agent_mirrored_packets_total", "Packets mirrored, by reason; one may have several.", []string{"reason"}, nil)
	datagramsDesc = prometheus.NewDesc("weft_agent_datagrams_total", "Datagrams of reports sent.", nil, nil)
	bytesDesc     = prometheus.NewDesc("weft_agent_bytes_total", "Bytes of those datagrams.", nil, nil)
	lostDesc      = prometheus.NewDesc("weft_agent_lost_total", "Losses, by reason and unit.", []string{"reason", "unit"}, nil)
)

// Describe implements prometheus.Collector.
func (a *Agent) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(a, ch) }

// Collect implements prometheus.Collector.
func (a *Agent) Collect(ch chan<- prometheus.Metric) {
	s := a.Stats()
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	counter(packetsDesc, s.Exported.Packets, "flowset")
	counter(packetsDesc, s.Exported.Unkeyed, "without key")
	counter(packetsDesc, s.Exported.Probes, "probe")
	counter(packetsDesc, s.Exported.Missed, "missed")
	counter(flowsDesc, s.Exported.Flows)
	counter(slotsDesc, s.Exported.Slots)
	counter(wakesDesc, s.Wakes)
	counter(mirroredDesc, s.Mirrors.Flag, "flag")
	counter(mirroredDesc, s.Mirrors.Sample, "sample")
	counter(mirroredDesc, s.Mirrors.Debug, "debug")
	counter(datagramsDesc, s.Datagrams)
	counter(bytesDesc, uint64(s.Bytes))
	for _, l := range s.Losses() {
		counter(lostDesc, l.Count, l.Reason, l.Unit)
	}
}
