package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/ingest/udp"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/flowset"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

// serveScenario is the fabric whose reports are sent to a serving process.
const serveScenario = `name: serve
about: A fat-tree with steady traffic, and all telemetry on.
duration: 1s
topology:
  generate: {kind: fat-tree, k: 4, rate: 1Gb/s}
telemetry:
  - {kind: flowset, slot: 10ms, flows: 400, ipv6: false}
  - {kind: label, interval: 1ms}
  - {kind: mirror, every: 16, flags: false}
management: {delay: 100us, jitter: 20us}
`

const (
	serveSlot     = 10 * time.Millisecond
	warmUp        = 2 * serveSlot // until all flows have started
	recordedSlots = 5 * serveSlot // replayed again and again
	serveFlows    = 20            // of each host
	serveTick     = time.Millisecond
)

// recording is the reports of recordedSlots of a simulated fabric, by the
// millisecond in which they are sent.
type recording struct {
	ticks [][]recorded
	flows []model.FlowKey
}

// recorded is a report as a switch sent it.
type recorded struct {
	from   model.NodeID
	kind   control.Kind
	packet uint32 // the same for all mirrors of a packet
	data   []byte
}

// draw returns a number between 0 and 1, a different one in each turn. All mirrors
// of a packet have the same, or its path would have gaps.
func (r *recorded) draw(turn int) float64 {
	h := (uint64(r.packet)<<32 | uint64(uint32(turn))) * 0x9e3779b97f4a7c15
	h = (h ^ h>>29) * 0xbf58476d1ce4e5b9
	return float64(h>>11) / (1 << 53)
}

// recordFabric simulates the recorded slots.
func recordFabric() (*recording, error) {
	s, err := scenario.Parse("serve.yaml", []byte(serveScenario))
	if err != nil {
		return nil, err
	}
	r := &recording{ticks: make([][]recorded, recordedSlots/serveTick)}
	var kinds [3]dta.ListID // the first list of each
	for i := range kinds {
		kinds[i] = s.FirstList(i)
	}
	var reader dta.Reader
	var rep dta.Report
	session, err := scenario.Open(s, func(_ model.Time, from model.NodeID, datagram []byte) {
		for e := reader.Reset(datagram); e == nil && reader.Next(&rep); {
			kind := control.Flowset
			if rep.List >= kinds[1] {
				kind = control.Label
			}
			if rep.List >= kinds[2] {
				kind = control.Mirror
			}
			if e := r.addReport(from, kind, rep.Data); e != nil {
				err = e
			}
		}
	})
	if err != nil {
		return nil, err
	}
	n := session.Network
	hosts := n.Fabric().Hosts()
	rng := rand.New(rand.NewPCG(1, 2))
	var flows []traffic.Flow
	for i, src := range hosts {
		for j := range serveFlows {
			flows = append(flows, traffic.Flow{
				Src: src, Dst: hosts[(i+1+j%(len(hosts)-1))%len(hosts)], SrcPort: uint16(20000 +
					j), DstPort: []uint16{4791, 443, 5000}[j%3],
				Start: model.Time(rng.Int64N(int64(2 * time.Millisecond))), Stop: model.Time(time.Second),
				Rate: 8 * model.Mbps, Transport: traffic.UDP,
			})
		}
	}
	if err := n.AddFlows(flows); err != nil {
		return nil, err
	}
	n.Run(engine.Of(warmUp + recordedSlots + 2*serveSlot))
	for i := range n.Flows() {
		key, _ := n.FlowKey(i)
		r.flows = append(r.flows, key)
	}
	return r, err
}

// addReport adds a report of the recorded slots: a flowset at the end of its slot,
// others at their own time. Earlier and later reports are skipped.
func (r *recording) addReport(from model.NodeID, kind control.Kind, data []byte) error {
	var at model.Time
	var number uint32
	switch kind {
	case control.Flowset:
		var c flowset.Chunk
		if _, err := c.Parse(data); err != nil {
			return err
		}
		at = c.Start
	case control.Label:
		var e label.Export
		if _, err := e.Parse(data); err != nil {
			return err
		}
		at, number = e.Time, uint32(e.Time)
	default:
		var m mirror.Mirror
		if _, err := m.Parse(data); err != nil {
			return err
		}
		at = m.Time
		if p := m.Frame[packet.EthernetSize:]; len(p) >= packet.IPv4Size {
			number = crc32.ChecksumIEEE(p[4:6]) ^ crc32.ChecksumIEEE(p[12:20]) // its number and addresses
		}
	}
	i := (time.Duration(at) - warmUp) / serveTick
	if at < model.Time(warmUp) || int(i) >= len(r.ticks) {
		return nil
	}
	r.ticks[i] = append(r.ticks[i], recorded{from, kind, number, slices.Clone(data)})
	return nil
}

// reportSender sends a recording to a socket over and over, as if it were live.
type reportSender struct {
	*recording
	lists  control.ListPlan
	conn   *udp.Conn
	to     netip.AddrPort
	copies float64 // of each label and mirror: how the rate is set
	writer map[model.NodeID]*dta.Writer
	open   map[model.NodeID]bool // writers with a datagram started
	buf    map[model.NodeID][]byte
	sent   atomic.Uint64 // reports
	data   []byte
}

