package incident

import (
	"fmt"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Headline returns the incident in one sentence: cause, location, scale and
// impact, such as "Incast: 8 hosts → h4 congest tor2 Ethernet0 for 12 ms; PFC
// spread to 6 ports; 64+ flows of job training affected."
func (in *Incident) Headline(f *topo.Fabric, jobs []string) string {
	senders, congest := in.senders(f)
	text := in.Cause.Title() + ": " + anomaly.Expand(in.Cause.Headline(),
		"{location}", in.locationName(f), "{senders}", senders, "{congest}", congest)
	if lasted := in.Last.Sub(in.Begin); lasted >= time.Microsecond {
		text += " for " + model.FormatDuration(lasted)
	}
	if in.LostPackets > 0 {
		text += fmt.Sprintf("; %d of %s lost", in.LostPackets, plural.Count(in.SentPackets, "packet"))
	}
	if n := in.pausedPorts(); n > 0 {
		text += "; PFC spread to " + plural.Count(n, "port")
	}
	if n := len(in.Flows); n > 0 {
		text += "; " + count(n, "flow")
		if len(jobs) > 0 {
			text += " of " + plural.Noun(len(jobs), "job") + " " + strings.Join(jobs, ", ")
		}
		text += " affected"
	}
	return text + "."
}

// count returns a number of flows or hosts; those beyond MaxFlows are unknown.
func count(n int, noun string) string {
	if n == MaxFlows {
		return fmt.Sprintf("%d+ %s", n, plural.Noun(n, noun))
	}
	return plural.Count(n, noun)
}

// senders returns the hosts of the culprits and the verb that fits them.
func (in *Incident) senders(f *topo.Fabric) (text, congest string) {
	sources, receivers := map[model.Addr]bool{}, map[model.Addr]bool{}
	for _, k := range in.Culprits {
		sources[k.Src], receivers[k.Dst] = true, true
	}
	text, congest = count(len(sources), "host"), "congest"
	switch len(sources) {
	case 0:
		return "flows", congest
	case 1:
		text, congest = hostName(f, in.Culprits[0].Src), "congests"
	}
	if len(receivers) == 1 {
		text += " → " + hostName(f, in.Culprits[0].Dst) + in.accessPort(f)
	}
	return text, congest
}

// accessPort returns the port of the receiver's switch in brackets, if the congested
// port is another one.
func (in *Incident) accessPort(f *topo.Fabric) string {
	if !in.HasReceiver || !f.HasNode(in.Receiver) || len(f.Node(in.Receiver).Ports) == 0 {
		return ""
	}
	access := f.Node(in.Receiver).Ports[0].Peer
	if access == in.Location {
		return ""
	}
	name, _, _ := strings.Cut(f.PortName(access), " → ")
	return " (" + name + ")"
}

func hostName(f *topo.Fabric, a model.Addr) string {
	if id, ok := f.ByAddr(a); ok {
		return f.Node(id).Name
	}
	return a.String()
}

// locationName returns the location without its peer: "tor2 Ethernet0", or a
// node.
func (in *Incident) locationName(f *topo.Fabric) string {
	switch {
	case !f.HasNode(in.Location.Node):
		return fmt.Sprintf("node %d", in.Location.Node)
	case in.Location.Port == 0:
		return f.Node(in.Location.Node).Name
	}
	name, _, _ := strings.Cut(f.PortName(in.Location), " → ")
	return name
}

// pausedPorts counts the ports that PFC spread to from the location.
func (in *Incident) pausedPorts() int {
	ports := map[model.Port]bool{}
	for i := range in.Timeline {
		if e := &in.Timeline[i]; e.Cause == in.Cause {
			for _, p := range e.Path {
				if p != in.Location {
					ports[p] = true
				}
			}
		}
	}
	return len(ports)
}
