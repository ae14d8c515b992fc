package api

import (
	"context"
	"net/http"
	"sync"

	"github.com/klauspost/compress/gzip"

	"github.com/weft-telemetry/weft/analyze/filter"
	"github.com/weft-telemetry/weft/analyze/filter/headers"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/topo"
)

// Topology is the fabric as configured. It has no coordinates: clients draw it by
// tier and pod.
type Topology struct {
	Name  string `json:"name"`
	Nodes []Node `json:"nodes"`
	Links []Link `json:"links"`
}

// Node is a host or a switch.
type Node struct {
	Name  string     `json:"name"`
	Role  string     `json:"role" enum:"host,mux,tor,leaf,spine,border,switch"`
	Tier  int        `json:"tier" doc:"Height in a drawing; hosts are 0"`
	Pod   *int       `json:"pod,omitempty" doc:"From 0; absent if the node is in no pod"`
	IPv4  string     `json:"ipv4"`
	IPv6  string     `json:"ipv6"`
	Ports []NodePort `json:"ports"`
}

// NodePort is a port of a node and its peer.
type NodePort struct {
	Port      model.PortID `json:"port" doc:"Port number, from 1"`
	Interface string       `json:"interface" doc:"Interface name, e.g. Ethernet4 or eth1"`
	Peer      string       `json:"peer" doc:"Node at the other end"`
	PeerPort  model.PortID `json:"peer_port"`
	RateBps   int64        `json:"rate_bps"`
}

// Link connects two ports. Each port has its own state, for one direction.
type Link struct {
	A       PortRef `json:"a"`
	B       PortRef `json:"b"`
	RateBps int64   `json:"rate_bps"`
	DelayNs int64   `json:"delay_ns" doc:"One-way propagation delay"`
}

// newTopology converts a fabric.
func newTopology(f *topo.Fabric) *Topology {
	t := &Topology{Name: f.Name(), Nodes: []Node{}, Links: []Link{}}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		node := Node{
			Name: n.Name, Role: n.Role.String(), Tier: n.Tier,
			IPv4: n.IPv4.String(), IPv6: n.IPv6.String(), Ports: []NodePort{},
		}
		if n.Pod != topo.NoPod {
			node.Pod = &n.Pod
		}
		for j := range n.Ports {
			p := &n.Ports[j]
			node.Ports = append(node.Ports, NodePort{
				Port: p.ID, Interface: p.Name, Peer: f.Node(p.Peer.Node).Name, PeerPort: p.Peer.Port, RateBps: int64(p.Rate),
			})
		}
		t.Nodes = append(t.Nodes, node)
	}
	for _, l := range f.Links() {
		t.Links = append(t.Links, Link{
			A: newPortRef(f, l.A), B: newPortRef(f, l.B), RateBps: int64(l.Rate), DelayNs: int64(l.Delay),
		})
	}
	return t
}

func (s *Server) topologyRoutes() {
	op := s.operation(http.MethodGet, "/topology", "get-topology", "Fabric", "Nodes, ports and links of the fabric")
	op.Responses = taggedResponse[Topology](s)
	type input struct {
		Conditional
		PodsQuery
	}
	registerRaw(s, op, func(_ context.Context, in *input) (rawReply, error) {
		f := s.currentFabric()
		pods, err := s.selectPods(in.Pods)
		if err != nil {
			return rawReply{}, err
		}
		r := rawReply{typ: "application/json", tag: f.tag, encode: func(zip bool) []byte {
			if zip {
				return f.zipped()
			}
			return f.topology
		}}
		if pods != nil {
			r = jsonReply(pods.topology())
			r.tag = contentTag(r.data)
		}
		r.unchanged = in.unchanged(r.tag)
		return r, nil
	})
}

// fabric caches what is derived from a topology.
type fabric struct {
	*topo.Fabric
	topology []byte        // JSON: encoding a large fabric dominates the cost of a response
	tag      string        // of topology
	zipped   func() []byte // topology compressed, at the first request
	groups   *fabricGroups
	flows    *filter.Schema[record.FlowSum]
	jobs     []record.Job // that flows names
	jobsOf   *[]record.Job
	traces   *filter.Schema[traceView]
	packets  *filter.Schema[headers.Frame]
}

// currentFabric returns the current fabric. It rebuilds the cache after a change of
// the topology or of the jobs.
func (s *Server) currentFabric() *fabric {
	f := s.deps.Live.Fabric()
	s.mu.Lock()
	defer s.mu.Unlock()
	var jobs *[]record.Job
	if s.deps.Jobs != nil {
		jobs = s.deps.Jobs()
	}
	if s.fabric != nil && s.fabric.Fabric == f && s.fabric.jobsOf != jobs {
		with := *s.fabric // others may still use it
		with.setJobs(jobs)
		s.fabric = &with
	}
	if s.fabric == nil || s.fabric.Fabric != f {
		text := encodeJSON(newTopology(f))
		s.fabric = &fabric{
			Fabric: f, topology: text, tag: contentTag(text), groups: newFabricGroups(f),
			zipped: sync.OnceValue(func() []byte { return compress(text, gzip.DefaultCompression) }),
			traces: traceSchema(f), packets: headers.Schema(addrResolver(f)),
		}
		s.fabric.setJobs(jobs)
	}
	return s.fabric
}

// setJobs sets the jobs that filters of flows can name.
func (f *fabric) setJobs(jobs *[]record.Job) {
	f.jobsOf, f.jobs = jobs, nil
	if jobs != nil {
		f.jobs = *jobs
	}
	f.flows = flowSchema(f.Fabric, f.jobs)
}
