package configdb

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/inhost/settings"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// hostEnd is an interface of a host, and the port at the other end of its link.
type hostEnd struct {
	in   *settings.Interface
	at   model.Port
	name string // such as h0 eth0
	ref  string
	port *Port // nil: the switch has no configuration
	peer model.Port
}

// compareHosts compares interfaces of hosts with the ports at the other end of their links.
func (c *comparison) compareHosts() {
	if len(c.hosts) == 0 {
		return
	}
	var missing []string
	for _, id := range c.f.Hosts() {
		h := c.hosts[id]
		if h == nil {
			missing = append(missing, c.f.Node(id).Name)
			continue
		}
		for i := range c.f.Node(id).Ports {
			c.compareHost(h, model.Port{Node: id, Port: c.f.Node(id).Ports[i].ID})
		}
	}
	if len(missing) > 0 {
		c.add(Missing, fmt.Sprintf("%s without settings, so nothing of them was compared: %s", plural.Count(len(missing), "host"),
			strings.Join(missing[:min(len(missing), 8)], ", ")), "", missing...)
	}
}

func (c *comparison) compareHost(h *settings.Host, at model.Port) {
	node, link := c.f.Node(at.Node), c.f.Port(at)
	var address netip.Addr
	if len(node.Ports) == 1 {
		address = node.IPv4.Netip()
	}
	in := h.With(link.Name, address)
	if in == nil {
		c.add(Missing, fmt.Sprintf("the fabric has %s, and the settings of %s have no interface %s", c.f.PortName(at), node.Name, link.Name), "", c.f.PortRef(at))
		return
	}
	e := &hostEnd{in: in, at: at, name: node.Name + " " + in.Name, ref: c.f.PortRef(at), peer: link.Peer, port: c.port(link.Peer)}
	c.compareHostMTU(e)
	c.compareHostPFC(e)
	if e.port == nil {
		return
	}
	if e.port.PFC != 0 {
		c.compareHostDSCP(e)
		c.compareRDMAClass(e)
	}
	c.compareHostECN(e)
}

// addEnd adds a mismatch between a host and its port that a command of the host mends.
func (c *comparison) addEnd(e *hostEnd, rule, text, format string, args ...any) {
	places := []string{e.ref}
	if e.port != nil {
		places = append(places, c.f.PortRef(e.peer))
	}
	c.add(rule, text, c.on(e.at, format, args...), places...)
}

func (c *comparison) compareHostMTU(e *hostEnd) {
	mtu := model.Bytes(e.in.MTU)
	if c.want.MaxFrame > 0 && mtu < c.want.MaxFrame {
		c.addEnd(e, MTU, fmt.Sprintf("MTU %d on %s, and the fabric's frames have up to %d bytes", mtu, e.name, c.want.MaxFrame),
			"ip link set %s mtu %d", e.in.Name, c.want.MaxFrame)
		return
	}
	if e.port == nil || e.port.MTU == 0 {
		return
	}
	other := c.f.PortName(e.peer)
	if mtu > e.port.MTU {
		c.addEnd(e, MTU, fmt.Sprintf("MTU %d on %s and %d on %s: frames above %d are dropped", mtu, e.name, e.port.MTU, other, e.port.MTU),
			"ip link set %s mtu %d", e.in.Name, e.port.MTU)
		return
	}
	// A lower one is common, and loses nothing that this host sends. Where there is PFC there is RDMA.
	here, there := settings.RDMAMTU(int(mtu)), settings.RDMAMTU(int(e.port.MTU))
	if e.port.PFC != 0 && here < there {
		c.addEnd(e, RDMAMTU, fmt.Sprintf("MTU %d on %s makes RDMA packets of %d bytes, and %s with MTU %d takes %d", mtu, e.name, here, other, e.port.MTU, there),
			"ip link set %s mtu %d", e.in.Name, e.port.MTU)
	}
}

func (c *comparison) compareHostPFC(e *hostEnd) {
	// Where the fabric's priorities are known, the port is compared with them, too.
	want, of := c.want.Lossless, "the fabric's settings"
	if want == 0 {
		if e.port == nil {
			return
		}
		want, of = e.port.PFC, c.f.PortName(e.peer)
	}
	if want != 0 && e.in.Pause != nil && (e.in.Pause.Send || e.in.Pause.Obey) {
		c.addEnd(e, PFC, fmt.Sprintf("pause frames of IEEE 802.3x, which stop all priorities, are on at %s, and PFC of %s at %s",
			e.name, settings.Priorities(want), of), "ethtool -A %s autoneg off rx off tx off", e.in.Name)
	}
	if e.in.PFC == nil {
		if want != 0 {
			c.add(Missing, fmt.Sprintf("PFC of %s was not compared: %s", e.name, unanswered(e.in, settings.QuestionPFC)), "", e.ref)
		}
		return
	}
	for prio := range 8 {
		here, there := "off", "on"
		if e.in.PFC.Enabled.Has(prio) {
			here, there = there, here
		}
		if e.in.PFC.Enabled.Has(prio) != (want>>prio&1 == 1) {
			c.addEnd(e, PFC, fmt.Sprintf("PFC of priority %d is %s at %s and %s at %s: pauses have no effect, and packets are dropped", prio, here, e.name, there, of),
				"dcb pfc set dev %s prio-pfc %d:%s", e.in.Name, prio, there)
		}
	}
}

// unanswered says why a question has no answer.
func unanswered(in *settings.Interface, question string) string {
	for _, q := range []string{question, settings.QuestionDCB} {
		if why := in.Unanswered[q]; why != "" {
			return why
		}
	}
	return "it is not in the settings"
}