func newReportSender(r *recording, f *topo.Fabric, to netip.AddrPort) (*reportSender, error) {
	conn, err := udp.Listen(udp.DefaultConfig(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		return nil, err
	}
	return &reportSender{
		recording: r, lists: control.DefaultListPlan(f), conn: conn, to: to, copies: 1,
		writer: map[model.NodeID]*dta.Writer{}, open: map[model.NodeID]bool{}, buf: map[model.NodeID][]byte{},
	}, nil
}

// run sends until ctx ends. Delays are made up for: the rate does not depend on how
// often it gets a core.
func (p *reportSender) run(ctx context.Context) error {
	begin := time.Now().Truncate(serveSlot)
	for n := 0; ctx.Err() == nil; n++ {
		at := begin.Add(time.Duration(n) * serveTick)
		if wait := time.Until(at); wait > 0 {
			time.Sleep(wait)
		}
		if err := p.sendMillisecond(begin, n); err != nil {
			return err
		}
	}
	return nil
}

// sendMillisecond sends the reports of the n-th millisecond.
func (p *reportSender) sendMillisecond(begin time.Time, n int) error {
	turn, i := n/len(p.ticks), n%len(p.ticks)
	shift := model.TimeOf(begin).Add(time.Duration(turn)*recordedSlots - warmUp)
	// Flowsets come at the end of their slot.
	slot := int(serveSlot / serveTick)
	if n >= slot && i%slot == 0 {
		before := (i - slot + len(p.ticks)) % len(p.ticks)
		past := shift
		if i == 0 {
			past = shift.Add(-recordedSlots)
		}
		for j := before; j < before+slot; j++ {
			for k := range p.ticks[j] {
				if r := &p.ticks[j][k]; r.kind == control.Flowset {
					if err := p.sendReport(r, past, turn, 0); err != nil {
						return err
					}
				}
			}
		}
	}
	for k := range p.ticks[i] {
		if r := &p.ticks[i][k]; r.kind != control.Flowset {
			for c := 0; float64(c)+r.draw(turn) < p.copies; c++ {
				if err := p.sendReport(r, shift, turn, c); err != nil {
					return err
				}
			}
		}
	}
	for id := range p.open {
		if err := p.flushDatagram(id); err != nil {
			return err
		}
	}
	return nil
}

// sendReport packs a report, shifted in time, into its switch's datagram.
func (p *reportSender) sendReport(r *recorded, shift model.Time, turn, copied int) error {
	rep := dta.Report{Primitive: dta.Append}
	var err error
	switch r.kind {
	case control.Flowset:
		rep.List = p.lists.FlowsetList(r.from)
		p.data, err = shiftFlowset(p.data[:0], r.data, shift)
	case control.Label:
		rep.List = p.lists.LabelList(r.from)
		p.data, err = shiftLabel(p.data[:0], r.data, shift)
	default:
		rep.List = p.lists.Mirrors.First
		p.data, err = shiftMirror(p.data[:0], r.data, shift, uint16(turn*31+copied*1009))
	}
	if err != nil {
		return err
	}
	rep.Data = p.data
	w := p.writer[r.from]
	if w == nil {
		made := dta.NewWriter(r.from, 1)
		w = &made
		p.writer[r.from], p.buf[r.from] = w, make([]byte, serveDatagram)
	}
	if !p.open[r.from] {
		w.Begin(p.buf[r.from])
		p.open[r.from] = true
	}
	if w.AddReport(&rep) != nil { // datagram full
		if err := p.flushDatagram(r.from); err != nil {
			return err
		}
		w.Begin(p.buf[r.from])
		p.open[r.from] = true
		if err := w.AddReport(&rep); err != nil {
			return fmt.Errorf("report of %d bytes: %w", len(rep.Data), err)
		}
	}
	p.sent.Add(1)
	return nil
}

// serveDatagram is the payload that fits an Ethernet frame.
const serveDatagram = 1472

// flushDatagram sends a switch's datagram.
func (p *reportSender) flushDatagram(id model.NodeID) error {
	delete(p.open, id)
	_, err := p.conn.Send(p.to, p.writer[id].Finish())
	return err
}

func shiftFlowset(b, data []byte, shift model.Time) ([]byte, error) {
	var c flowset.Chunk
	if _, err := c.Parse(data); err != nil {
		return b, err
	}
	c.Start = c.Start.Add(time.Duration(shift))
	c.Slot = uint32(int64(c.Start) / int64(serveSlot))
	return c.AppendTo(b), nil
}

func shiftLabel(b, data []byte, shift model.Time) ([]byte, error) {
	var e label.Export
	if _, err := e.Parse(data); err != nil {
		return b, err
	}
	items := e.Labels
	e.Time = e.Time.Add(time.Duration(shift))
	b = e.AppendTo(b)
	for i := range items.Len() {
		it := items.Item(i)
		it.Time = it.Time.Add(time.Duration(shift))
		it.AppendTo(b[:len(b)-(items.Len()-i)*label.ItemSize])
	}
	return b, nil
}

// shiftMirror also changes the packet's sequence number: it is another packet.
func shiftMirror(b, data []byte, shift model.Time, number uint16) ([]byte, error) {
	var m mirror.Mirror
	if _, err := m.Parse(data); err != nil {
		return b, err
	}
	m.Time = m.Time.Add(time.Duration(shift))
	begin := len(b)
	b = m.AppendTo(b)
	var ip packet.IPv4
	header := b[begin+mirror.HeadSize+packet.EthernetSize:]
	if _, err := ip.Parse(header); err != nil {
		return b, err
	}
	ip.ID += number
	ip.Checksum = 0
	ip.Checksum = ip.Sum()
	binary.BigEndian.PutUint16(header[4:], ip.ID)
	binary.BigEndian.PutUint16(header[10:], ip.Checksum)
	return b, nil
}
