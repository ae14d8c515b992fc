package sflow

import (
	"bytes"
	"errors"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anySample draws a sample of a kind with random records, as AppendTo writes it.
func anySample(t *rapid.T) (s Sample) {
	u32 := func(name string) uint32 { return rapid.Uint32().Draw(t, name) }
	text := func(name string) []byte {
		return rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, name)
	}
	s.Kind = rapid.SampledFrom([]Kind{Flow, Count, Drop}).Draw(t, "kind")
	s.Seq, s.Source = u32("seq"), Source{u32("class"), u32("index")}
	switch s.Kind {
	case Flow:
		s.Rate, s.Pool, s.Lost = u32("rate"), u32("pool"), u32("lost")
		s.In, s.Out = Interface{u32("in format"), u32("in")}, Interface{u32("out format"), u32("out")}
	case Drop:
		s.Lost, s.In.Value, s.Out.Value, s.Reason = u32("lost"), u32("in"), u32("out"), Reason(u32("reason"))
	}
	has := Records(rapid.Uint16().Draw(t, "records"))
	if s.Kind == Count {
		s.Has = has & (HasPort | HasEthernet | HasName)
		if s.Has.All(HasPort) {
			fill(t, reflect.ValueOf(&s.Port).Elem())
		}
		if s.Has.All(HasEthernet) {
			fill(t, reflect.ValueOf(&s.Ethernet).Elem())
		}
		if s.Has.All(HasName) {
			s.Name = text("name")
		}
		return s
	}
	s.Has = has & (HasPacket | HasSwitched | HasQueue | HasDelay | HasDepth | HasTrap)
	if s.Has.All(HasPacket) {
		s.Packet = Packet{u32("protocol"), u32("length"), u32("stripped"), text("header")}
	}
	if s.Has.All(HasSwitched) {
		fill(t, reflect.ValueOf(&s.Switched).Elem())
	}
	if s.Has.All(HasQueue) {
		s.Queue = u32("queue")
	}
	if s.Has.All(HasDelay) {
		s.Delay = time.Duration(u32("delay"))
	}
	if s.Has.All(HasDepth) {
		s.Depth = u32("depth")
	}
	if s.Has.All(HasTrap) {
		s.Group, s.Trap = text("group"), text("trap")
	}
	return s
}

// fill sets every number of a struct.
func fill(t *rapid.T, v reflect.Value) {
	for i := range v.NumField() {
		n := rapid.Uint64().Draw(t, v.Type().Field(i).Name)
		if v.Field(i).Kind() == reflect.Uint32 {
			n = uint64(uint32(n))
		}
		v.Field(i).SetUint(n)
	}
}

func anyHeader(t *rapid.T) (h Header) {
	if rapid.Bool().Draw(t, "v6") {
		h.Agent = netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "agent"))).Unmap()
	} else {
		h.Agent = netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "agent")))
	}
	h.SubAgent, h.Seq = rapid.Uint32().Draw(t, "sub agent"), rapid.Uint32().Draw(t, "seq")
	h.Uptime = time.Duration(rapid.Uint32().Draw(t, "uptime")) * time.Millisecond
	return h
}

func anyDatagram(t *rapid.T) (h Header, samples []Sample, b []byte) {
	h = anyHeader(t)
	for range rapid.IntRange(0, 6).Draw(t, "samples") {
		samples = append(samples, anySample(t))
	}
	h.Samples = uint32(len(samples))
	b = h.AppendTo(nil)
	for i := range samples {
		b = samples[i].AppendTo(b)
	}
	return h, samples, b
}

// TestRoundTrip: what is written is read, and nothing else.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, samples, b := anyDatagram(t)
		var r Reader
		if err := r.Reset(b); err != nil || r.Header != h {
			t.Fatalf("Reset = %+v, %v; want %+v", r.Header, err, h)
		}
		for i := range samples {
			var got Sample
			if ok, err := r.Next(&got); !ok || err != nil || !same(&got, &samples[i]) {
				t.Fatalf("sample %d = %+v, %t, %v; want %+v", i, got, ok, err, samples[i])
			}
		}
		if ok, err := r.Next(&Sample{}); ok || err != nil {
			t.Fatalf("after the last sample: %t, %v; want none", ok, err)
		}
	})
}

// same compares samples; an empty slice is as good as none.
func same(a, b *Sample) bool {
	for _, pair := range [][2][]byte{{a.Packet.Header, b.Packet.Header}, {a.Group, b.Group}, {a.Trap, b.Trap}, {a.Name, b.Name}} {
		if !bytes.Equal(pair[0], pair[1]) {
			return false
		}
	}
	x, y := *a, *b
	for _, s := range []*Sample{&x, &y} {
		s.Packet.Header, s.Group, s.Trap, s.Name = nil, nil, nil, nil
	}
	return reflect.DeepEqual(x, y)
}

