package tour

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/fib"
	"github.com/weft-telemetry/weft/wire/checksum"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/roce"
)

const (
	mtu = 1400
	// portList is the Append list of port states; each entry is a label.
	portList dta.ListID = 1
	// maxUnread is how many datagrams the sender is ahead of the collector.
	maxUnread = 32
)

// walker carries packets through the fabric, one at a time.
type walker struct {
	f      *topo.Fabric
	tables map[model.NodeID]*fib.Table
	conn   *net.UDPConn
	writer map[model.NodeID]*dta.Writer
	pcap   *capture
	now    model.Time

	datagrams int64
	received  *atomic.Int64 // by the collector

	sent, delivered, identical, labels, frames int
}

func newWalker(f *topo.Fabric, routes *topo.Routes, to *collector, pcap string) (*walker, error) {
	w := &walker{f: f, received: &to.received, tables: map[model.NodeID]*fib.Table{}, writer: map[model.NodeID]*dta.Writer{}}
	for _, s := range f.Switches() {
		w.tables[s] = fib.New(routes, s)
		wr := dta.NewWriter(s, 0)
		wr.Begin(make([]byte, mtu))
		w.writer[s] = &wr
	}
	conn, err := net.DialUDP("udp", nil, to.addr())
	if err != nil {
		return nil, fmt.Errorf("tour: reporters' socket: %w", err)
	}
	w.conn = conn
	if pcap != "" {
		if w.pcap, err = newCapture(pcap); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return w, nil
}

func (w *walker) close() error {
	err := w.conn.Close()
	if w.pcap != nil {
		err = errors.Join(err, w.pcap.close())
	}
	return err
}

// sendAll sends one packet of each flow, then the last reports.
func (w *walker) sendAll(ctx context.Context, rng *rand.Rand, flows int) error {
	for i := range flows {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.send(rng, i); err != nil {
			return err
		}
	}
	return w.flush()
}

// send makes one packet of flow number i and walks it to where it ends.
func (w *walker) send(rng *rand.Rand, i int) error {
	hosts := w.f.Hosts()
	src := w.f.Node(hosts[rng.IntN(len(hosts))])
	dst := src
	for dst == src {
		dst = w.f.Node(hosts[rng.IntN(len(hosts))])
	}
	// Room behind the packet, so that labels grow it in place.
	pkt := append(make([]byte, 0, 2048), makePacket(src, dst, i)...)
	original := append([]byte{}, pkt...)
	w.sent++
	at := src.Ports[0].Peer
	w.now += model.Time(10 * time.Microsecond) // between packets
	if err := w.cross(src, &src.Ports[0], pkt); err != nil {
		return err
	}
	for hop := 0; w.f.Node(at.Node).Role.IsSwitch(); hop++ {
		sw := w.f.Node(at.Node)
		var p packet.Packet
		if err := p.ParseIP(pkt); err != nil {
			return fmt.Errorf("tour: packet at %s: %w", sw.Name, err)
		}
		out, verdict := w.tables[sw.ID].Lookup(p.Outer.Key)
		if err := w.postcard(sw.ID, p.Outer.Key, hop); err != nil {
			return err
		}
		if verdict != fib.Forward || p.Outer.TTL <= 1 {
			return nil // lost; the reports must tell
		}
		port := sw.Port(out)
		decrementTTL(pkt)
		labelled, err := label.Push(pkt, &label.Item{Switch: sw.ID, Ingress: at.Port, Egress: out, Time: w.now}, label.Params{})
		if err != nil {
			return fmt.Errorf("tour: label at %s: %w", sw.Name, err)
		}
		pkt = labelled
		w.labels++
		if !w.f.Node(port.Peer.Node).Role.IsSwitch() {
			// The last switch takes the labels off, so the host sees nothing.
			if pkt, err = w.extract(sw.ID, pkt); err != nil {
				return err
			}
		}
		if err := w.cross(sw, port, pkt); err != nil {
			return err
		}
		at = port.Peer
	}
	w.delivered++
	if restored(original, pkt) {
		w.identical++
	}
	return nil
}

// cross puts the packet on a link: new Ethernet header, and the time that
// serialization and propagation take.
func (w *walker) cross(from *topo.Node, port *topo.Port, pkt []byte) error {
	peer := w.f.Port(port.Peer)
	eth := packet.Ethernet{Dst: model.MAC(peer.MAC), Src: model.MAC(port.MAC), Type: packet.TypeIPv4}
	frame := append(eth.AppendTo(nil), pkt...)
	bits := int64(len(frame)) * 8
	w.now = w.now.Add(time.Duration(bits*int64(time.Second)/int64(port.Rate)) + port.Delay)
	w.frames++
	if w.pcap == nil {
		return nil
	}
	return w.pcap.write(w.now, frame, w.f.PortName(model.Port{Node: from.ID, Port: port.ID})+" > "+w.f.PortName(port.Peer))
}

// extract reports a packet's labels as port states and takes them off.
func (w *walker) extract(sw model.NodeID, pkt []byte) ([]byte, error) {
	block, err := label.Inspect(pkt)
	if err != nil {
		return nil, fmt.Errorf("tour: labels: %w", err)
	}
	var p packet.Packet
	if err := p.ParseIP(pkt); err != nil {
		return nil, err
	}
	// Oldest first, in one entry under the flow: a reader sees the whole way.
	data := p.Outer.Key.AppendTo(nil)
	for i := block.Len() - 1; i >= 0; i-- {
		data = block.Item(i).AppendTo(data)
	}
	if err := w.report(sw, &dta.Report{Primitive: dta.Append, List: portList, Data: data}); err != nil {
		return nil, err
	}
	return label.Strip(pkt)
}

// postcard tells that a switch saw a flow at this hop.
func (w *walker) postcard(sw model.NodeID, key model.FlowKey, hop int) error {
	id := uint32(sw)
	return w.report(sw, &dta.Report{
		Primitive: dta.Postcarding, Redundancy: 1, Hop: uint8(hop), Key: key.AppendTo(nil),
		Data: []byte{byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)},
	})
}

