package diagnose

import (
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/analyze/attribution"
	"github.com/weft-telemetry/weft/analyze/attribution/fromgraph"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// analysis is the diagnosis of one detection.
type analysis struct {
	*Diagnoser
	detection Detection
	evidence  *provenance.Evidence
	g         *provenance.Graph
	routes    *topo.Routes

	packet    *attribution.Victim
	intervals *attribution.Evidence
	account   *attribution.Account

	gaps     []string
	verdicts []Verdict
}

// accountForPacket accounts for the time of the late packet. Where the host measured
// none, it is the one that the flow's queues must have delayed most.
func (m *analysis) accountForPacket() {
	c := &m.detection
	detection := fromgraph.Detection{
		Victim: c.Victim, Latency: c.Latency, InFlight: c.InFlight, HostPaused: c.HostPaused, Window: c.Window,
	}
	m.intervals, m.packet = fromgraph.Build(detection, m.evidence, m.g, m.routes)
	if c.Latency <= 0 {
		m.packet = attribution.Slowest(m.intervals, m.packet)
	}
	// Acknowledgements may have a class of their own, so their path counts only where
	// the packet's own explains too little.
	m.account = attribution.Attribute(m.intervals, m.packet.OneWay())
	if len(m.packet.Reverse) > 0 && m.account.Confidence() < m.cfg.MinExplainedShare {
		if a := attribution.Attribute(m.intervals, m.packet.Acknowledged()); a.Explained() > m.account.Explained() {
			m.account = a
		}
	}
}

// findGaps notes which reports are missing: of switches on the flow's path, and of
// those that paused a queue in which a part of the lateness is unexplained.
func (m *analysis) findGaps() {
	for _, s := range m.account.Stays {
		if s.Queue >= 0 {
			m.requireReport(s.Place.Port.Node)
		}
	}
	if len(m.account.Stays) == 0 {
		if source, ok := m.fabric.ByAddr(m.detection.Victim.Src); ok && len(m.fabric.Node(source).Ports) == 1 {
			m.requireReport(m.fabric.Node(source).Ports[0].Peer.Node)
		}
	}
	for i := range m.account.Terms {
		if t := &m.account.Terms[i]; t.Kind == attribution.Unexplained && t.Reason == attribution.NoPeerReport {
			m.gaps = append(m.gaps, fmt.Sprintf("%s was paused by %s, whose report is missing or incomplete",
				m.fabric.PortName(t.Place.Port), nodeName(m.fabric, t.Place.Peer.Node)))
		}
	}
}

// requireReport adds a gap if a switch on the flow's path has not reported.
func (m *analysis) requireReport(id model.NodeID) {
	if !m.fabric.HasNode(id) || !m.fabric.Node(id).Role.IsSwitch() {
		return
	}
	if _, found := m.g.SwitchReport(id); !found {
		text := fmt.Sprintf("%s, on the flow's path, did not report", nodeName(m.fabric, id))
		if !slices.Contains(m.gaps, text) {
			m.gaps = append(m.gaps, text)
		}
	}
}

// node returns the index of a place in the graph, or -1.
func (m *analysis) node(p *attribution.Place) int {
	return m.g.Node(provenance.Queue{Port: p.Port, Priority: p.Class})
}

// portText returns the name of a queue's port.
func (m *analysis) portText(n int) string { return m.fabric.PortName(m.g.Nodes[n].Port) }