// compareHostDSCP compares priorities of DSCPs with traffic classes. A class is the priority of
// its number, as in SONiC's own maps. What is lossless at neither end may differ: the NIC gives
// each DSCP a priority, and switches have one class for most.
func (c *comparison) compareHostDSCP(e *hostEnd) {
	classes := c.configs[e.peer.Node].DSCP[e.port.DSCPMap]
	if classes == nil {
		return
	}
	if e.in.Apps == nil {
		c.add(Missing, fmt.Sprintf("priorities of DSCPs of %s were not compared: %s", e.name, unanswered(e.in, settings.QuestionDCB)), "", e.ref)
		return
	}
	priorities := e.in.PrioritiesOfDSCP()
	lossless := e.port.PFC
	if e.in.PFC != nil {
		lossless |= uint8(e.in.PFC.Enabled)
	}
	type pair struct{ here, there int } // priority, class; -1: none
	differ := make(map[pair][]int)
	for dscp := range 64 {
		class := classes[dscp] // 0 without an entry
		here, known := priorities[dscp]
		if !known {
			here = -1
		}
		if known && here != class && (lossless>>here|lossless>>class)&1 == 1 || !known && lossless>>class&1 == 1 {
			differ[pair{here, class}] = append(differ[pair{here, class}], dscp)
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(differ), func(a, b pair) int { return 16*(a.here-b.here) + a.there - b.there }) {
		var entries []string
		for _, dscp := range differ[p] {
			entries = append(entries, fmt.Sprintf("%d:%d", dscp, p.there))
		}
		have := fmt.Sprintf("priority %d", p.here)
		if p.here < 0 {
			have = "without a priority"
		}
		c.addEnd(e, DSCP, fmt.Sprintf("DSCP %s is %s on %s and traffic class %d on %s", numbers(differ[p]), have, e.name, p.there, c.f.PortName(e.peer)),
			"dcb app replace dev %s dscp-prio %s", e.in.Name, strings.Join(entries, " "))
	}
}

// numbers prints numbers, which are in order, as ranges: 24 to 31, 48.
func numbers(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		end := i
		for end+1 < len(list) && list[end+1] == list[end]+1 {
			end++
		}
		if part := strconv.Itoa(list[i]); end > i {
			parts = append(parts, part+" to "+strconv.Itoa(list[end]))
		} else {
			parts = append(parts, part)
		}
		i = end + 1
	}
	return strings.Join(parts, ", ")
}

// compareRDMAClass checks that the DSCP of RDMA packets is in a lossless class of the switch.
func (c *comparison) compareRDMAClass(e *hostEnd) {
	classes := c.configs[e.peer.Node].DSCP[e.port.DSCPMap]
	var good []int
	for dscp := range 64 {
		if class, ok := classes[dscp]; ok && e.port.PFC>>class&1 == 1 {
			good = append(good, dscp)
		}
	}
	if len(good) == 0 {
		return
	}
	for _, r := range e.in.RDMA {
		for _, set := range []struct {
			class *uint8
			what  string
			mend  string
		}{
			{r.TrafficClass, "RDMA packets", fmt.Sprintf("echo %d > /sys/class/infiniband/%s/tc/%d/traffic_class", good[0]<<2, r.Device, r.Port)},
			{r.CMTrafficClass, "connections of RDMA_CM", fmt.Sprintf("cma_roce_tos -d %s -p %d -t %d", r.Device, r.Port, good[0]<<2)},
		} {
			if set.class == nil || *set.class == 0 { // each program sets its own
				continue
			}
			dscp := int(*set.class >> 2)
			if class := classes[dscp]; e.port.PFC>>class&1 == 0 {
				c.addEnd(e, DSCP, fmt.Sprintf("%s of %s have DSCP %d (traffic class %d of %s), which is traffic class %d without PFC on %s",
					set.what, e.name, dscp, *set.class, r.Device, class, c.f.PortName(e.peer)), "%s", set.mend)
			}
		}
	}
}

// compareHostECN compares what a NIC does about marked packets with what the switch marks towards it.
func (c *comparison) compareHostECN(e *hostEnd) {
	for _, r := range e.in.RDMA {
		for _, half := range []struct {
			set          *settings.Priorities
			folder, does string
		}{
			{r.NotifyECN, "roce_np", "answers marked packets with CNPs"},
			{r.ReactECN, "roce_rp", "sends slower after CNPs"},
		} {
			if half.set == nil {
				continue
			}
			for prio := range 8 {
				if e.port.PFC>>prio&1 == 0 {
					continue
				}
				marks := e.port.ECN[prio] != nil && e.port.ECN[prio].ECN
				switch acts := half.set.Has(prio); {
				case marks && !acts:
					c.addEnd(e, ECN, fmt.Sprintf("queue %d of %s marks packets, and %s of %s never %s: %s is off", prio, c.f.PortName(e.peer), r.Device, e.name, half.does, half.folder),
						"echo 1 > /sys/class/net/%s/ecn/%s/enable/%d", e.in.Name, half.folder, prio)
				case !marks && acts:
					mend := c.assignMarking(e.peer, prio)
					if m := e.port.ECN[prio]; m != nil {
						mend = c.on(e.peer, `sonic-db-cli CONFIG_DB HSET "WRED_PROFILE|%s" ecn ecn_all`, m.Profile)
					}
					c.add(ECN, fmt.Sprintf("%s of %s %s of priority %d, and queue %d of %s marks none", r.Device, e.name, half.does, prio, prio, c.f.PortName(e.peer)),
						mend, e.ref, c.f.PortRef(e.peer))
				}
			}
		}
	}
}
