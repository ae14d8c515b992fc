package configdb

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/inhost/settings"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Rules of mismatches.
const (
	MTU      = "mtu-mismatch"
	RDMAMTU  = "rdma-mtu"
	Speed    = "speed-mismatch"
	PFC      = "pfc-mismatch"
	DSCP     = "dscp-mismatch"
	ECN      = "ecn-mismatch"
	Headroom = "headroom"
	NoBuffer = "pfc-without-headroom"
	Missing  = "no-configuration"
)

// Mismatch is a setting of a switch or a host that disagrees with the other end of a link, or
// with the fabric.
type Mismatch struct {
	Rule   string
	Places []string
	Text   string // with both values
	Mend   string // the command that mends it
}

// Settings are those the fabric is meant to have; zero values are not compared.
type Settings struct {
	MaxFrame model.Bytes // of the largest frame, from its IP header on: as PORT's mtu counts
	Lossless uint8
	ECN      func(model.Rate) (kmin, kmax model.Bytes, ok bool)
	// Headroom returns what a link needs; it must be set.
	Headroom func(rate model.Rate, delay time.Duration, frame model.Bytes) model.Bytes
}

// Compare compares the configurations of switches and the settings of hosts, by node, with each
// other over the fabric's links and with the settings that it is meant to have. Hosts may be
// compared without any switch.
func Compare(f *topo.Fabric, configs map[model.NodeID]*Config, hosts map[model.NodeID]*settings.Host, want Settings) []Mismatch {
	c := &comparison{f: f, configs: configs, hosts: hosts, want: want}
	if len(configs) > 0 {
		c.findMissing()
	}
	c.compareDSCP()
	for _, l := range f.Links() {
		c.compareEnds(l.A, l.B)
	}
	for _, id := range f.Switches() {
		for i := range f.Node(id).Ports {
			c.comparePort(model.Port{Node: id, Port: f.Node(id).Ports[i].ID})
		}
	}
	c.compareECN()
	c.compareHosts()
	return joinByMend(c.found)
}

// joinByMend makes one mismatch of those that the same command mends.
func joinByMend(all []Mismatch) (out []Mismatch) {
	at, others := make(map[[2]string]int), make(map[int]int)
	for _, m := range all {
		key := [2]string{m.Rule, m.Mend}
		i, known := at[key]
		if m.Mend == "" || !known {
			at[key] = len(out)
			out = append(out, m)
			continue
		}
		for _, p := range m.Places {
			if !slices.Contains(out[i].Places, p) {
				out[i].Places = append(out[i].Places, p)
				others[i]++
			}
		}
	}
	for i, n := range others {
		out[i].Text += ", and " + plural.Count(n, "other port")
	}
	return out
}

type comparison struct {
	f       *topo.Fabric
	configs map[model.NodeID]*Config
	hosts   map[model.NodeID]*settings.Host
	want    Settings
	found   []Mismatch
}

func (c *comparison) add(rule, text, mend string, places ...string) {
	c.found = append(c.found, Mismatch{rule, places, text, mend})
}

// port returns the configuration of a port, or nil.
func (c *comparison) port(at model.Port) *Port {
	cfg := c.configs[at.Node]
	if cfg == nil {
		return nil
	}
	return cfg.Ports[c.f.Port(at).Name]
}

func (c *comparison) findMissing() {
	for _, id := range c.f.Switches() {
		cfg := c.configs[id]
		if cfg == nil {
			c.add(Missing, c.f.Node(id).Name+" has no configuration, so nothing of it was compared", "", c.f.Node(id).Name)
			continue
		}
		for i := range c.f.Node(id).Ports {
			if p := &c.f.Node(id).Ports[i]; cfg.Ports[p.Name] == nil {
				at := model.Port{Node: id, Port: p.ID}
				c.add(Missing, fmt.Sprintf("the fabric has %s, and the configuration of %s has no port %s",
					c.f.PortName(at), c.f.Node(id).Name, p.Name), "", c.f.PortRef(at))
			}
		}
	}
}

// on names the switch that a command is for.
func (c *comparison) on(at model.Port, format string, args ...any) string {
	return "on " + c.f.Node(at.Node).Name + ": " + fmt.Sprintf(format, args...)
}

// compareEnds compares the two ends of a link.
func (c *comparison) compareEnds(a, b model.Port) {
	x, y := c.port(a), c.port(b)
	if x == nil || y == nil {
		return
	}
	if x.MTU > y.MTU {
		a, b, x, y = b, a, y, x
	}
	if x.MTU > 0 && x.MTU != y.MTU {
		c.add(MTU, fmt.Sprintf("MTU %d on %s and %d on %s: frames above %d are dropped", x.MTU, c.f.PortName(a), y.MTU, c.f.PortName(b), x.MTU),
			c.on(a, "config interface mtu %s %d", c.f.Port(a).Name, y.MTU), c.f.PortRef(a), c.f.PortRef(b))
	}
	for prio := range 8 {
		if x.PFC>>prio&1 == y.PFC>>prio&1 {
			continue
		}
		without, with := a, b
		if x.PFC>>prio&1 == 1 {
			without, with = b, a
		}
		mend := c.on(without, "config interface pfc priority %s %d on", c.f.Port(without).Name, prio)
		if c.want.Lossless != 0 && c.want.Lossless>>prio&1 == 0 {
			mend = c.on(with, "config interface pfc priority %s %d off", c.f.Port(with).Name, prio)
		}
		c.add(PFC, fmt.Sprintf("PFC of priority %d is on at %s and off at %s: pauses have no effect, and packets are dropped",
			prio, c.f.PortName(with), c.f.PortName(without)), mend, c.f.PortRef(with), c.f.PortRef(without))
	}
}

