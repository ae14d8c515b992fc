package mirror

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
)

// MaxRules is how many rules a switch holds: the width of a word, which makes
// looking them up constant work.
const MaxRules = 64

// Rule selects packets by their headers. A zero field matches everything; the
// fields are those of SONiC's mirror tables that the view of a packet has.
type Rule struct {
	Name     string // for display
	Priority int    // the highest priority that matches wins; of equals, the first

	// Outer matches addresses, protocol, ports and TCP flags of the first IP
	// header; else of the innermost, the flow as users know it.
	Outer bool

	EtherType          uint16
	VLAN               uint16 // of the outermost tag
	Src, Dst           netip.Prefix
	Proto              model.Proto
	SrcPorts, DstPorts PortRange
	TCPFlags, TCPMask  uint8        // the flags under the mask; a mask makes it a rule for TCP
	ICMPType, ICMPCode OptionalByte // a rule with one is for ICMP, of either family
	DSCP, DSCPMask     uint8        // of the first IP header
	InPorts            []model.PortID

	OneIn uint32 // sample one in this many, the same at every switch; 0 and 1: all
	Skip  bool   // mirror none of them, unless they are marked
}

// OptionalByte is a byte that a field must equal, if Set.
type OptionalByte struct {
	Value uint8
	Set   bool
}

// PortRange is a range of port numbers, both ends included. The zero PortRange
// is all of them.
type PortRange struct{ Lo, Hi uint16 }

// Check returns an error for a rule that cannot match.
func (r *Rule) Check() error {
	switch {
	case r.SrcPorts.Lo > r.SrcPorts.Hi:
		return fmt.Errorf("mirror: rule %q: source ports %d to %d, want them ascending", r.Name, r.SrcPorts.Lo, r.SrcPorts.Hi)
	case r.DstPorts.Lo > r.DstPorts.Hi:
		return fmt.Errorf("mirror: rule %q: destination ports %d to %d, want them ascending", r.Name, r.DstPorts.Lo,
			r.DstPorts.Hi)
	case r.Src.IsValid() && r.Dst.IsValid() && r.Src.Addr().Is4() != r.Dst.Addr().Is4():
		return fmt.Errorf("mirror: rule %q: from %v to %v, want one family", r.Name, r.Src, r.Dst)
	case r.TCPFlags&^r.TCPMask != 0:
		return fmt.Errorf("mirror: rule %q: TCP flags %#x outside their mask %#x", r.Name, r.TCPFlags, r.TCPMask)
	case r.DSCP&^r.DSCPMask != 0 || r.DSCPMask > 63:
		return fmt.Errorf("mirror: rule %q: DSCP %#x/%#x, want a value under a mask of six bits", r.Name, r.DSCP, r.DSCPMask)
	case r.VLAN > 4094:
		return fmt.Errorf("mirror: rule %q: VLAN %d, want 1 to 4094", r.Name, r.VLAN)
	case r.icmp() && (r.TCPMask != 0 || r.Proto != 0 && r.Proto != model.ICMP && r.Proto != model.ICMPv6):
		return fmt.Errorf("mirror: rule %q is for ICMP and for another protocol, want one", r.Name)
	case r.Skip && r.OneIn > 1:
		return fmt.Errorf("mirror: rule %q skips one in %d, want either skip or sampling", r.Name, r.OneIn)
	}
	return nil
}

// icmp reports whether a rule is for ICMP.
func (r *Rule) icmp() bool { return r.ICMPType.Set || r.ICMPCode.Set }

// ruleTable finds the rule for a packet. Rules are bits of a word, the first to
// win the lowest. Each field of the packet gives the word of the rules that
// match its value; the lowest bit common to all words is the rule. The work is
// that of a few searches among at most 2·MaxRules+1 values, whatever the rules
// are.
type ruleTable struct {
	rules []Rule // by descending precedence
	outer uint64 // rules on the first header

	ether, vlan, src4, src6, dst4, dst6, srcPort, dstPort rangeIndex

	proto      [256]uint64
	flags      [256]uint64
	noTCPFlags uint64 // rules without TCP flags
	types      [256]uint64
	codes      [256]uint64
	noICMP     uint64 // rules without ICMP fields
	dscp       [64]uint64
	in         []uint64 // by port; the last is for higher ports
}

