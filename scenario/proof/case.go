package proof

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/topo"
)

// Case is a verdict and the records that it is tested with.
type Case struct {
	// Fabric has the topology and the settings of switches. Its traffic and faults are
	// not read.
	Fabric *scenario.Scenario
	// DefaultSettings says that the settings of switches are not the operator's.
	DefaultSettings bool
	Diagnosis       *api.DiagnosisDetail
	Named           Culprits
	// Watchdog is the detection time of the PFC watchdog that is tried; 0: DefaultWatchdog.
	Watchdog time.Duration
	// Progress is called after every simulation; it may be nil.
	Progress func(runs int)
	// Cores bounds the CPUs of a simulation; 0: all, where the fabric is large.
	Cores int
}

// DefaultWatchdog is the finest detection time of PFC watchdogs in switch hardware.
// Software ones, as SONiC's, start at 100 ms, longer than most of what is rebuilt.
const DefaultWatchdog = time.Millisecond

// Culprits are what a verdict names: flows, or hosts that send PAUSE frames.
type Culprits struct {
	Flows []model.FlowKey
	Hosts []string
}

// NamedBy returns the culprits of a diagnosis.
func NamedBy(d *api.DiagnosisDetail) (c Culprits) {
	for i := range d.Culprits {
		switch p := &d.Culprits[i]; {
		case p.Flow != nil:
			c.Flows = append(c.Flows, p.Flow.Flow)
		case p.Host != "":
			c.Hosts = append(c.Hosts, p.Host)
		}
	}
	if len(c.Flows)+len(c.Hosts) == 0 && d.Initial != nil && d.Initial.Peer != "" {
		c.Hosts = append(c.Hosts, d.Initial.Peer)
	}
	return c
}

// MissingError says which records a proof needs and does not have.
type MissingError struct{ What string }

func (e *MissingError) Error() string { return "the records do not suffice: " + e.What }

// Choose returns the diagnosis of an incident that makes the clearest experiment: with an
// account of a packet that waited for the cause alone, as far as there is one, and
// longest.
func Choose(list []api.DiagnosisDetail) (*api.DiagnosisDetail, error) {
	var best *api.DiagnosisDetail
	clearer := func(a, b *api.DiagnosisDetail) bool {
		tenths := func(d *api.DiagnosisDetail) int { return int(10 * share(d)) }
		return cmp.Or(cmp.Compare(tenths(a), tenths(b)), cmp.Compare(a.Account.LateNs, b.Account.LateNs)) > 0
	}
	for i := range list {
		d := &list[i]
		if a := d.Account; a != nil && a.LateNs > 0 && len(a.Timeline.Rows) > 0 && (best == nil || clearer(d, best)) {
			best = d
		}
	}
	if best == nil {
		return nil, &MissingError{"no diagnosis of the incident has an account of a late packet; only causes that delay packets are proven"}
	}
	return best, nil
}

// share returns the part of a packet's lateness that its account attributes to the cause of
// the verdict: to the verdict's place, and to pauses of the host there or to flows, as the
// verdict does. It is all of it if the account does not name the place.
func share(d *api.DiagnosisDetail) float64 {
	if d.Account.LateNs <= 0 || d.Initial == nil {
		return 1
	}
	var sum int64
	injected := d.RootCause == hostInjection
	for i := range d.Account.Terms {
		if t := &d.Account.Terms[i]; (t.Kind == "host injection") == injected && t.Location != nil && t.Location.Node == d.Initial.Node && t.Location.Port == d.Initial.Port {
			sum += t.Ns
		}
	}
	if sum <= 0 {
		return 1
	}
	return min(1, float64(sum)/float64(d.Account.LateNs))
}

// hostInjection is the root cause of a verdict about a host that sends PAUSE frames.
var hostInjection = anomaly.HostInjection.String()

// world is what happened, as far as records say, in numbers of the fabric.
type world struct {
	fabric  *topo.Fabric
	routes  *topo.Routes
	senders []sender
	// recorded are the egress ports of which there are records: of a flow that passed one
	// there would be one, too.
	recorded map[model.Port]bool
	pauses   []hostPause
	victim   victim
	mtu      model.Bytes // largest payload of a packet that was counted
	begin    time.Duration
}

// sender is what a flow sent in an interval.
type sender struct {
	flow     model.FlowKey // recorded
	src, dst model.NodeID
	priority model.Priority
	counted  model.NodeID // switch whose counters these are
	outs     []model.Port // egress ports that switches reported
	from, to time.Duration
	payload  model.Bytes
	bytes    model.Bytes // with headers
	packets  uint64
	steady   bool // at the rate of the interval before: that is how it sent, not only its mean
}

