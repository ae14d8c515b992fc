package file

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// htsimTier is a section "Tier n" of an htsim topology: the switches of the
// tier and the links below them.
type htsimTier struct {
	line          int // of the section; 0: there is none
	downlink      topo.LinkSpec
	down, up      int // ports
	over, bundle  int // oversubscription, parallel links below a switch
	switchLatency time.Duration
}

// htsimTopology is an htsim topology file.
type htsimTopology struct {
	file                 string
	nodes, tiers, pod    int
	nodesLine, tiersLine int
	podLine              int
	tier                 [3]htsimTier
}

// parseHTSim parses a topology of the htsim simulators (csg-htsim, uet-htsim):
// lines "Key value", the header, then a section for each tier from the ToRs
// upward. Links are wired as there. Keys of queue sizes have no effect: Weft's
// switches share one buffer.
func parseHTSim(name string, data []byte) (*Document, error) {
	t := htsimTopology{file: name}
	current := -1
	no := 0
	for text := range strings.Lines(string(data)) {
		no++
		text, _, _ = strings.Cut(text, "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if len(words) != 2 {
			return nil, t.errorf(no, "%d words, want a key and a value", len(words))
		}
		if err := t.set(no, &current, strings.ToLower(words[0]), words[1]); err != nil {
			return nil, err
		}
	}
	if err := t.complete(); err != nil {
		return nil, err
	}
	return t.build()
}

func (t *htsimTopology) errorf(line int, format string, args ...any) *Error {
	return &Error{File: t.file, Line: line, Msg: fmt.Sprintf(format, args...)}
}

// set sets a key. current is the tier of the section, -1 in the header.
func (t *htsimTopology) set(line int, current *int, key, value string) error {
	whole := func(least, most int) (int, error) {
		n, err := strconv.ParseUint(value, 10, 63)
		if err != nil || n < uint64(least) || n > uint64(most) {
			return 0, t.errorf(line, "%s %q, want a whole number from %d to %d", key, value, least, most)
		}
		return int(n), nil
	}
	var err error
	switch key {
	case "nodes":
		t.nodesLine = line
		t.nodes, err = whole(2, topo.MaxNodes)
		return err
	case "tiers":
		t.tiersLine = line
		t.tiers, err = whole(2, 3)
		return err
	case "podsize":
		t.podLine = line
		t.pod, err = whole(1, topo.MaxNodes)
		return err
	case "tier":
		if *current, err = whole(0, 2); err != nil {
			return err
		}
		s := &t.tier[*current]
		if s.line != 0 {
			return t.errorf(line, "tier %d again, the first one is on line %d, want it once", *current, s.line)
		}
		*s = htsimTier{line: line, over: 1, bundle: 1}
		return nil
	}
	if *current < 0 {
		return t.errorf(line, "unknown key %q before the first tier, want nodes, tiers or podsize", key)
	}
	s := &t.tier[*current]
	switch key {
	case "downlink_speed_gbps":
		var n int
		n, err = whole(1, 1e5)
		s.downlink.Rate = model.Rate(n) * model.Gbps
	case "downlink_latency_ns":
		var n int
		n, err = whole(1, 1e9)
		s.downlink.Delay = time.Duration(n)
	case "switch_latency_ns":
		var n int
		n, err = whole(0, 1e9)
		s.switchLatency = time.Duration(n)
	case "radix_down":
		s.down, err = whole(1, topo.MaxPorts)
	case "radix_up":
		if *current == 2 {
			return t.errorf(line, "radix_up of tier 2, want none: it is the top tier")
		}
		s.up, err = whole(1, topo.MaxPorts)
	case "oversubscribed":
		s.over, err = whole(1, 1024)
	case "bundle":
		s.bundle, err = whole(1, 1024)
	case "queue_down", "queue_up":
		_, err = whole(0, math.MaxInt64) // of one port, in packets or bytes: switches here share a buffer
	default:
		return t.errorf(line, "unknown key %q, want downlink_speed_gbps, downlink_latency_ns, switch_latency_ns, radix_down, radix_up, oversubscribed, bundle, queue_down or queue_up", key)
	}
	return err
}

// complete reports keys that are missing.
func (t *htsimTopology) complete() error {
	for _, h := range []struct {
		name string
		line int
	}{{"nodes", t.nodesLine}, {"tiers", t.tiersLine}, {"podsize", t.podLine}} {
		if h.line == 0 {
			return t.errorf(0, "no %s, want one", h.name)
		}
	}
	for i := range t.tiers {
		s := &t.tier[i]
		switch {
		case s.line == 0:
			return t.errorf(t.tiersLine, "tiers %d and no section of tier %d, want one", t.tiers, i)
		case s.downlink.Rate == 0:
			return t.errorf(s.line, "tier %d has no downlink_speed_gbps, want one", i)
		case s.downlink.Delay == 0:
			return t.errorf(s.line, "tier %d has no downlink_latency_ns, want one", i)
		case s.down == 0:
			return t.errorf(s.line, "tier %d has no radix_down, want one", i)
		case i < t.tiers-1 && s.up == 0:
			return t.errorf(s.line, "tier %d has no radix_up, want one", i)
		}
	}
	return nil
}

