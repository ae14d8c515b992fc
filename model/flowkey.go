package model

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"
)

// Addr is an IPv4 or IPv6 address in two words, IPv4 in the mapped form
// ::ffff:a.b.c.d. Unlike netip.Addr it holds no pointer: keys made of it are
// copied, compared and hashed as plain memory.
type Addr struct{ Hi, Lo uint64 }

// mapped marks an IPv4 address in the low word.
const mapped = 0x0000_ffff_0000_0000

// Addr4 makes an Addr of an IPv4 address in host order.
func Addr4(v uint32) Addr { return Addr{Lo: mapped | uint64(v)} }

// AddrOf converts a netip.Addr; a zone is dropped.
func AddrOf(a netip.Addr) Addr {
	b := a.As16()
	return Addr{binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])}
}

// Compare orders addresses as numbers.
func (a Addr) Compare(b Addr) int {
	if a.Hi != b.Hi {
		return cmp.Compare(a.Hi, b.Hi)
	}
	return cmp.Compare(a.Lo, b.Lo)
}

// Is4 reports whether a is an IPv4 address in mapped form.
func (a Addr) Is4() bool { return a.Hi == 0 && a.Lo>>32 == 0xffff }

// V4 returns the low 32 bits: an IPv4 address in host order.
func (a Addr) V4() uint32 { return uint32(a.Lo) }

// Netip converts to the standard library's form, IPv4 unmapped.
func (a Addr) Netip() netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], a.Hi)
	binary.BigEndian.PutUint64(b[8:], a.Lo)
	return netip.AddrFrom16(b).Unmap()
}

// String prints the usual form of the address.
func (a Addr) String() string { return a.Netip().String() }

// Proto is an IP protocol number.
type Proto uint8

// Protocols that Weft parses or sends.
const (
	ICMP   Proto = 1
	IPIP   Proto = 4
	TCP    Proto = 6
	UDP    Proto = 17
	IPv6   Proto = 41
	GRE    Proto = 47
	ICMPv6 Proto = 58
)

var protoNames = map[Proto]string{
	ICMP: "icmp", IPIP: "ipip", TCP: "tcp", UDP: "udp",
	IPv6: "ipv6", GRE: "gre", ICMPv6: "icmpv6",
}

// String prints the protocol's name, or its number where it has none here.
func (p Proto) String() string {
	if n, ok := protoNames[p]; ok {
		return n
	}
	return strconv.Itoa(int(p))
}

// ParseProto reads a name or a number.
func ParseProto(s string) (Proto, error) {
	for p, n := range protoNames {
		if strings.EqualFold(n, s) {
			return p, nil
		}
	}
	v, err := strconv.ParseUint(s, 10, 8)
	if err != nil {
		return 0, fmt.Errorf("protocol %q, want tcp, udp, icmp, … or a number from 0 to 255", s)
	}
	return Proto(v), nil
}

// FlowKey names a flow by its 5-tuple. It is comparable, holds no pointer, and
// hashes without allocation. The zero key names no flow.
//
// Two keys are equal exactly when their canonical bytes are: IPv4 addresses
// have the mapped form and V6 distinguishes the families, because an IPv6 packet
// may carry mapped addresses too.
type FlowKey struct {
	Src, Dst         Addr
	SrcPort, DstPort uint16
	Proto            Proto
	V6               bool
}

// Lengths of the canonical forms: addresses, ports, protocol, in network
// order. FlowRadar's 13-byte key is the IPv4 form.
const (
	KeyLen4   = 13
	KeyLen6   = 37
	MaxKeyLen = KeyLen6
)

// ErrKeyLen is returned for canonical bytes that are neither 13 nor 37 long.
var ErrKeyLen = errors.New("flow key is neither 13 nor 37 bytes")

// NewFlowKey makes a key of standard addresses. Mixed families make an IPv6
// key.
func NewFlowKey(src, dst netip.AddrPort, proto Proto) FlowKey {
	return FlowKey{
		Src: AddrOf(src.Addr()), Dst: AddrOf(dst.Addr()),
		SrcPort: src.Port(), DstPort: dst.Port(), Proto: proto,
		V6: !src.Addr().Is4() || !dst.Addr().Is4(),
	}
}

// IsZero reports whether k is the zero key, which names no flow.
func (k *FlowKey) IsZero() bool { return k.Equal(&FlowKey{}) }

// Equal reports whether two keys are the same, as == does, for code that runs
// per packet: for == the compiler calls a comparison of memory, which takes some
// 80 instructions instead of 20.
func (k *FlowKey) Equal(o *FlowKey) bool {
	return k.Src.Lo == o.Src.Lo && k.Dst.Lo == o.Dst.Lo && k.SrcPort == o.SrcPort && k.DstPort == o.DstPort &&
		k.Src.Hi == o.Src.Hi && k.Dst.Hi == o.Dst.Hi && k.Proto == o.Proto && k.V6 == o.V6
}

// Len is the length of the canonical form.
func (k FlowKey) Len() int {
	if k.V6 {
		return KeyLen6
	}
	return KeyLen4
}