// rate returns the mean rate, in bits per second. The interval ends when the last packet
// came, so it has one packet less. It is 0 for one packet.
func (s *sender) rate() float64 {
	d, n := s.to-s.from, float64(s.packets)
	if d <= 0 || n < 2 {
		return 0
	}
	return float64(s.bytes) * (n - 1) / n * 8e9 / float64(d)
}

// hostPause is when a host paused the port to it.
type hostPause struct {
	host     model.NodeID
	priority model.Priority
	from, to time.Duration
}

// victim is the late packet.
type victim struct {
	flow     model.FlowKey
	src, dst model.NodeID
	priority model.Priority
	outs     []model.Port
	queued   time.Duration // when it came to the first queue of its path that is known
	first    model.Port    // that queue
	late     time.Duration
	inFlight bool
}

// Bytes of a frame that are not payload: Ethernet, IP, UDP, BTH and ICRC.
const (
	headers4 = 14 + 20 + 8 + 12 + 4
	headers6 = headers4 + 20
)

// newWorld reads the records of a case.
func newWorld(c *Case) (*world, error) {
	a := c.Diagnosis.Account
	if a == nil || a.LateNs <= 0 {
		return nil, &MissingError{"the diagnosis has no account of a late packet"}
	}
	t := &a.Timeline
	if len(t.Rows) == 0 || len(t.Rows[0].Packet) == 0 {
		return nil, &MissingError{"the account does not say when the packet came to its first switch"}
	}
	if !rebuildable(api.Span{ToNs: max(a.LateNs, t.LengthNs)}) || !rebuildable(t.Rows[0].Packet[0]) {
		return nil, &MissingError{fmt.Sprintf("a run of more than %v is not rebuilt", maxSpan)}
	}
	if len(t.Senders) == 0 {
		return nil, &MissingError{"no switch reported what flows sent (flow records of epoch telemetry)"}
	}
	w := &world{fabric: c.Fabric.Topology.Fabric, recorded: map[model.Port]bool{}}
	var err error
	if w.routes, err = c.Fabric.Topology.Routes(); err != nil {
		return nil, err
	}
	for i := range t.Senders {
		if err := w.addSender(&t.Senders[i]); err != nil {
			return nil, err
		}
	}
	if err := w.addVictim(c.Diagnosis); err != nil {
		return nil, err
	}
	for i := range t.Rows {
		if err := w.addPauses(&t.Rows[i]); err != nil {
			return nil, err
		}
		if p, ok := w.port(t.Rows[i].Port); ok && t.Rows[i].Reported {
			w.recorded[p] = true
		}
	}
	w.forgetEarlier()
	w.shift()
	return w, nil
}

// maxSpan bounds what is simulated. Switches report a few epochs of about a millisecond.
const maxSpan = 100 * time.Millisecond

// rebuildable reports whether an interval is near the timeline, and not backwards.
func rebuildable(s api.Span) bool {
	return -int64(maxSpan) <= s.FromNs && s.FromNs <= s.ToNs && s.ToNs <= int64(maxSpan)
}

// forgetEarlier removes what had been sent before the first cause of the lateness began,
// and had left the fabric.
func (w *world) forgetEarlier() {
	w.senders = slices.DeleteFunc(w.senders, func(s sender) bool { return s.to < -w.victim.late })
}

// steadyWithin is by how much the rates of two intervals may differ of a flow that sends
// steadily: a few packets more or less.
const steadyWithin = 0.2

// addSender adds what a flow sent.
func (w *world) addSender(s *api.TimelineSender) error {
	src, dst, err := w.ends(&s.FlowRef)
	if err != nil {
		return err
	}
	counted, ok := w.fabric.ByName(s.Switch)
	if !ok {
		return fmt.Errorf("switch %s of the record is not in the topology", s.Switch)
	}
	if s.Priority > 7 {
		return fmt.Errorf("flow %v of the record has priority %d, want 0 to 7", s.Flow, s.Priority)
	}
	outs := w.ports(s.Outs)
	for _, p := range outs {
		w.recorded[p] = true
	}
	headers := uint64(headers4)
	if !s.Flow.Src.Is4() {
		headers = headers6
	}
	last := 0.0
	for _, v := range s.Intervals {
		if v.Packets == 0 || v.Bytes <= 0 || !rebuildable(v.Span) {
			continue
		}
		payload := model.Bytes(v.Bytes) - model.Bytes(min(min(v.Packets, 1<<40)*headers, uint64(v.Bytes)-1))
		w.mtu = max(w.mtu, payload/model.Bytes(v.Packets))
		w.senders = append(w.senders, sender{
			flow: s.Flow, src: src, dst: dst, priority: s.Priority, counted: counted, outs: outs, payload: payload, bytes: model.Bytes(v.Bytes), packets: v.Packets,
			from: time.Duration(v.FromNs), to: time.Duration(v.ToNs),
		})
		now := &w.senders[len(w.senders)-1]
		rate := now.rate()
		now.steady = rate > 0 && math.Abs(rate-last) <= steadyWithin*last
		last = rate
	}
	return nil
}