func TestBadLengths(t *testing.T) {
	h := Header{Agent: netip.MustParseAddr("192.0.2.1"), Samples: 1}
	flow := Sample{Kind: Flow, Rate: 256, Has: HasPacket, Packet: Packet{Protocol: HeaderEthernet, Length: 1500, Header: make([]byte, 64)}}
	good := flow.AppendTo(h.AppendTo(nil))
	start := len(h.AppendTo(nil))
	set := func(at int, v byte) []byte {
		b := bytes.Clone(good)
		b[at] = v
		return b
	}
	for name, tc := range map[string]struct {
		b          []byte
		reset, err error
	}{
		"empty":                       {b: nil, reset: ErrShort},
		"version 4":                   {b: set(3, 4), reset: ErrVersion},
		"agent of type 3":             {b: set(7, 3), reset: ErrAddress},
		"header ends":                 {b: good[:start-1], reset: ErrShort},
		"no sample":                   {b: good[:start], err: ErrShort},
		"sample longer than datagram": {b: set(start+4, 1), err: ErrLength},
		"record longer than sample":   {b: set(start+8+44+4, 1), err: ErrLength},
		"header longer than record":   {b: set(start+8+44+8+12, 1), err: ErrLength},
		"more records than there are": {b: set(start+8+43, 2), err: ErrShort},
	} {
		var r Reader
		if err := r.Reset(tc.b); !errors.Is(err, tc.reset) {
			t.Errorf("%s: Reset = %v; want %v", name, err, tc.reset)
			continue
		}
		if tc.reset != nil {
			continue
		}
		if _, err := r.Next(&Sample{}); !errors.Is(err, tc.err) {
			t.Errorf("%s: Next = %v; want %v", name, err, tc.err)
		}
	}
}

// TestSampleAfterBrokenOne: a sample whose records are wrong costs no other.
func TestSampleAfterBrokenOne(t *testing.T) {
	h := Header{Agent: netip.MustParseAddr("192.0.2.1"), Samples: 2}
	b := h.AppendTo(nil)
	broken := Sample{Kind: Flow, Has: HasQueue, Queue: 3}
	good := Sample{Kind: Drop, Reason: NoBufferSpace, Lost: 7}
	b = broken.AppendTo(b)
	b[len(b)-5] = 200 // the record's length
	b = good.AppendTo(b)
	var r Reader
	var s Sample
	if err := r.Reset(b); err != nil {
		t.Fatal(err)
	}
	if ok, err := r.Next(&s); !ok || !errors.Is(err, ErrLength) {
		t.Fatalf("Next = %t, %v; want a sample with %v", ok, err, ErrLength)
	}
	if ok, err := r.Next(&s); !ok || err != nil || s.Reason != NoBufferSpace || s.Lost != 7 {
		t.Fatalf("Next = %t, %v, %+v; want the drop notification", ok, err, s)
	}
}

// TestCompactForm: the forms that most switches send have 24 and 30 bits for sources and
// interfaces.
func TestCompactForm(t *testing.T) {
	b := Header{Agent: netip.MustParseAddr("2001:db8::1"), Samples: 2}.AppendTo(nil)
	word := func(list ...uint32) {
		for _, v := range list {
			b = append(b, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
		}
	}
	word(formatFlow, 32, 9, 5, 256, 2560, 1, 12, 0x80000007, 0)
	word(formatCount, 12, 3, 1<<24|77, 0)
	var r Reader
	if err := r.Reset(b); err != nil {
		t.Fatal(err)
	}
	var s Sample
	want := Sample{Kind: Flow, Seq: 9, Source: Source{0, 5}, Rate: 256, Pool: 2560, Lost: 1, In: Interface{Index, 12}, Out: Interface{Multiple, 7}}
	if _, err := r.Next(&s); err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("Next = %+v, %v; want %+v", s, err, want)
	}
	if _, known := s.Out.Known(); known {
		t.Errorf("%+v is a known interface", s.Out)
	}
	want = Sample{Kind: Count, Seq: 3, Source: Source{1, 77}}
	if _, err := r.Next(&s); err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("Next = %+v, %v; want %+v", s, err, want)
	}
}

// FuzzReader: no input panics, samples are never more than their bytes allow, and
// what is read and written is read as the same.
func FuzzReader(f *testing.F) {
	h := Header{Agent: netip.MustParseAddr("192.0.2.1"), Samples: 2}
	flow := Sample{Kind: Flow, Rate: 256, Has: HasPacket | HasTrap, Packet: Packet{Protocol: HeaderEthernet, Header: make([]byte, 61)}, Trap: []byte("ttl")}
	count := Sample{Kind: Count, Has: HasPort | HasEthernet | HasName, Name: []byte("Ethernet0")}
	f.Add(count.AppendTo(flow.AppendTo(h.AppendTo(nil))))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Reader
		if r.Reset(b) != nil {
			return
		}
		var s, again Sample
		for n := 0; ; n++ {
			ok, err := r.Next(&s)
			if !ok {
				return
			}
			if n > len(b)/8 {
				t.Fatalf("%d samples in %d bytes", n, len(b))
			}
			if err != nil || s.Kind == Other {
				continue
			}
			format, body, _, err := cutTagged(s.AppendTo(nil))
			if err != nil {
				t.Fatal(err)
			}
			s.Ignored = 0
			if err := again.parse(format, body); err != nil || !same(&s, &again) {
				t.Fatalf("%+v is written and read as %+v, %v", s, again, err)
			}
		}
	})
}

func TestReaderAllocatesNothing(t *testing.T) {
	h := Header{Agent: netip.MustParseAddr("192.0.2.1"), Samples: 1}
	flow := Sample{Kind: Flow, Rate: 256, Has: HasPacket, Packet: Packet{Protocol: HeaderEthernet, Header: make([]byte, 128)}}
	b := flow.AppendTo(h.AppendTo(nil))
	var r Reader
	var s Sample
	if n := testing.AllocsPerRun(100, func() {
		if r.Reset(b) != nil {
			t.Fatal("bad datagram")
		}
		for {
			if ok, _ := r.Next(&s); !ok {
				break
			}
		}
	}); n != 0 {
		t.Errorf("a datagram allocates %v times", n)
	}
}