// comparePort compares a port with the fabric.
func (c *comparison) comparePort(at model.Port) {
	p, link := c.port(at), c.f.Port(at)
	if p == nil {
		return
	}
	ref, name := c.f.PortRef(at), c.f.PortName(at)
	if p.Speed > 0 && p.Speed != link.Rate {
		c.add(Speed, fmt.Sprintf("speed %s on %s, and the fabric's link has %s", model.FormatRate(p.Speed), name, model.FormatRate(link.Rate)),
			c.on(at, "config interface speed %s %d", link.Name, int64(link.Rate/model.Mbps)), ref)
	}
	if c.want.MaxFrame > 0 && p.MTU > 0 && p.MTU < c.want.MaxFrame {
		c.add(MTU, fmt.Sprintf("MTU %d on %s, and the fabric's frames have up to %d bytes", p.MTU, name, c.want.MaxFrame),
			c.on(at, "config interface mtu %s %d", link.Name, c.want.MaxFrame), ref)
	}
	// With a neighbour that is configured, its own comparison says it.
	if c.want.Lossless != 0 && p.PFC != c.want.Lossless && c.port(link.Peer) == nil {
		c.add(PFC, fmt.Sprintf("PFC is on for %s on %s, and the fabric's lossless priorities are %s",
			priorities(p.PFC), name, priorities(c.want.Lossless)), c.on(at, "%s", pfcCommands(link.Name, p.PFC, c.want.Lossless)), ref)
	}
	c.compareHeadroom(at, p, link)
}

func (c *comparison) compareHeadroom(at model.Port, p *Port, link *topo.Port) {
	delay := max(link.Delay, p.Cable)
	frame := max(p.MTU, c.want.MaxFrame)
	need := c.want.Headroom(link.Rate, delay, frame)
	short := make(map[string]model.Bytes) // by profile
	for prio := range 8 {
		if p.PFC>>prio&1 == 0 {
			continue
		}
		b := p.Headroom[prio]
		switch {
		case b == nil && len(p.Headroom) > 0:
			c.add(NoBuffer, fmt.Sprintf("PFC of priority %d is on at %s, and the priority group has no lossless buffer profile: the others have one",
				prio, c.f.PortName(at)), c.on(at, "config interface buffer priority-group lossless add %s %d", link.Name, prio), c.f.PortRef(at))
		case b != nil && b.Xoff < need:
			short[b.Name] = b.Xoff
		}
	}
	for _, name := range slices.Sorted(maps.Keys(short)) {
		c.add(Headroom, fmt.Sprintf("profile %s gives %s %s of headroom, and up to %s arrive after a pause (%s, %s, MTU %d)", name, c.f.PortName(at),
			model.FormatBytes(short[name]), model.FormatBytes(need), model.FormatRate(link.Rate), model.FormatDuration(delay), frame),
			c.on(at, "config buffer profile set %s --xoff %d", name, need), c.f.PortRef(at))
	}
}

// compareDSCP compares the DSCP maps that ports use with what most ports use.
func (c *comparison) compareDSCP() {
	byMap := make(map[string][]model.Port) // content of the map
	classes := make(map[string]map[int]int)
	for _, id := range c.f.Switches() {
		for i := range c.f.Node(id).Ports {
			at := model.Port{Node: id, Port: c.f.Node(id).Ports[i].ID}
			p := c.port(at)
			if p == nil || c.configs[id].DSCP[p.DSCPMap] == nil {
				continue
			}
			m := c.configs[id].DSCP[p.DSCPMap]
			key := fmt.Sprint(m) // fmt prints maps in order
			byMap[key], classes[key] = append(byMap[key], at), m
		}
	}
	most := mostCommon(byMap)
	for _, key := range slices.Sorted(maps.Keys(byMap)) {
		if key == most {
			continue
		}
		// One finding for each switch and DSCP, not for each port.
		seen := make(map[model.NodeID]bool)
		for _, at := range byMap[key] {
			if !seen[at.Node] {
				seen[at.Node] = true
				c.addDSCP(at, classes[key], classes[most], byMap[most][0])
			}
		}
	}
}