// rangeIndex maps a number to the rules that match it: those of the last cut
// that is not above it. Addresses are numbers of 128 bits, and smaller numbers
// are widened.
type rangeIndex struct {
	cuts []model.Addr // ascending, the first is 0
	sets []uint64
}

func (a *rangeIndex) rulesFor(v model.Addr) uint64 {
	lo, hi := 0, len(a.cuts)
	for hi-lo > 1 {
		mid := int(uint(lo+hi) / 2)
		if c := a.cuts[mid]; c.Hi < v.Hi || c.Hi == v.Hi && c.Lo <= v.Lo {
			lo = mid
		} else {
			hi = mid
		}
	}
	return a.sets[lo]
}

// newRangeIndex builds the index from the span that each rule matches: from lo
// to hi, or none if not ok.
func newRangeIndex(rules []Rule, span func(r *Rule) (lo, hi model.Addr, ok bool)) rangeIndex {
	a := rangeIndex{cuts: []model.Addr{{}}}
	for i := range rules {
		if lo, hi, ok := span(&rules[i]); ok {
			a.cuts = append(a.cuts, lo)
			if hi != maxAddr {
				a.cuts = append(a.cuts, successor(hi))
			}
		}
	}
	slices.SortFunc(a.cuts, model.Addr.Compare)
	a.cuts = slices.Compact(a.cuts)
	a.sets = make([]uint64, len(a.cuts))
	for i := range rules {
		lo, hi, ok := span(&rules[i])
		for j, c := range a.cuts {
			if ok && lo.Compare(c) <= 0 && c.Compare(hi) <= 0 {
				a.sets[j] |= 1 << i
			}
		}
	}
	return a
}

var maxAddr = model.Addr{Hi: 1<<64 - 1, Lo: 1<<64 - 1}

func successor(a model.Addr) model.Addr {
	lo, carry := bits.Add64(a.Lo, 1, 0)
	return model.Addr{Hi: a.Hi + carry, Lo: lo}
}

func number(v uint16) model.Addr { return model.Addr{Lo: uint64(v)} }

// spanOf returns the first and last address of a prefix, if it is of the
// family.
func spanOf(p netip.Prefix, v6 bool) (lo, hi model.Addr, ok bool) {
	if !p.IsValid() {
		return model.Addr{}, maxAddr, true
	}
	if p.Addr().Is4() == v6 {
		return lo, hi, false
	}
	lo = model.AddrOf(p.Masked().Addr())
	host := p.Addr().BitLen() - p.Bits() // bits after the prefix
	hi = lo
	if host >= 64 {
		hi.Lo, hi.Hi = 1<<64-1, lo.Hi|(1<<(host-64)-1)
	} else {
		hi.Lo |= 1<<host - 1
	}
	return lo, hi, true
}

func spanPorts(r PortRange) (lo, hi model.Addr, ok bool) {
	if r == (PortRange{}) {
		r.Hi = 1<<16 - 1
	}
	return number(r.Lo), number(r.Hi), true
}

