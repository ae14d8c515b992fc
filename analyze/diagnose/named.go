package diagnose

import (
	"fmt"
	"strings"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Named is a Verdict in the words of its topology, as reports and the API give
// it. Field names are stable.
type Named struct {
	Anomaly   anomaly.Type      `json:"anomaly"`
	Cause     anomaly.RootCause `json:"root_cause"`
	Detail    anomaly.Detail    `json:"cause_detail"`
	Initial   *NamedPort        `json:"initial_port"` // null: none
	Culprits  []NamedPart       `json:"culprits"`
	Spreaders []NamedFlow       `json:"spreaders"`
	Path      []NamedPort       `json:"pfc_path"`
	Loop      []NamedPort       `json:"loop"`
	Standing  bool              `json:"standing"`
	Fault     *NamedFault       `json:"routing_fault"` // null: none
	Victim    NamedFlow         `json:"victim"`
	Victims   []NamedFlow       `json:"victims"`

	Confidence float64  `json:"confidence"`
	Evidence   []string `json:"evidence"`
	Switches   int      `json:"switches_polled"`
	Telemetry  int64    `json:"telemetry_bytes"`
	Remedy     string   `json:"remedy"`
}

// NamedPort is a port, by its number, and the node at its other end.
type NamedPort struct {
	Node string       `json:"node"`
	Port model.PortID `json:"port"`
	Peer string       `json:"peer"`
}

// String prints "s0:3>s1".
func (p NamedPort) String() string { return fmt.Sprintf("%s:%d>%s", p.Node, p.Port, p.Peer) }

// NamedFlow is a flow by its ends.
type NamedFlow struct {
	Src string `json:"src"`
	Dst string `json:"dst"`
}

// String prints "h0>h1".
func (f NamedFlow) String() string { return f.Src + ">" + f.Dst }

// NamedPart is a culprit.
type NamedPart struct {
	NamedFlow
	Weight float64 `json:"weight"`
}

// NamedFault is a RoutingFault.
type NamedFault struct {
	Node    string `json:"node"`
	Dst     string `json:"dst"`
	NextHop string `json:"next_hop"`
}

// Named translates a verdict. Lists are never nil, so that JSON has [].
func (v *Verdict) Named(f *topo.Fabric) Named {
	n := Named{
		Anomaly: v.Anomaly, Cause: v.Cause, Detail: v.Detail, Standing: v.Standing,
		Culprits: []NamedPart{}, Spreaders: flowNames(f, v.Spreaders), Victims: flowNames(f, v.Victims),
		Path: portNames(f, v.Path), Loop: portNames(f, v.Loop), Victim: flowName(f, v.Victim),
		Confidence: v.Confidence, Evidence: append([]string{}, v.Evidence...),
		Switches: v.Switches, Telemetry: int64(v.Telemetry), Remedy: v.Remedy,
	}
	if v.Initial != (model.Port{}) {
		p := portName(f, v.Initial)
		n.Initial = &p
	}
	for _, c := range v.Culprits {
		n.Culprits = append(n.Culprits, NamedPart{flowName(f, c.Flow), c.Weight})
	}
	if x := v.Fault; x != nil {
		n.Fault = &NamedFault{nodeName(f, x.Node), nodeName(f, x.Dst), nodeName(f, x.NextHop)}
	}
	return n
}

func portNames(f *topo.Fabric, ports []model.Port) []NamedPort {
	names := make([]NamedPort, len(ports))
	for i, p := range ports {
		names[i] = portName(f, p)
	}
	return names
}

func portName(f *topo.Fabric, p model.Port) NamedPort {
	n := NamedPort{Node: nodeName(f, p.Node), Port: p.Port}
	if f.HasNode(p.Node) {
		if x := f.Port(p); x != nil {
			n.Peer = nodeName(f, x.Peer.Node)
		}
	}
	return n
}

func flowNames(f *topo.Fabric, keys []model.FlowKey) []NamedFlow {
	names := make([]NamedFlow, len(keys))
	for i, k := range keys {
		names[i] = flowName(f, k)
	}
	return names
}

func flowName(f *topo.Fabric, k model.FlowKey) NamedFlow {
	return NamedFlow{addrName(f, k.Src), addrName(f, k.Dst)}
}

// addrName is the name of the node with an address, or the address itself.
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

// Sentence says it in one.
func (n *Named) Sentence() string {
	switch n.Anomaly {
	case anomaly.None:
		return fmt.Sprintf("%v is slow, and the switches know of no reason: %s.", n.Victim, last(n.Evidence))
	case anomaly.FlowContention:
		return fmt.Sprintf("%v waits in the queue of %v, which %s.", n.Victim, n.Initial, n.filled())
	case anomaly.PFCBackpressure:
		return fmt.Sprintf("%v is held up by pauses that spread from %v, which %s.", n.Victim, n.Initial, n.filled())
	case anomaly.PFCStorm:
		return fmt.Sprintf("%v is held up by pauses that %s sends%s.", n.Victim, n.Initial.Peer, n.how())
	}
	stands := "was seen once"
	if n.Standing {
		stands = "stands"
	}
	text := fmt.Sprintf("%v is caught in a circle of %d paused ports that %s", n.Victim, len(n.Loop), stands)
	switch {
	case n.Initial == nil:
	case n.Cause == anomaly.HostInjection:
		text += fmt.Sprintf("; pauses that %s sends began it", n.Initial.Peer)
	default:
		text += fmt.Sprintf("; it began at %v, which %s", n.Initial, n.filled())
	}
	if f := n.Fault; f != nil {
		text += fmt.Sprintf("; %s should not send packets for %s to %s", f.Node, f.Dst, f.NextHop)
	}
	return text + "."
}

// filled says who fills the initial port's queue.
func (n *Named) filled() string {
	switch k := len(n.Culprits); {
	case k == 0:
		return "is overfull"
	case k <= 3:
		names := make([]string, k)
		for i, c := range n.Culprits {
			names[i] = c.String()
		}
		verb := "overfill"
		if k == 1 {
			verb = "overfills"
		}
		return strings.Join(names, ", ") + " " + verb + n.how()
	default:
		return fmt.Sprintf("%d flows overfill, %v first%s", k, n.Culprits[0], n.how())
	}
}

// how is the detail in brackets, where it is known.
func (n *Named) how() string {
	if n.Detail == anomaly.UnknownDetail {
		return ""
	}
	return fmt.Sprintf(" (%v)", n.Detail)
}

func last(list []string) string {
	if len(list) == 0 {
		return "nothing was told"
	}
	return list[len(list)-1]
}