func (c *comparison) addDSCP(at model.Port, have, want map[int]int, other model.Port) {
	for dscp := range 64 {
		x, okX := have[dscp]
		y, okY := want[dscp]
		if x == y && okX == okY {
			continue
		}
		command := fmt.Sprintf(`sonic-db-cli CONFIG_DB HSET "DSCP_TO_TC_MAP|%s" %d %d`, c.port(at).DSCPMap, dscp, y)
		if !okY {
			command = fmt.Sprintf(`sonic-db-cli CONFIG_DB HDEL "DSCP_TO_TC_MAP|%s" %d`, c.port(at).DSCPMap, dscp)
		}
		c.add(DSCP, fmt.Sprintf("DSCP %d is %s on %s and %s on %s, as on most ports", dscp, class(x, okX), c.f.Node(at.Node).Name,
			class(y, okY), c.f.Node(other.Node).Name), c.on(at, "%s", command), c.f.Node(at.Node).Name)
	}
}

func class(tc int, ok bool) string {
	if !ok {
		return "in no traffic class"
	}
	return fmt.Sprintf("traffic class %d", tc)
}

// compareECN compares the marking of lossless queues with the fabric's settings, or
// with what most ports of the same rate have.
func (c *comparison) compareECN() {
	type kind struct {
		rate  model.Rate
		queue int
	}
	all := make(map[kind]map[string][]model.Port)
	marks := make(map[string]Marking)
	for _, id := range c.f.Switches() {
		for i := range c.f.Node(id).Ports {
			link := &c.f.Node(id).Ports[i]
			at := model.Port{Node: id, Port: link.ID}
			p := c.port(at)
			if p == nil {
				continue
			}
			for prio := range 8 {
				if p.PFC>>prio&1 == 0 {
					continue
				}
				var m Marking
				if p.ECN[prio] != nil {
					m = *p.ECN[prio]
				}
				m.Profile = ""
				k, key := kind{link.Rate, prio}, fmt.Sprint(m)
				if all[k] == nil {
					all[k] = make(map[string][]model.Port)
				}
				all[k][key], marks[key] = append(all[k][key], at), m
				if c.want.ECN != nil {
					c.compareMarking(at, prio, m)
				}
			}
		}
	}
	if c.want.ECN != nil {
		return
	}
	for k, byMarking := range all {
		most := mostCommon(byMarking)
		for _, key := range slices.Sorted(maps.Keys(byMarking)) {
			if key == most {
				continue
			}
			for _, at := range byMarking[key] {
				other := byMarking[most][0]
				c.addECN(at, k.queue, marks[key], marks[most], "on "+c.f.PortName(other)+", as on most ports of this rate")
			}
		}
	}
	slices.SortStableFunc(c.found, func(a, b Mismatch) int { return strings.Compare(a.Rule+a.Text, b.Rule+b.Text) })
}

// compareMarking compares a queue with the fabric's settings.
func (c *comparison) compareMarking(at model.Port, queue int, m Marking) {
	kmin, kmax, ok := c.want.ECN(c.f.Port(at).Rate)
	if ok && (!m.ECN || m.Kmin != kmin || m.Kmax != kmax) {
		c.addECN(at, queue, m, Marking{Kmin: kmin, Kmax: kmax, Pmax: m.Pmax, ECN: true}, "in the fabric's settings")
	}
}

func (c *comparison) addECN(at model.Port, queue int, have, want Marking, where string) {
	p := c.port(at)
	mend := c.assignMarking(at, queue)
	if m := p.ECN[queue]; m != nil {
		mend = c.on(at, "config ecn -profile %s -gmin %d -gmax %d", m.Profile, want.Kmin, want.Kmax)
		if want.ECN != m.ECN {
			mend += fmt.Sprintf(` && sonic-db-cli CONFIG_DB HSET "WRED_PROFILE|%s" ecn ecn_all`, m.Profile)
		}
	}
	c.add(ECN, fmt.Sprintf("queue %d of %s has %s, and %s %s", queue, c.f.PortName(at), marking(have), marking(want), where), mend, c.f.PortRef(at))
}

// assignMarking is the command that has a queue mark packets.
func (c *comparison) assignMarking(at model.Port, queue int) string {
	return c.on(at, "assign a WRED profile with ECN to queue %d: sonic-db-cli CONFIG_DB HSET \"QUEUE|%s|%d\" wred_profile PROFILE", queue, c.f.Port(at).Name, queue)
}

func marking(m Marking) string {
	if !m.ECN {
		return "no ECN"
	}
	return fmt.Sprintf("Kmin %d and Kmax %d", m.Kmin, m.Kmax)
}

// mostCommon returns the key with most ports, the least of several.
func mostCommon(m map[string][]model.Port) (most string) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if most == "" || len(m[key]) > len(m[most]) {
			most = key
		}
	}
	return most
}

func priorities(mask uint8) string {
	var list []string
	for p := range 8 {
		if mask>>p&1 != 0 {
			list = append(list, fmt.Sprint(p))
		}
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

func pfcCommands(port string, have, want uint8) string {
	var list []string
	for p := range 8 {
		if bit := uint8(1) << p; have&bit != want&bit {
			state := "off"
			if want&bit != 0 {
				state = "on"
			}
			list = append(list, fmt.Sprintf("config interface pfc priority %s %d %s", port, p, state))
		}
	}
	return strings.Join(list, " && ")
}
