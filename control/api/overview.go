package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/weft-telemetry/weft/topo"
)

// Overview is the state of a fabric in sums: a few rows per pod, whatever its size.
type Overview struct {
	Time     time.Time   `json:"time" doc:"By the fabric's clock"`
	Snapshot string      `json:"snapshot" doc:"Id of the state that was summed up"`
	Pods     []PodState  `json:"pods" doc:"By pod; first the nodes in no pod, if any"`
	Links    []LinkGroup `json:"link_groups" doc:"By pod and tier; each direction is a group of its own"`
}

// PodState sums up a pod.
type PodState struct {
	Pod      *int `json:"pod,omitempty" doc:"Absent: the nodes in no pod"`
	Switches int  `json:"switches"`
	Hosts    int  `json:"hosts"`
	Degraded int  `json:"degraded_nodes"`
	Failed   int  `json:"failed_nodes"`
	Unknown  int  `json:"unknown_nodes"`
	PortSums
}

// LinkGroup sums up the links from nodes of one role and pod to those of another.
type LinkGroup struct {
	From GroupEnd `json:"from"`
	To   GroupEnd `json:"to"`
	PortSums
}

// GroupEnd is one end of the links of a group.
type GroupEnd struct {
	Pod  *int   `json:"pod,omitempty" doc:"Absent: nodes in no pod"`
	Role string `json:"role"`
}

// PortSums sums up the egress state of ports.
type PortSums struct {
	Ports         int     `json:"ports" doc:"Of which there is a state"`
	Reporting     int     `json:"reporting_ports" doc:"With a report in the last second"`
	Paused        int     `json:"paused_ports"`
	LoadBps       int64   `json:"load_bps" doc:"Sum"`
	MaxLoadShare  float64 `json:"max_load_share" doc:"Of the busiest port, 0 to 1"`
	MaxQueueBytes int64   `json:"max_queue_bytes"`
	LostPackets   uint64  `json:"lost_packets" doc:"Sum"`
}

func (s *PortSums) add(p *PortState) {
	s.Ports++
	if p.AgeMs >= 0 && p.AgeMs < silentAfterMs {
		s.Reporting++
	}
	if p.PausedShare > 0 {
		s.Paused++
	}
	s.LoadBps += p.LoadBps
	s.MaxLoadShare = max(s.MaxLoadShare, p.LoadShare)
	s.MaxQueueBytes = max(s.MaxQueueBytes, p.QueueBytes)
	s.LostPackets += p.LostPackets
}

// fabricGroups are the pods and link groups of a fabric, with empty sums.
type fabricGroups struct {
	pods  []PodState
	links []LinkGroup
	nodes map[string]nodeGroups
}

// nodeGroups are the groups of a node and its ports, by position.
type nodeGroups struct {
	pod   int
	links []int // by port number
}

// groupKey identifies a group of links.
type groupKey struct {
	fromTier, fromPod, toTier, toPod int
	fromRole, toRole                 string
}

func newFabricGroups(f *topo.Fabric) *fabricGroups {
	g := &fabricGroups{nodes: make(map[string]nodeGroups, len(f.Nodes()))}
	pods := map[int]int{}
	var keys []groupKey
	keyOf := func(n *topo.Node, p *topo.Port) groupKey {
		to := f.Node(p.Peer.Node)
		return groupKey{n.Tier, podOf(n), to.Tier, podOf(to), n.Role.String(), to.Role.String()}
	}
	seen := map[groupKey]int{}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		pods[podOf(n)]++
		for j := range n.Ports {
			if k := keyOf(n, &n.Ports[j]); seen[k] == 0 {
				seen[k] = 1
				keys = append(keys, k)
			}
		}
	}
	slices.SortFunc(keys, compareGroups)
	for i, k := range keys {
		seen[k] = i
		g.links = append(g.links, LinkGroup{
			From: GroupEnd{Pod: podRef(k.fromPod), Role: k.fromRole}, To: GroupEnd{Pod: podRef(k.toPod), Role: k.toRole},
		})
	}
	numbers := make([]int, 0, len(pods))
	for p := range pods {
		numbers = append(numbers, p)
	}
	slices.Sort(numbers)
	for i, p := range numbers {
		pods[p] = i
		g.pods = append(g.pods, PodState{Pod: podRef(p)})
	}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		of := nodeGroups{pod: pods[podOf(n)]}
		for j := range n.Ports {
			p := &n.Ports[j]
			for len(of.links) <= int(p.ID) {
				of.links = append(of.links, -1)
			}
			of.links[p.ID] = seen[keyOf(n, p)]
		}
		g.nodes[n.Name] = of
		if n.Role.IsSwitch() {
			g.pods[of.pod].Switches++
		} else {
			g.pods[of.pod].Hosts++
		}
	}
	return g
}

