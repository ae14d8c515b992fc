package cm

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/wire/roce"
)

var compareAddr = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

// messages are one of each kind, with every field set.
func messages() []Message {
	ids := CommIDs{0x01020304, 0x05060708}
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	return []Message{
		{1, &REQ{
			LocalCommID: 0x633d317c, ServiceID: ServiceID(1337), LocalCAGUID: 0xb8cef60300d21326, LocalQPN: 0x11b9,
			StartingPSN: 0xe6fb20, Responder: 3, Initiator: 4, RemoteTimeout: 22, LocalTimeout: 21, Transport: 0, Retries: 7,
			RNRRetries: 6, MaxCMRetries: 15, PKey: roce.DefaultPKey, MTU: 1024, AckTimeout: 19, HopLimit: 64,
			Local: a, Remote: b, SourcePort: 0xd079, Source: a, Target: b, Private: [56]byte{1, 2, 3, 55: 9},
		}},
		{2, &REP{
			CommIDs: ids, LocalQPN: 0xabcdef, StartingPSN: 0x123456, Responder: 5, Initiator: 6, TargetAckDelay: 15,
			RNRRetries: 7, LocalCAGUID: 77, Private: [196]byte{1, 195: 2},
		}},
		{3, &RTU{ids}},
		{4, &MRA{ids, 1, 20}},
		{5, &REJ{CommIDs: ids, Message: 1, Reason: ConsumerReject, Private: [148]byte{7, 147: 8}}},
		{6, &DREQ{ids, 0xfedcba}},
		{7, &DREP{ids}},
	}
}

func TestEveryFieldSurvives(t *testing.T) {
	for _, want := range messages() {
		var got Message
		if n, err := got.Parse(want.AppendTo(nil)); n != Size || err != nil {
			t.Fatalf("%v: Parse = %d, %v", want.Attribute(), n, err)
		}
		if diff := cmp.Diff(want, got, compareAddr); diff != "" {
			t.Errorf("%v (-want +got):\n%s", want.Attribute(), diff)
		}
	}
}

func TestRequestsSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := func(name string, n int) uint32 { return rapid.Uint32Range(0, 1<<n-1).Draw(t, name) }
		addr := func(name string) netip.Addr {
			b := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, name)
			return netip.AddrFrom4([4]byte(b))
		}
		if rapid.Bool().Draw(t, "IPv6") {
			addr = func(name string) netip.Addr {
				a := netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, name)))
				if a.Is4In6() {
					return netip.MustParseAddr("fd07::1")
				}
				return a
			}
		}
		want := Message{rapid.Uint64().Draw(t, "transaction"), &REQ{
			LocalCommID: bits("id", 32), ServiceID: rapid.Uint64().Draw(t, "service"), LocalQPN: roce.QPN(bits("qpn", 24)),
			StartingPSN: roce.PSN(bits("psn", 24)), Responder: uint8(bits("responder", 8)), Initiator: uint8(bits("initiator", 8)),
			RemoteTimeout: uint8(bits("remote timeout", 5)), LocalTimeout: uint8(bits("local timeout", 5)),
			Transport: uint8(bits("transport", 2)), Retries: uint8(bits("retries", 3)), RNRRetries: uint8(bits("rnr", 3)),
			MaxCMRetries: uint8(bits("cm retries", 4)), PKey: uint16(bits("pkey", 16)), MTU: 128 << rapid.IntRange(1, 5).Draw(t, "mtu"),
			AckTimeout: uint8(bits("ack", 5)), HopLimit: uint8(bits("hops", 8)), Local: addr("local"), Remote: addr("remote"),
			SourcePort: uint16(bits("port", 16)), Source: addr("source"), Target: addr("target"),
		}}
		var got Message
		if _, err := got.Parse(want.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, compareAddr); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestErrors(t *testing.T) {
	good := messages()[0].AppendTo(nil)
	change := func(at int, v byte) []byte {
		b := append([]byte(nil), good...)
		b[at] = v
		return b
	}
	for name, tc := range map[string]struct {
		in   []byte
		want error
	}{
		"empty":             {nil, ErrSize},
		"short":             {good[:255], ErrSize},
		"long":              {append(good, 0), ErrSize},
		"class":             {change(1, 4), ErrClass},
		"version":           {change(2, 1), ErrClass},
		"method":            {change(3, 0x81), ErrClass},
		"unknown attribute": {change(17, 0x19), ErrAttribute},
	} {
		m := messages()[1]
		if n, err := m.Parse(tc.in); n != 0 || !errors.Is(err, tc.want) || m.Body != nil {
			t.Errorf("%s: Parse = %d, %v, %v; want 0, %v", name, n, err, m, tc.want)
		}
	}
}

func TestPort(t *testing.T) {
	if ServiceID(1337) != 0x01060539 { // as captured from a NIC
		t.Errorf("ServiceID(1337) = %#x; want 0x1060539", ServiceID(1337))
	}
	if p, ok := Port(0x01060539); p != 1337 || !ok {
		t.Errorf("Port = %d, %v; want 1337", p, ok)
	}
	if _, ok := Port(0x01110539); ok { // UDP's port space
		t.Error("a service of another port space has a port")
	}
}

// FuzzMessage: no input panics, and what was parsed is written so that it parses
// the same.
func FuzzMessage(f *testing.F) {
	for _, m := range messages() {
		f.Add(m.AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var m, again Message
		if _, err := m.Parse(in); err != nil {
			return
		}
		if r, ok := m.Body.(*REQ); ok && r.MTU == 0 {
			return // a code without an MTU
		}
		if _, err := again.Parse(m.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, again, compareAddr); diff != "" {
			t.Fatalf("%x (-first +second):\n%s", in, diff)
		}
	})
}
