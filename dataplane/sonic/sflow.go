package sonic

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/topo"
)

// Formats of the enterprise 0.
const (
	flowSample       = 1
	counterSample    = 2
	dropNotification = 5

	sampledHeader   = 1
	ifCounters      = 1
	ethernetCounter = 2
	portName        = 1005
	egressQueue     = 1036

	ethernetProtocol = 1
	ethernetCsmacd   = 6 // ifType
	fullDuplex       = 1
	upAndUp          = 3 // ifAdminStatus and ifOperStatus
	noInterface      = 0
)

// HeaderBytes of a packet are in a sample, as in SONiC.
const HeaderBytes = 128

// maxDatagram fits an Ethernet frame with every header before it.
const maxDatagram = 1400

// Agent is the sFlow agent of one switch. It starts nothing: the switch calls it.
type Agent struct {
	node    *topo.Node
	indexes []uint32 // by port
	start   model.Time
	send    func(at model.Time, datagram []byte) error
	err     error // of send, the first

	datagram []byte
	samples  uint32 // in the datagram
	seq      uint32 // of datagrams

	flows, drops, counters []uint32 // sequence numbers by port; of drops, port 0 is the switch
	pool                   []uint32 // packets that could have been sampled, by port
	body                   []byte   // of one sample
}

// NewAgent returns the agent of a switch that came up at a time. send must not keep the
// datagram.
func NewAgent(n *topo.Node, start model.Time, send func(at model.Time, datagram []byte) error) (*Agent, error) {
	if !n.IPv4.Is4() {
		return nil, fmt.Errorf("sonic: %s has no IPv4 address for its sFlow agent", n.Name)
	}
	ports := len(n.Ports) + 1
	a := &Agent{
		node: n, start: start, send: send, indexes: make([]uint32, ports), flows: make([]uint32, ports),
		drops: make([]uint32, ports), counters: make([]uint32, ports), pool: make([]uint32, ports),
	}
	for i := range n.Ports {
		a.indexes[i+1] = IfIndex(n.Ports[i].Name, model.PortID(i+1))
	}
	return a, nil
}

// IfIndex returns the ifIndex of an interface: N+1 of EthernetN, as SONiC's SNMP agent
// numbers them; the port's number where the name is another.
func IfIndex(name string, port model.PortID) uint32 {
	if n, err := strconv.ParseUint(strings.TrimPrefix(name, "Ethernet"), 10, 24); err == nil && strings.HasPrefix(name, "Ethernet") {
		return uint32(n) + 1
	}
	return uint32(port)
}

// AddSample sends a sample or a drop notification, with the first bytes of the frame.
func (a *Agent) AddSample(s *portstat.Sample, header []byte) {
	b := a.body[:0]
	if s.Has.All(portstat.HasDrop) {
		a.drops[0]++
		b = words(b, a.drops[0], 0, a.indexes[s.In], 0, a.index(s.In), a.index(s.Out), reasonNumber(s.Drop), 1)
		b = appendHeader(b, s, header)
		a.add(s.At, dropNotification, b)
		return
	}
	a.flows[s.In]++
	a.pool[s.In] += s.Rate
	records := uint32(1)
	if s.Has.All(portstat.HasPriority) {
		records++
	}
	b = words(b, a.flows[s.In], a.indexes[s.In], s.Rate, a.pool[s.In], 0, a.index(s.In), a.index(s.Out), records)
	b = appendHeader(b, s, header)
	if records > 1 {
		b = words(b, egressQueue, 4, uint32(s.Priority))
	}
	a.add(s.At, flowSample, b)
}

// index returns an interface as samples name it.
func (a *Agent) index(p model.PortID) uint32 {
	if p == 0 {
		return noInterface
	}
	return a.indexes[p]
}

// appendHeader appends the record of a packet.
func appendHeader(b []byte, s *portstat.Sample, header []byte) []byte {
	padded := (len(header) + 3) &^ 3
	b = words(b, sampledHeader, uint32(16+padded), ethernetProtocol, s.Bytes+4, 4, uint32(len(header))) // FCS stripped
	b = append(b, header...)
	return append(b, make([]byte, padded-len(header))...)
}

// AddCounters sends the totals of a port at a time.
func (a *Agent) AddCounters(at model.Time, port model.PortID, c *portstat.Counters) {
	p := &a.node.Ports[port-1]
	a.counters[port]++
	b := words(a.body[:0], a.counters[port], a.indexes[port], 3)
	b = words(b, ifCounters, 88, a.indexes[port], ethernetCsmacd)
	b = binary.BigEndian.AppendUint64(b, uint64(p.Rate))
	b = words(b, fullDuplex, upAndUp)
	b = binary.BigEndian.AppendUint64(b, c.RxBytes)
	b = words(b, uint32(c.RxPackets), 0, 0, uint32(c.RxDiscards), uint32(c.RxErrors), 0)
	b = binary.BigEndian.AppendUint64(b, c.TxBytes)
	b = words(b, uint32(c.TxPackets), 0, 0, uint32(c.TxDiscards), uint32(c.TxErrors), 0)
	b = words(b, ethernetCounter, 52, 0, uint32(c.FCSErrors), 0, 0, 0, 0, 0, 0, 0, 0, 0, uint32(c.RxErrors), 0)
	padded := (len(p.Name) + 3) &^ 3
	b = words(b, portName, uint32(4+padded), uint32(len(p.Name)))
	b = append(append(b, p.Name...), make([]byte, padded-len(p.Name))...)
	a.add(at, counterSample, b)
}

// add appends a sample to the datagram, which is sent first if it is full.
func (a *Agent) add(at model.Time, format uint32, body []byte) {
	a.body = body
	if len(a.datagram)+8+len(body) > maxDatagram {
		a.Flush(at)
	}
	if len(a.datagram) == 0 {
		a.datagram = append(a.datagram, make([]byte, headerBytes)...)
	}
	a.datagram = append(words(a.datagram, format, uint32(len(body))), body...)
	a.samples++
}

// headerBytes is the length of a datagram's header with an IPv4 agent.
const headerBytes = 28

// Flush sends what waits.
func (a *Agent) Flush(at model.Time) {
	if a.samples == 0 {
		return
	}
	a.seq++
	uptime := uint32(at.Sub(a.start) / time.Millisecond)
	words(a.datagram[:0], 5, 1, a.node.IPv4.V4(), 0, a.seq, uptime, a.samples)
	if err := a.send(at, a.datagram); a.err == nil {
		a.err = err
	}
	a.datagram, a.samples = a.datagram[:0], 0
}

// Err returns the first error of send.
func (a *Agent) Err() error { return a.err }

// words appends words in network order.
func words(b []byte, list ...uint32) []byte {
	for _, w := range list {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

// reasonNumber returns sFlow's number of a reason.
func reasonNumber(r portstat.Reason) uint32 {
	switch r {
	case portstat.NoBuffer:
		return 259
	case portstat.NoRoute:
		return 6 // net unknown
	case portstat.BlackholeRoute:
		return 269
	case portstat.TTLExpired:
		return 257
	case portstat.ACLDrop:
		return 258
	case portstat.MTUExceeded:
		return 262
	default:
		return 256
	}
}