func compareGroups(a, b groupKey) int {
	return cmp.Or(cmp.Compare(a.fromPod, b.fromPod), cmp.Compare(a.fromTier, b.fromTier), cmp.Compare(a.fromRole, b.fromRole),
		cmp.Compare(a.toPod, b.toPod), cmp.Compare(a.toTier, b.toTier), cmp.Compare(a.toRole, b.toRole))
}

func podRef(pod int) *int {
	if pod == noPod {
		return nil
	}
	return &pod
}

// has reports whether the fabric has a pod.
func (g *fabricGroups) has(pod int) bool {
	return slices.ContainsFunc(g.pods, func(p PodState) bool { return p.Pod != nil && *p.Pod == pod })
}

// sum sums up a state. What the topology does not have is in no group.
func (g *fabricGroups) sum(st *State, id string) *Overview {
	o := &Overview{Time: st.Time, Snapshot: id, Pods: slices.Clone(g.pods), Links: slices.Clone(g.links)}
	for i := range st.Nodes {
		of, ok := g.nodes[st.Nodes[i].Name]
		if !ok {
			continue
		}
		switch pod := &o.Pods[of.pod]; st.Nodes[i].Health {
		case "degraded":
			pod.Degraded++
		case "failed":
			pod.Failed++
		case "unknown":
			pod.Unknown++
		}
	}
	var name string
	var of nodeGroups
	var known bool
	for i := range st.Ports {
		p := &st.Ports[i]
		if p.Node != name || i == 0 { // ports are by node
			name = p.Node
			of, known = g.nodes[name]
		}
		if !known || int(p.Port) >= len(of.links) || of.links[p.Port] < 0 {
			continue
		}
		o.Pods[of.pod].add(p)
		o.Links[of.links[p.Port]].add(p)
	}
	return o
}

// overviewCache has the newest overview, which many clients request.
type overviewCache struct {
	mu        sync.Mutex
	id        string
	json, zip []byte
}

func (c *overviewCache) encode(g *fabricGroups, st *State, id string, zip bool) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.id != id {
		c.id, c.json, c.zip = id, encodeJSON(g.sum(st, id)), nil
	}
	if !zip {
		return c.json
	}
	if c.zip == nil {
		c.zip = compress(c.json, gzip.StatelessCompression)
	}
	return c.zip
}

func (s *Server) overviewRoutes() {
	op := s.operation(http.MethodGet, "/overview", "get-overview", "Fabric",
		"Sums of the state by pod and by group of links")
	op.Responses = taggedResponse[Overview](s)
	registerRaw(s, op, func(_ context.Context, in *Conditional) (rawReply, error) {
		groups := s.currentFabric().groups
		st, id := s.snapshots.newest()
		r := rawReply{typ: "application/json", tag: snapshotTag(id), encode: func(zip bool) []byte {
			return s.overview.encode(groups, st, id, zip)
		}}
		r.unchanged = in.unchanged(r.tag)
		return r, nil
	})
}