// AppendTo appends the canonical form.
func (k FlowKey) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	if k.V6 {
		b = be.AppendUint64(b, k.Src.Hi)
		b = be.AppendUint64(b, k.Src.Lo)
		b = be.AppendUint64(b, k.Dst.Hi)
		b = be.AppendUint64(b, k.Dst.Lo)
	} else {
		b = be.AppendUint32(b, k.Src.V4())
		b = be.AppendUint32(b, k.Dst.V4())
	}
	b = be.AppendUint16(b, k.SrcPort)
	b = be.AppendUint16(b, k.DstPort)
	return append(b, byte(k.Proto))
}

// Parse reads a canonical form: all of b, whose length determines the family.
func (k *FlowKey) Parse(b []byte) error {
	be := binary.BigEndian
	*k = FlowKey{}
	switch len(b) {
	case KeyLen4:
		k.Src, k.Dst = Addr4(be.Uint32(b)), Addr4(be.Uint32(b[4:]))
		b = b[8:]
	case KeyLen6:
		k.Src = Addr{be.Uint64(b), be.Uint64(b[8:])}
		k.Dst = Addr{be.Uint64(b[16:]), be.Uint64(b[24:])}
		k.V6 = true
		b = b[32:]
	default:
		return ErrKeyLen
	}
	k.SrcPort, k.DstPort, k.Proto = be.Uint16(b), be.Uint16(b[2:]), Proto(b[4])
	return nil
}

// Reverse returns the key of the opposite direction.
func (k FlowKey) Reverse() FlowKey {
	k.Src, k.Dst = k.Dst, k.Src
	k.SrcPort, k.DstPort = k.DstPort, k.SrcPort
	return k
}

// Compare orders keys: IPv4 before IPv6, then by source, destination, ports and
// protocol. It is negative where k comes first.
func (k FlowKey) Compare(o FlowKey) int {
	// Compared one by one, as most keys differ early; cmp.Or would compare all.
	switch {
	case k.V6 != o.V6:
		if o.V6 {
			return -1
		}
		return 1
	case k.Src != o.Src:
		return k.Src.Compare(o.Src)
	case k.Dst != o.Dst:
		return k.Dst.Compare(o.Dst)
	case k.SrcPort != o.SrcPort:
		return cmp.Compare(k.SrcPort, o.SrcPort)
	case k.DstPort != o.DstPort:
		return cmp.Compare(k.DstPort, o.DstPort)
	}
	return cmp.Compare(k.Proto, o.Proto)
}

// Odd constants of SHA-512's initial state: nothing-up-my-sleeve numbers.
const (
	mix0 = 0x6a09e667f3bcc909
	mix1 = 0xbb67ae8584caa73b
	mix2 = 0x3c6ef372fe94f82b
)

// Hash mixes the key with a seed. Each seed gives an independent function, the
// same on every machine, so that switches with different seeds spread flows
// differently and a run replays. It does not withstand an adversary who knows
// the seed.
func (k *FlowKey) Hash(seed uint64) uint64 {
	tail := uint64(k.SrcPort)<<32 | uint64(k.DstPort)<<16 | uint64(k.Proto)<<8
	h := seed ^ mix2
	if k.V6 {
		tail |= 1
		h = fold(h^k.Src.Hi, k.Dst.Hi^mix0)
	}
	h = fold(h^k.Src.Lo, k.Dst.Lo^mix1)
	h = fold(h^tail, mix0^seed)
	// One multiplication leaves the choices of two seeds alike for flows that
	// differ in a port alone (TestHashSeedsAreIndependent); a second does not.
	h ^= h >> 32
	h *= mix1
	return h ^ h>>29
}

// fold multiplies to 128 bits and folds the halves: every input bit reaches
// every output bit in one instruction pair.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// String prints "tcp 10.0.0.2:40000 > 10.0.1.2:80".
func (k FlowKey) String() string {
	if k.IsZero() {
		return "-"
	}
	return k.Proto.String() + " " + k.endpoint(k.Src, k.SrcPort) + " > " + k.endpoint(k.Dst, k.DstPort)
}

func (k FlowKey) endpoint(a Addr, port uint16) string {
	ip := a.Netip()
	if k.V6 && ip.Is4() {
		ip = netip.AddrFrom16(ip.As16()) // keep the mapped form visible
	}
	return netip.AddrPortFrom(ip, port).String()
}

// MarshalText writes String's form.
func (k FlowKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what ParseFlowKey reads.
func (k *FlowKey) UnmarshalText(b []byte) (err error) {
	*k, err = ParseFlowKey(string(b))
	return err
}

// ParseFlowKey reads String's form.
func ParseFlowKey(s string) (FlowKey, error) {
	if s == "-" {
		return FlowKey{}, nil
	}
	bad := func() (FlowKey, error) {
		return FlowKey{}, fmt.Errorf("flow %q, want a form such as: tcp 10.0.0.2:40000 > 10.0.1.2:80", s)
	}
	f := strings.Fields(s)
	if len(f) != 4 || f[2] != ">" {
		return bad()
	}
	proto, err := ParseProto(f[0])
	if err != nil {
		return FlowKey{}, err
	}
	src, err1 := netip.ParseAddrPort(f[1])
	dst, err2 := netip.ParseAddrPort(f[3])
	if err1 != nil || err2 != nil || src.Addr().Is4() != dst.Addr().Is4() {
		return bad()
	}
	return NewFlowKey(src, dst, proto), nil
}
