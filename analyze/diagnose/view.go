package diagnose

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/attribution"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// VerdictView is a Verdict with the names of its topology, as reports and the
// API show it.
type VerdictView struct {
	Anomaly       anomaly.Type      `json:"anomaly"`
	Cause         anomaly.RootCause `json:"root_cause"`
	Detail        anomaly.Detail    `json:"cause_detail"`
	Initial       *PortView         `json:"initial_port"` // null: none
	Culprits      []CulpritView     `json:"culprits"`
	Spreaders     []FlowView        `json:"spreaders"`
	Path          []PortView        `json:"pfc_path"`
	DeadlockCycle []PortView        `json:"deadlock_cycle"`
	Persistent    bool              `json:"persistent"`
	Fault         *RoutingFaultView `json:"routing_fault"` // null: none
	Victim        FlowView          `json:"victim"`
	Victims       []FlowView        `json:"victims"`

	// Account says how long the victim's late packet waited for which cause; "" if
	// its host measured none.
	Account string `json:"account"`

	Share      float64  `json:"share"`
	Confidence float64  `json:"confidence"`
	Evidence   []string `json:"evidence"`
	Switches   int      `json:"switches_polled"`
	Telemetry  int64    `json:"telemetry_bytes"`
	Remedy     string   `json:"remedy"`
}

// PortView is a port and the node at its other end.
type PortView struct {
	Node      string       `json:"node"`
	Port      model.PortID `json:"port"`
	Interface string       `json:"interface"`
	Peer      string       `json:"peer"`
}

// String returns the port as topo.Fabric.PortName does: "s0 Ethernet8 → s1".
func (p PortView) String() string {
	text := p.Node + " " + p.Interface
	if p.Interface == "" {
		text = fmt.Sprintf("%s:%d", p.Node, p.Port)
	}
	if p.Peer != "" {
		text += " → " + p.Peer
	}
	return text
}

// FlowView is a flow by its end hosts.
type FlowView struct {
	Src string `json:"src"`
	Dst string `json:"dst"`
}

// String returns "h0 → h1".
func (f FlowView) String() string { return f.Src + " → " + f.Dst }

// CulpritView is a culprit and its weight.
type CulpritView struct {
	FlowView
	Weight float64 `json:"weight"`
}

// RoutingFaultView is a RoutingFault with names.
type RoutingFaultView struct {
	Node    string `json:"node"`
	Dst     string `json:"dst"`
	NextHop string `json:"next_hop"`
}

// View returns a verdict with the names of a fabric. Lists are never nil, so
// that JSON has [].
func (v *Verdict) View(f *topo.Fabric) VerdictView {
	n := VerdictView{
		Anomaly: v.Anomaly, Cause: v.Cause, Detail: v.Detail, Persistent: v.Persistent,
		Culprits: []CulpritView{}, Spreaders: viewFlows(f, v.Spreaders), Victims: viewFlows(f, v.Victims),
		Path: viewPorts(f, v.Path), DeadlockCycle: viewPorts(f, v.DeadlockCycle), Victim: viewFlow(f, v.Victim),
		Share: v.Share, Confidence: v.Confidence, Evidence: append([]string{}, v.Evidence...),
		Switches: v.Switches, Telemetry: int64(v.Telemetry), Remedy: v.Remedy,
	}
	if v.Account != nil {
		n.Account = v.Account.Sentence(attribution.FabricNames(f)) + "."
	}
	if v.Initial != (model.Port{}) {
		p := viewPort(f, v.Initial)
		n.Initial = &p
	}
	for _, c := range v.Culprits {
		n.Culprits = append(n.Culprits, CulpritView{viewFlow(f, c.Flow), c.Weight})
	}
	if x := v.Fault; x != nil {
		n.Fault = &RoutingFaultView{nodeName(f, x.Node), nodeName(f, x.Dst), nodeName(f, x.NextHop)}
	}
	return n
}

func viewPorts(f *topo.Fabric, ports []model.Port) []PortView {
	names := make([]PortView, len(ports))
	for i, p := range ports {
		names[i] = viewPort(f, p)
	}
	return names
}

func viewPort(f *topo.Fabric, p model.Port) PortView {
	n := PortView{Node: nodeName(f, p.Node), Port: p.Port}
	if f.HasNode(p.Node) {
		if x := f.Port(p); x != nil {
			n.Interface, n.Peer = x.Name, nodeName(f, x.Peer.Node)
		}
	}
	return n
}

func viewFlows(f *topo.Fabric, keys []model.FlowKey) []FlowView {
	names := make([]FlowView, len(keys))
	for i, k := range keys {
		names[i] = viewFlow(f, k)
	}
	return names
}

func viewFlow(f *topo.Fabric, k model.FlowKey) FlowView {
	return FlowView{addrName(f, k.Src), addrName(f, k.Dst)}
}

// addrName returns the name of the node with an address, or the address itself.
func addrName(f *topo.Fabric, a model.Addr) string {
	if id, ok := f.ByAddr(a); ok {
		return nodeName(f, id)
	}
	return a.String()
}

func nodeName(f *topo.Fabric, id model.NodeID) string {
	if f.HasNode(id) {
		return f.Node(id).Name
	}
	return fmt.Sprintf("node %d", id)
}

// Sentence returns the verdict in one sentence, by the anomaly's template.
func (n *VerdictView) Sentence() string {
	trigger, fault, port, host, sw, observed := "", "", "", "", "", "observed once"
	if n.Persistent {
		observed = "persistent"
	}
	if n.Initial != nil {
		port, host, sw, trigger = n.Initial.String(), n.Initial.Peer, n.Initial.Node, n.Cause.Trigger()
	}
	if f := n.Fault; f != nil {
		fault = fmt.Sprintf("; %s should not forward packets for %s to %s", f.Node, f.Dst, f.NextHop)
	}
	return anomaly.Expand(anomaly.Expand(n.Anomaly.Sentence(), "{trigger}", trigger),
		"{victim}", n.Victim.String(), "{port}", port, "{switch}", sw, "{host}", host, "{culprits}", n.congestion(),
		"{detail}", n.detailInBrackets(), "{evidence}", lastEvidence(n.Evidence),
		"{ports}", strconv.Itoa(len(n.DeadlockCycle)), "{observed}", observed, "{fault}", fault)
}

// congestion returns a clause about the flows that congest the initial port.
func (n *VerdictView) congestion() string {
	switch k := len(n.Culprits); {
	case k == 0:
		return "its queue is congested"
	case k == 1:
		return fmt.Sprintf("%v congests it%s", n.Culprits[0], n.detailInBrackets())
	case k <= 3:
		names := make([]string, k)
		for i, c := range n.Culprits {
			names[i] = c.String()
		}
		list := strings.Join(names[:k-1], ", ") + " and " + names[k-1]
		return list + " congest it" + n.detailInBrackets()
	default:
		return fmt.Sprintf("%d flows congest it, mainly %v%s", k, n.Culprits[0], n.detailInBrackets())
	}
}

// detailInBrackets returns the detail in brackets, or nothing if it is unknown.
func (n *VerdictView) detailInBrackets() string {
	if n.Detail == anomaly.UnknownDetail {
		return ""
	}
	return fmt.Sprintf(" (%v)", n.Detail)
}

func lastEvidence(list []string) string {
	if len(list) == 0 {
		return "no switch reported"
	}
	return list[len(list)-1]
}
