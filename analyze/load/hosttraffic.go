package load

import (
	"github.com/weft-telemetry/weft/analyze/internal/flowtable"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
)

// HostTraffic is the bytes that the ports that lead to hosts carried in a slot, in all and
// from each source. The zero value is empty.
type HostTraffic struct {
	m       *paths.Map // nil: in another process, and listed has the flows
	reports *paths.Reports
	listed  []listedFlow
	key     func(uint32) *model.FlowKey // of a listed flow, where m is nil

	ends    []pathEnd          // by number of the path
	edition *paths.PathEdition // of the numbers

	ports []uint32 // that carried something
	bytes []uint64 // by the port's number
	used  []bool   // by the port's number: it is in ports

	// senders is a hash table: an entry is at its hash modulo the length, or after it
	// with no unused one between. At least half are unused.
	senders []senderBytes
	count   int
}

type senderBytes struct {
	src   model.Addr
	bytes uint64
	port  uint32
	used  bool
}

// Count counts a map, instead of what was counted before.
func (t *HostTraffic) Count(ports *paths.Ports, m *paths.Map) {
	t.reset(ports)
	t.m, t.reports = m, m.Reports
	if e := m.PathEdition(); e != t.edition {
		t.ends, t.edition = t.ends[:0], e
	}
	for i := range m.Flows() {
		hops := m.Sightings(i)
		end, known := m.PathNumber(i)
		if known {
			for int(end) >= len(t.ends) {
				t.ends = append(t.ends, pathEnd{})
			}
			if e := &t.ends[end]; e.alone {
				t.addPort(e.port, hops[len(hops)-1].Bytes)
				t.addSender(e.port, m.Key(i).Src, hops[len(hops)-1].Bytes)
				continue
			}
		}
		count := 0
		for k := len(hops) - 1; k >= 0; k-- {
			s := &hops[k]
			n, ok := ports.Number(s.Switch, s.Out)
			if !ok || ports.PeerOf(n).Kind != paths.HostPeer {
				continue
			}
			t.addPort(n, s.Bytes)
			t.addSender(n, m.Key(i).Src, s.Bytes)
			if count++; known {
				t.ends[end] = pathEnd{port: n, alone: count == 1 && k == len(hops)-1}
			}
		}
	}
}

// pathEnd is the last port of a path, if alone of its ports it leads to a host.
type pathEnd struct {
	port  uint32
	alone bool
}

func (t *HostTraffic) reset(ports *paths.Ports) {
	if len(t.bytes) != ports.Len() {
		t.bytes, t.used = make([]uint64, ports.Len()), make([]bool, ports.Len())
	}
	for _, n := range t.ports {
		t.bytes[n], t.used[n] = 0, false
	}
	t.ports = t.ports[:0]
	if len(t.senders) > 1<<12 && t.count < len(t.senders)/16 {
		t.senders = nil // of a slot with many more
	}
	clear(t.senders)
	t.count = 0
}

// add sums up parts.
func (t *HostTraffic) add(ports *paths.Ports, parts []*HostTraffic) {
	t.reset(ports)
	for _, p := range parts {
		for _, n := range p.ports {
			t.addPort(n, p.bytes[n])
		}
		for i := range p.senders {
			if s := &p.senders[i]; s.used {
				t.addSender(s.port, s.src, s.bytes)
			}
		}
	}
}

// has reports whether a port carried something.
func (t *HostTraffic) has(port uint32) bool { return t.used[port] }

func (t *HostTraffic) addPort(port uint32, bytes uint64) {
	if !t.used[port] {
		t.used[port] = true
		t.ports = append(t.ports, port)
	}
	t.bytes[port] += bytes
}

func (t *HostTraffic) addSender(port uint32, src model.Addr, bytes uint64) {
	if 2*(t.count+1) > len(t.senders) {
		old := t.senders
		t.senders, t.count = make([]senderBytes, max(2*len(old), 64)), 0
		for i := range old {
			if old[i].used {
				t.addSender(old[i].port, old[i].src, old[i].bytes)
			}
		}
	}
	mask := uint64(len(t.senders) - 1)
	hash := flowtable.Hash(&model.FlowKey{Src: src, Dst: model.Addr{Lo: uint64(port)}})
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &t.senders[i]
		if !s.used {
			*s = senderBytes{src: src, bytes: bytes, port: port, used: true}
			t.count++
			return
		}
		if s.port == port && s.src == src {
			s.bytes += bytes
			return
		}
	}
}