// build wires the fabric. Ids: hosts, ToRs, leaves ("agg" in htsim; the top of
// two tiers are spines), spines ("core").
func (t *htsimTopology) build() (*Document, error) {
	tor, agg, core := &t.tier[0], &t.tier[1], &t.tier[2]
	switch {
	case t.nodes%t.pod != 0:
		return nil, t.errorf(t.podLine, "podsize %d, want a divisor of the %d nodes", t.pod, t.nodes)
	case t.pod%tor.down != 0:
		return nil, t.errorf(tor.line, "radix_down %d of tier 0, want a divisor of podsize %d", tor.down, t.pod)
	case t.tiers == 2 && t.pod != t.nodes:
		return nil, t.errorf(t.podLine, "podsize %d with two tiers, want %d, all nodes", t.pod, t.nodes)
	case tor.bundle != 1:
		return nil, t.errorf(tor.line, "bundle %d of tier 0, want 1: a host has one link", tor.bundle)
	}
	if t.tiers == 2 {
		agg.up = 0 // it is the top tier
	}
	pods, tors := t.nodes/t.pod, t.nodes/tor.down
	aggs, err := t.above(0, tors, pods)
	if err != nil {
		return nil, err
	}
	cores := 0
	if t.tiers == 3 {
		if cores, err = t.above(1, aggs, 1); err != nil {
			return nil, err
		}
		if want := aggs / pods * (agg.up / core.bundle); cores != want {
			return nil, t.errorf(agg.line, "radix_up %d of tier 1 reaches %d switches of tier 2, want the %d that speeds, oversubscription and radix_down of tier 2 give", agg.up, want, cores)
		}
	}
	perPod := aggs / pods
	if nodes, links := t.nodes+tors+aggs+cores, t.nodes+tors*tor.up+aggs*agg.up; nodes > topo.MaxNodes || links > topo.MaxLinks {
		return nil, t.errorf(t.nodesLine, "fabric of %d nodes and %d links, want at most %d and %d", nodes, links, topo.MaxNodes, topo.MaxLinks)
	}
	b := topo.NewBuilder("htsim-" + strconv.Itoa(t.nodes))
	hostIDs := addHTSimTier(b, "h", topo.Host, t.nodes, t.pod)
	torIDs := addHTSimTier(b, "tor", topo.ToR, tors, tors/pods)
	middle, role := "leaf", topo.Leaf
	if t.tiers == 2 {
		middle, role = "spine", topo.Spine
	}
	aggIDs := addHTSimTier(b, middle, role, aggs, perPod)
	coreIDs := addHTSimTier(b, "spine", topo.Spine, cores, 0)
	for i, h := range hostIDs {
		b.Connect(h, torIDs[i/tor.down], t.link(0))
	}
	for i, sw := range torIDs {
		for j := range perPod {
			for range agg.bundle {
				b.Connect(sw, aggIDs[i/(tors/pods)*perPod+j], t.link(1))
			}
		}
	}
	for i, sw := range aggIDs {
		for l := 0; t.tiers == 3 && l < agg.up/core.bundle; l++ {
			for range core.bundle {
				b.Connect(sw, coreIDs[i%perPod+perPod*l], t.link(2))
			}
		}
	}
	f, err := b.Build()
	if err != nil {
		return nil, t.errorf(0, "%v", err)
	}
	return &Document{Fabric: f}, nil
}

// above returns the number of switches of the tier above tier i, which has n:
// their downlinks carry what those of tier i carry, divided by its
// oversubscription.
func (t *htsimTopology) above(i, n, pods int) (int, error) {
	low, high := &t.tier[i], &t.tier[i+1]
	total := int64(n) * int64(low.down) * int64(low.downlink.Rate/model.Gbps)
	each := int64(high.downlink.Rate/model.Gbps) * int64(low.over)
	if total%each != 0 || total/each != int64(n)*int64(low.up) {
		return 0, t.errorf(low.line, "tier %d has %d links down of %v and oversubscription %d, so radix_up %d of %v does not fit, want %.4g",
			i, low.down, low.downlink.Rate, low.over, low.up, high.downlink.Rate, float64(total)/float64(each)/float64(n))
	}
	uplinks := n * low.up
	if uplinks%(pods*high.down) != 0 || low.up%high.bundle != 0 || high.down%high.bundle != 0 {
		return 0, t.errorf(high.line, "radix_down %d and bundle %d of tier %d do not divide the %d uplinks of tier %d, %d of each switch, want divisors",
			high.down, high.bundle, i+1, uplinks/pods, i, low.up)
	}
	count := uplinks / high.down
	// Within a pod every switch of tier 0 reaches every one of tier 1.
	if i == 0 && (low.up/high.bundle != count/pods || high.down/high.bundle != n/pods) {
		return 0, t.errorf(high.line, "radix_down %d of tier 1 gives %d switches in each pod for the %d uplinks of a ToR, want as many", high.down, count/pods, low.up)
	}
	return count, nil
}

// link returns the links below a tier. Weft's switches have no latency of their
// own: each link takes half of the latency of the switches at its ends, so that
// every path between hosts is as long as there.
func (t *htsimTopology) link(tier int) topo.LinkSpec {
	l := t.tier[tier].downlink
	l.Delay += t.tier[tier].switchLatency / 2
	if tier > 0 {
		l.Delay += t.tier[tier-1].switchLatency / 2
	}
	return l
}

func addHTSimTier(b *topo.Builder, prefix string, role topo.Role, n, podSize int) (ids []model.NodeID) {
	for i := range n {
		pod := topo.NoPod
		if podSize > 0 {
			pod = i / podSize
		}
		ids = append(ids, b.AddNode(topo.NodeSpec{Name: prefix + strconv.Itoa(i), Role: role, Pod: pod}))
	}
	return ids
}

// looksLikeHTSim reports whether the first line with text is a key of an htsim
// header and a number.
func looksLikeHTSim(data []byte) bool {
	for line := range strings.Lines(string(data[:min(len(data), 4096)])) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(strings.ToLower(line))
		if len(words) == 0 {
			continue
		}
		return len(words) == 2 && (words[0] == "nodes" || words[0] == "tiers" || words[0] == "podsize") &&
			strings.Trim(words[1], "0123456789") == ""
	}
	return false
}