// report packs a report into the switch's datagram and sends that when full.
func (w *walker) report(sw model.NodeID, r *dta.Report) error {
	err := w.writer[sw].Add(r)
	if errors.Is(err, dta.ErrFull) {
		if err := w.flushOne(sw); err != nil {
			return err
		}
		err = w.writer[sw].Add(r)
	}
	return err
}

func (w *walker) flushOne(sw model.NodeID) error {
	datagram := w.writer[sw].Finish()
	w.writer[sw].Begin(make([]byte, mtu))
	// A socket holds a hundred datagrams or so. On a machine too busy to read
	// them the sender waits a while; what is lost then is counted.
	for range 1000 {
		if w.datagrams-w.received.Load() < maxUnread {
			break
		}
		time.Sleep(time.Millisecond)
	}
	w.datagrams++
	_, err := w.conn.Write(datagram)
	return err
}

// flush sends what is left and then, from every switch, a datagram without
// reports: it tells the last number used, so that no loss goes unnoticed.
func (w *walker) flush() error {
	for _, sw := range w.f.Switches() {
		for last := false; !last; {
			last = w.writer[sw].Count() == 0
			if err := w.flushOne(sw); err != nil {
				return err
			}
		}
	}
	return nil
}

// makePacket builds a TCP SYN or, every second time, an RDMA write.
func makePacket(src, dst *topo.Node, i int) []byte {
	ip := packet.IPv4{ID: uint16(i), TTL: 64, Src: src.IPv4.V4(), Dst: dst.IPv4.V4()}
	sport := uint16(49152 + i%16384)
	if i%2 == 0 {
		p := roce.Packet{
			BTH:     roce.BTH{Opcode: roce.WriteOnly, MigReq: true, PKey: roce.DefaultPKey, DestQP: roce.QPN(i), PSN: roce.PSN(i)},
			RETH:    roce.RETH{VA: uint64(i) << 12, RKey: 1, Length: 1024},
			Payload: make([]byte, 1024),
		}
		body := p.AppendTo(nil)
		length := packet.UDPSize + len(body) + roce.ICRCSize
		ip.Proto, ip.TOS, ip.Length = model.UDP, 26<<2|2, uint16(packet.IPv4Size+length)
		ip.Checksum = ip.Sum()
		pkt := packet.UDP{SrcPort: sport, DstPort: roce.Port, Length: uint16(length)}.AppendTo(ip.AppendTo(nil))
		pkt = append(pkt, body...)
		pkt, err := roce.AppendICRC(pkt, pkt)
		if err != nil {
			panic(err) // the packet is our own
		}
		return pkt
	}
	tcp := packet.TCP{SrcPort: sport, DstPort: 443, Seq: uint32(i), Flags: uint16(packet.SYN), Window: 65535}
	tcp.Checksum = packet.TransportChecksum(src.IPv4, dst.IPv4, false, model.TCP, tcp.AppendTo(nil))
	ip.Proto, ip.Length = model.TCP, packet.IPv4Size+packet.TCPSize
	ip.Checksum = ip.Sum()
	return tcp.AppendTo(ip.AppendTo(nil))
}

// decrementTTL does what every router does.
func decrementTTL(pkt []byte) {
	before := uint16(pkt[8])<<8 | uint16(pkt[9])
	pkt[8]--
	after := uint16(pkt[8])<<8 | uint16(pkt[9])
	sum := checksum.Update(uint16(pkt[10])<<8|uint16(pkt[11]), before, after)
	pkt[10], pkt[11] = byte(sum>>8), byte(sum)
}

// restored tells whether a delivered packet is the one sent, but for the TTL
// and the checksum over it, and whether that checksum is right.
func restored(sent, got []byte) bool {
	var a, b packet.IPv4
	n, err1 := a.Parse(sent)
	m, err2 := b.Parse(got)
	if err1 != nil || err2 != nil || b.Checksum != b.Sum() {
		return false
	}
	a.TTL, a.Checksum = b.TTL, b.Checksum
	return string(a.AppendTo(nil)) == string(b.AppendTo(nil)) && string(sent[n:]) == string(got[m:])
}

// keyOf reads the key at the start of a port-state entry.
func keyOf(data []byte) (key model.FlowKey, items []byte, err error) {
	n := len(data) % label.ItemSize
	if err := key.Parse(data[:n]); err != nil {
		return key, nil, err
	}
	return key, data[n:], nil
}