// addVictim adds the late packet.
func (w *world) addVictim(d *api.DiagnosisDetail) (err error) {
	t := &d.Account.Timeline
	v := &w.victim
	v.flow, v.late, v.inFlight = d.Victim.Flow, time.Duration(d.Account.LateNs), d.Account.InFlight
	if v.src, v.dst, err = w.ends(&d.Victim); err != nil {
		return err
	}
	var ok bool
	if v.first, ok = w.port(t.Rows[0].Port); !ok {
		return fmt.Errorf("port %s:%d of the account is not in the topology", t.Rows[0].Port.Node, t.Rows[0].Port.Port)
	}
	v.queued, v.priority = time.Duration(t.Rows[0].Packet[0].FromNs), 3
	for i := range d.Graph.Ports {
		if p := &d.Graph.Ports[i]; p.Node == t.Rows[0].Port.Node && p.Port == t.Rows[0].Port.Port {
			v.priority = p.Priority
		}
	}
	for i := range t.Rows {
		p, ok := w.port(t.Rows[i].Port)
		if !ok || len(t.Rows[i].Packet) == 0 {
			break
		}
		v.outs = append(v.outs, p)
		if w.fabric.Port(p).Peer.Node == v.dst {
			break // what follows is the path of the acknowledgement
		}
	}
	for i := range w.senders {
		if s := &w.senders[i]; s.flow == v.flow {
			v.priority = s.priority
			for _, p := range s.outs {
				if !slices.Contains(v.outs, p) {
					v.outs = append(v.outs, p)
				}
			}
		}
	}
	return nil
}

// addPauses adds when the host at the end of a row's port paused it.
func (w *world) addPauses(r *api.TimelineRow) error {
	p, ok := w.port(r.Port)
	if !ok {
		return fmt.Errorf("port %s:%d of the account is not in the topology", r.Port.Node, r.Port.Port)
	}
	port := w.fabric.Port(p)
	if w.fabric.Node(port.Peer.Node).Role.IsSwitch() {
		return nil
	}
	for _, s := range r.Paused {
		if !rebuildable(s) {
			return &MissingError{fmt.Sprintf("a run of more than %v is not rebuilt", maxSpan)}
		}
		// The frame was sent before it paused the port.
		from, to := time.Duration(s.FromNs)-port.Delay, time.Duration(s.ToNs)-port.Delay
		w.pauses = append(w.pauses, hostPause{host: port.Peer.Node, priority: w.victim.priority, from: from, to: to})
	}
	return nil
}

// lead is the time before the first packet: the first is sent before it comes to the
// switch that counted it.
const lead = 20 * time.Microsecond

// shift makes all times count from the start of the run.
func (w *world) shift() {
	first := w.victim.queued
	for i := range w.senders {
		first = min(first, w.senders[i].from)
	}
	for i := range w.pauses {
		first = min(first, w.pauses[i].from)
	}
	w.begin = lead - first
	for i := range w.senders {
		w.senders[i].from += w.begin
		w.senders[i].to += w.begin
	}
	for i := range w.pauses {
		w.pauses[i].from += w.begin
		w.pauses[i].to += w.begin
	}
	w.victim.queued += w.begin
}

// end returns when the last of what was recorded had happened.
func (w *world) end() time.Duration {
	end := w.victim.queued + w.victim.late
	for i := range w.senders {
		end = max(end, w.senders[i].to)
	}
	for i := range w.pauses {
		end = max(end, w.pauses[i].to)
	}
	return end
}

// ends returns the hosts of a flow.
func (w *world) ends(f *api.FlowRef) (src, dst model.NodeID, err error) {
	src, okSrc := w.fabric.ByName(f.Src)
	dst, okDst := w.fabric.ByName(f.Dst)
	if !okSrc || !okDst {
		return 0, 0, &MissingError{fmt.Sprintf("flow %v has an end outside the topology", f.Flow)}
	}
	return src, dst, nil
}

func (w *world) port(r api.PortRef) (model.Port, bool) {
	id, ok := w.fabric.ByName(r.Node)
	p := model.Port{Node: id, Port: r.Port}
	return p, ok && w.fabric.Port(p) != nil
}

func (w *world) ports(list []api.PortRef) (out []model.Port) {
	for _, r := range list {
		if p, ok := w.port(r); ok {
			out = append(out, p)
		}
	}
	return out
}

// errNoCulprit says that a verdict names nothing that could be removed.
var errNoCulprit = errors.New("the verdict names no flow and no host: there is nothing to remove")
