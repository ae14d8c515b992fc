package paths

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Ports numbers the ports of a fabric, and knows where each leads. Port 0 of a node has a
// number, too: it stands for the node. Any number of goroutines may read it.
type Ports struct {
	fabric *topo.Fabric
	first  []uint32 // by node, and one more: the number of its port 0
	peers  []Peer   // by number
	ports  []model.Port
}

// Peer is what a port is linked to.
type Peer struct {
	model.Port
	Kind PeerKind
}

// PeerKind says what a port leads to.
type PeerKind uint8

// Kinds of peers.
const (
	NoPeer     PeerKind = iota // not a port of the fabric
	HostPeer                   // a host, a mux or another end of paths
	SwitchPeer                 // a node that forwards
)

// NewPorts numbers the ports of a fabric.
func NewPorts(f *topo.Fabric) *Ports {
	t := &Ports{fabric: f, first: make([]uint32, 1, len(f.Nodes())+1)}
	for i := range f.Nodes() {
		t.peers = append(t.peers, Peer{})
		t.ports = append(t.ports, model.Port{Node: model.NodeID(i)})
		for _, p := range f.Nodes()[i].Ports {
			kind := SwitchPeer
			if f.Node(p.Peer.Node).Role <= topo.Mux {
				kind = HostPeer
			}
			t.peers = append(t.peers, Peer{p.Peer, kind})
			t.ports = append(t.ports, model.Port{Node: model.NodeID(i), Port: p.ID})
		}
		t.first = append(t.first, uint32(len(t.peers)))
	}
	return t
}

// Fabric returns the fabric.
func (t *Ports) Fabric() *topo.Fabric { return t.fabric }

// Len returns the number of numbers.
func (t *Ports) Len() int { return len(t.peers) }

// Number returns the number of a port, or of a node if port is 0.
func (t *Ports) Number(node model.NodeID, port model.PortID) (n uint32, ok bool) {
	if uint64(node)+1 >= uint64(len(t.first)) {
		return 0, false
	}
	n = t.first[node] + uint32(port)
	return n, n < t.first[node+1]
}

// Peer returns what a port leads to.
func (t *Ports) Peer(node model.NodeID, port model.PortID) Peer {
	if n, ok := t.Number(node, port); ok {
		return t.peers[n]
	}
	return Peer{}
}

// PeerOf returns what a numbered port leads to.
func (t *Ports) PeerOf(n uint32) Peer { return t.peers[n] }

// Port returns a port by number.
func (t *Ports) Port(n uint32) model.Port { return t.ports[n] }