// newRuleTable compiles rules for a switch with this many ports.
func newRuleTable(rules []Rule, ports int) (*ruleTable, error) {
	if len(rules) > MaxRules {
		return nil, fmt.Errorf("mirror: %d rules, want at most %d", len(rules), MaxRules)
	}
	rules = slices.Clone(rules)
	for i := range rules {
		if err := rules[i].Check(); err != nil {
			return nil, err
		}
		for _, p := range rules[i].InPorts {
			if p == 0 || int(p) > ports {
				return nil, fmt.Errorf("mirror: rule %q: ingress port %d, want 1 to %d", rules[i].Name, p, ports)
			}
		}
	}
	slices.SortStableFunc(rules, func(a, b Rule) int { return b.Priority - a.Priority })
	t := &ruleTable{rules: rules, in: make([]uint64, ports+2)}
	t.ether = newRangeIndex(rules, func(r *Rule) (lo, hi model.Addr, ok bool) {
		if r.EtherType == 0 {
			return model.Addr{}, maxAddr, true
		}
		return number(r.EtherType), number(r.EtherType), true
	})
	t.vlan = newRangeIndex(rules, func(r *Rule) (lo, hi model.Addr, ok bool) {
		if r.VLAN == 0 {
			return model.Addr{}, maxAddr, true
		}
		return number(r.VLAN), number(r.VLAN), true
	})
	t.src4 = newRangeIndex(rules, func(r *Rule) (lo, hi model.Addr, ok bool) { return spanOf(r.Src, false) })
	t.src6 = newRangeIndex(rules, func(r *Rule) (lo, hi model.Addr, ok bool) { return spanOf(r.Src, true) })
	t.dst4 = newRangeIndex(rules, func(r *Rule) (lo, hi model.Addr, ok bool) { return spanOf(r.Dst, false) })
	t.dst6 = newRangeIndex(rules, func(r *Rule) (lo, hi model.Addr, ok bool) { return spanOf(r.Dst, true) })
	t.srcPort = newRangeIndex(rules, func(r *Rule) (lo, hi model.Addr, ok bool) { return spanPorts(r.SrcPorts) })
	t.dstPort = newRangeIndex(rules, func(r *Rule) (lo, hi model.Addr, ok bool) { return spanPorts(r.DstPorts) })
	for i := range rules {
		t.addRule(&rules[i], 1<<i)
	}
	return t, nil
}

// addRule sets a rule's bit in the tables that are indexed by value.
func (t *ruleTable) addRule(r *Rule, bit uint64) {
	if r.Outer {
		t.outer |= bit
	}
	if r.TCPMask == 0 {
		t.noTCPFlags |= bit
	}
	if !r.icmp() {
		t.noICMP |= bit
	}
	for v := range t.proto {
		if r.Proto == 0 || int(r.Proto) == v {
			t.proto[v] |= bit
		}
		if uint8(v)&r.TCPMask == r.TCPFlags {
			t.flags[v] |= bit
		}
		if !r.ICMPType.Set || int(r.ICMPType.Value) == v {
			t.types[v] |= bit
		}
		if !r.ICMPCode.Set || int(r.ICMPCode.Value) == v {
			t.codes[v] |= bit
		}
	}
	for v := range t.dscp {
		if uint8(v)&r.DSCPMask == r.DSCP {
			t.dscp[v] |= bit
		}
	}
	for port := range t.in {
		if len(r.InPorts) == 0 || slices.Contains(r.InPorts, model.PortID(port)) {
			t.in[port] |= bit
		}
	}
}

// match returns the rule that applies to a packet, or nil.
func (t *ruleTable) match(ev *inswitch.Event) *Rule {
	pkt := ev.Packet
	set := t.in[min(int(ev.In), len(t.in)-1)] & t.dscp[pkt.DSCP&63]
	set &= t.ether.rulesFor(number(pkt.EtherType)) & t.vlan.rulesFor(number(pkt.VLAN))
	if pkt.Outer == pkt.Key {
		set &= t.matchHeader(pkt.Key, pkt)
	} else {
		set &= t.matchHeader(pkt.Key, pkt)&^t.outer | t.matchHeader(pkt.Outer, &tunnel)&t.outer
	}
	if set == 0 {
		return nil
	}
	return &t.rules[bits.TrailingZeros64(set)]
}

// tunnel is the content after the first header of a tunnelled packet: neither
// TCP nor ICMP.
var tunnel inswitch.Packet

// matchHeader returns the rules that match one header and its content.
func (t *ruleTable) matchHeader(key *model.FlowKey, pkt *inswitch.Packet) uint64 {
	set := t.proto[key.Proto] & t.srcPort.rulesFor(number(key.SrcPort)) & t.dstPort.rulesFor(number(key.DstPort))
	if key.V6 {
		set &= t.src6.rulesFor(key.Src) & t.dst6.rulesFor(key.Dst)
	} else {
		set &= t.src4.rulesFor(key.Src) & t.dst4.rulesFor(key.Dst)
	}
	switch key.Proto {
	case model.TCP:
		return set & t.flags[pkt.TCPFlags] & t.noICMP
	case model.ICMP, model.ICMPv6:
		return set & t.noTCPFlags & t.types[pkt.ICMPType] & t.codes[pkt.ICMPCode]
	}
	return set & t.noTCPFlags & t.noICMP
}
