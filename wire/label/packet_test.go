package label

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
)

// spare returns a copy of b with space for the given growth.
func spare(b []byte, growth int) []byte {
	return append(make([]byte, 0, len(b)+growth), b...)
}

// slowSum is RFC 1071 word by word, so that these tests do not rest on
// wire/checksum.
func slowSum(b []byte) uint16 {
	sum := 0
	for i := 0; i < len(b); i += 2 {
		sum += int(b[i])<<8 | int(b[i+1])
	}
	for sum > 0xffff {
		sum -= 0xffff
	}
	return ^uint16(sum)
}

// seal4 makes the header checksum of an IPv4 packet right.
func seal4(b []byte) []byte {
	h := b[:int(b[0]&15)*4]
	h[10], h[11] = 0, 0
	binary.BigEndian.PutUint16(h[10:], slowSum(h))
	return b
}

// ip4 and ip6 build packets around a payload.
func ip4(proto byte, fragment uint16, options, payload []byte) []byte {
	b := []byte{0x45, 0x08, 0, 0, 0x12, 0x34, 0, 0, 64, proto, 0, 0, 10, 0, 0, 2, 10, 0, 1, 2}
	b = append(b, options...)
	b[0] += byte(len(options) / 4)
	b = append(b, payload...)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[6:], fragment)
	return seal4(b)
}

func ip6(next byte, payload []byte) []byte {
	b := make([]byte, 40, 40+len(payload))
	copy(b, []byte{0x60, 1, 2, 3, 0, 0, next, 64, 0xfd, 0})
	b[23], b[39] = 1, 2
	binary.BigEndian.PutUint16(b[4:], uint16(len(payload)))
	return append(b, payload...)
}

// routed is the packet one hop later: TTL or hop limit one less.
func routed(b []byte) []byte {
	if b[0]>>4 == 6 {
		b[7]--
		return b
	}
	b[8]--
	return seal4(b)
}

// rebuilt is the slow, obvious reference of Push: the labelled packet written from
// scratch.
func rebuilt(orig []byte, items []Item, maxHop byte, specific bool) []byte {
	h, length, protoAt := 40, 40+int(binary.BigEndian.Uint16(orig[4:])), 6
	if orig[0]>>4 == 4 {
		h, length, protoAt = int(orig[0]&15)*4, int(binary.BigEndian.Uint16(orig[2:])), 9
	}
	num := byte(len(items))
	if specific {
		num += maxHop
	}
	out := append([]byte{}, orig[:h]...)
	out[protoAt] = 253
	out = append(out, orig[protoAt], num, maxHop, 1)
	for i := len(items) - 1; i >= 0; i-- {
		out = items[i].AppendTo(out)
	}
	out = append(out, orig[h:]...)
	length += 4 + 32*len(items)
	if orig[0]>>4 == 6 {
		binary.BigEndian.PutUint16(out[4:], uint16(length-40))
		return out
	}
	binary.BigEndian.PutUint16(out[2:], uint16(length))
	return seal4(out)
}

var (
	tcpBytes  = append([]byte{0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 1, 0, 0xab, 0xcd, 0, 0}, "GET /"...)
	roceBytes = append([]byte{0xc0, 0, 0x12, 0xb7, 0, 32, 0, 0, 0x0a, 0x40, 0xff, 0xff, 0, 0, 0, 0x12, 0, 0, 0, 7}, "rdma"...)
)

func TestPushByHand(t *testing.T) {
	in := []byte{
		0x45, 0x00, 0x00, 0x1d, 0x00, 0x01, 0x40, 0x00, 0x40, 0x11, 0x66, 0xcd,
		0x0a, 0x00, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0x01,
		0x03, 0xe8, 0x07, 0xd0, 0x00, 0x09, 0x00, 0x00, 0x78,
	}
	seal4(in)
	want := append([]byte{
		0x45, 0x00, 0x00, 0x41, 0x00, 0x01, 0x40, 0x00, 0x40, 0xfd, 0x00, 0x00,
		0x0a, 0x00, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0x01,
		0x11, 0x01, 0x05, 0x01,
	}, wireItem...)
	want = seal4(append(want, in[20:]...))
	got, err := Push(spare(in, FirstGrowth), &item, Params{})
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("Push(%x) = %x, %v; want %x", in, got, err, want)
	}
}

// TestRejectedPacketIsUnchanged also checks that nothing after the packet was
// written.
func TestRejectedPacketIsUnchanged(t *testing.T) {
	good := ip4(17, 0, nil, roceBytes)
	labelled := rebuilt(good, []Item{item, item}, 2, false)
	edit := func(b []byte, at int, v ...byte) []byte {
		b = append([]byte{}, b...)
		copy(b[at:], v)
		return b
	}
	big4 := ip4(17, 0, nil, make([]byte, 65535-20-35))
	big6 := ip6(17, make([]byte, 65535-35))
	for name, tc := range map[string]struct {
		in          []byte
		space       int
		how         Params
		push, strip error
	}{
		"nothing":                      {in: nil, space: 99, push: ErrNotIP, strip: ErrNotIP},
		"version 5":                    {in: edit(good, 0, 0x55), space: 99, push: ErrNotIP, strip: ErrNotIP},
		"header of 16 bytes":           {in: edit(good, 0, 0x44), space: 99, push: ErrLength, strip: ErrLength},
		"half a header":                {in: good[:19], space: 99, push: ErrLength, strip: ErrLength},
		"options cut off":              {in: edit(good, 0, 0x4f), space: 99, push: ErrLength, strip: ErrLength},
		"half an IPv6 header":          {in: ip6(6, nil)[:39], space: 99, push: ErrLength, strip: ErrLength},
		"cut IPv4":                     {in: good[:len(good)-1], space: 99, push: ErrLength, strip: ErrLength},
		"cut IPv6":                     {in: ip6(6, tcpBytes)[:50], space: 99, push: ErrLength, strip: ErrLength},
		"length below the header":      {in: seal4(edit(good, 2, 0, 19)), space: 99, push: ErrLength, strip: ErrLength},
		"jumbogram":                    {in: ip6(0, nil), space: 99, push: ErrLength, strip: ErrLength},
		"wrong checksum":               {in: edit(good, 10, 0x12), space: 99, push: ErrChecksum, strip: ErrChecksum},
		"no capacity":                  {in: good, space: FirstGrowth - 1, push: ErrCapacity},
		"no capacity for the next":     {in: rebuilt(good, []Item{item}, 2, false), space: ItemSize - 1, push: ErrCapacity, strip: nil},
		"MTU":                          {in: good, space: 99, how: Params{MTU: len(good) + FirstGrowth - 1}, push: ErrTooLong},
		"longest IPv4":                 {in: big4, space: 99, push: ErrTooLong},
		"MTU beyond what IP can state": {in: big4, space: 99, how: Params{MTU: 1 << 20}, push: ErrTooLong},
		"longest IPv6":                 {in: big6, space: 99, push: ErrTooLong},
		"all labels there":             {in: labelled, space: 99, push: ErrFull},
		"all specific labels there":    {in: rebuilt(good, []Item{item, item}, 2, true), space: 99, push: ErrFull},
		"MaxHop beyond the limit":      {in: good, space: 99, how: Params{MaxHop: MaxMaxHop + 1}, push: ErrBlock},
		"count beyond the packet":      {in: edit(labelled, 21, 5, 5), space: 99, push: ErrBlock, strip: ErrBlock},
		"INT_num over the limit":       {in: edit(labelled, 21, 5), space: 99, push: ErrBlock, strip: ErrBlock},
		"no labels stated":             {in: edit(labelled, 21, 0), space: 99, push: ErrBlock, strip: ErrBlock},
		"block inside the padding":     {in: append(ip4(253, 0, nil, []byte{17, 1}), append([]byte{5, 1}, wireItem...)...), space: 99, push: ErrBlock, strip: ErrBlock},
		"another user of protocol 253": {in: ip4(253, 0, nil, roceBytes), space: 99, push: ErrBlock, strip: ErrBlock},
	} {
		t.Run(name, func(t *testing.T) {
			for call, do := range map[string]func([]byte) ([]byte, error){
				"Push":  func(b []byte) ([]byte, error) { return Push(b, &item, tc.how) },
				"Strip": Strip,
			} {
				want := tc.push
				if call == "Strip" {
					if want = tc.strip; want == nil {
						continue // nothing wrong with it for Strip
					}
				}
				b := spare(tc.in, tc.space)
				before := append([]byte{}, b[:cap(b)]...)
				got, err := do(b)
				if err != want {
					t.Errorf("%s = %v; want %v", call, err, want)
				}
				if !bytes.Equal(got, tc.in) || !bytes.Equal(b[:cap(b)], before) {
					t.Errorf("%s changed the packet it rejected: %x; want %x", call, got, tc.in)
				}
			}
		})
	}
}

// TestLimitsAreReachable is the other side of the rejections: one byte less
// would have fitted.
func TestLimitsAreReachable(t *testing.T) {
	for name, in := range map[string][]byte{
		"IPv4": ip4(17, 0, nil, make([]byte, 65535-20-36)),
		"IPv6": ip6(17, make([]byte, 65535-36)),
		"MTU":  ip4(17, 0, nil, make([]byte, 1500-20-36)),
	} {
		how := Params{}
		if name == "MTU" {
			how.MTU = 1500
		}
		pkt, err := Push(spare(in, FirstGrowth), &item, how)
		if err != nil {
			t.Errorf("%s: Push of a label that just fits: %v", name, err)
		}
		if got, err := Strip(pkt); err != nil || !bytes.Equal(got, in) {
			t.Errorf("%s: Strip does not restore the packet: %v", name, err)
		}
	}
}

// TestFirstLabelRules: a switch with other Params follows the packet.
func TestFirstLabelRules(t *testing.T) {
	pkt, err := Push(spare(ip6(6, tcpBytes), 200), &item, Params{MaxHop: 3, Specific: true})
	if err != nil {
		t.Fatal(err)
	}
	if pkt, err = Push(pkt, &item, Params{MaxHop: 1}); err != nil {
		t.Fatal(err)
	}
	if k, err := Inspect(pkt); err != nil || k.Option != (Option{6, 5, 3}) {
		t.Errorf("Inspect = %+v, %v; want INT_num 5 of MaxHop 3", k.Option, err)
	}
}

// TestChecksumFFFF: a checksum of 0xffff is right but could not be restored.
func TestChecksumFFFF(t *testing.T) {
	in := ip4(17, 0, nil, roceBytes)
	in[4], in[5] = 0, 0
	seal4(in)
	copy(in[4:], in[10:12]) // now the rest sums to zero
	if seal4(in); in[10] != 0 || in[11] != 0 {
		t.Fatalf("header %x should have checksum 0", in[:20])
	}
	pkt, err := Push(spare(in, FirstGrowth), &item, Params{})
	if err != nil {
		t.Fatalf("Push with checksum 0x0000: %v", err)
	}
	if got, err := Strip(pkt); err != nil || !bytes.Equal(got, in) {
		t.Errorf("Strip = %x, %v; want %x", got, err, in)
	}
	in[10], in[11] = 0xff, 0xff
	if _, err := Push(spare(in, FirstGrowth), &item, Params{}); err != ErrChecksum {
		t.Errorf("Push with checksum 0xffff: %v; want ErrChecksum", err)
	}
}

func TestUnlabelled(t *testing.T) {
	in := ip4(6, 0, nil, tcpBytes)
	if k, err := Inspect(in); err != nil || k.Len() != 0 {
		t.Errorf("Inspect = %d labels, %v; want none", k.Len(), err)
	}
	if got, err := Strip(append([]byte{}, in...)); err != nil || !bytes.Equal(got, in) {
		t.Errorf("Strip = %x, %v; want %x", got, err, in)
	}
}

// FuzzPacket feeds arbitrary bytes to Push and Strip. They must not panic, must
// leave what they reject, and must undo each other.
func FuzzPacket(f *testing.F) {
	f.Add(ip4(17, 0, []byte{1, 1, 1, 0}, roceBytes))
	f.Add(ip6(6, tcpBytes))
	f.Add(rebuilt(ip4(6, 0, nil, tcpBytes), []Item{item}, 5, false))
	f.Add(rebuilt(ip6(6, tcpBytes), []Item{item, item}, 5, true))
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 0 && in[0]>>4 == 4 && len(in) >= int(in[0]&15)*4 && in[0]&15 >= 5 && (in[10] != 0xff || in[11] != 0xff) {
			seal4(in) // or hardly any input would get past the checksum
		}
		stripped, err := Strip(append([]byte{}, in...))
		if err != nil && !bytes.Equal(stripped, in) {
			t.Fatalf("Strip rejects %x and makes it %x", in, stripped)
		}
		before, err := Inspect(in)
		if err != nil {
			return
		}
		pushed, err := Push(spare(in, FirstGrowth), &item, Params{})
		if err != nil {
			if !bytes.Equal(pushed, in) {
				t.Fatalf("Push rejects %x and makes it %x", in, pushed)
			}
			return
		}
		after, err := Inspect(pushed)
		if err != nil || after.Len() != before.Len()+1 || after.Item(0) != item {
			t.Fatalf("Push(%x) = %x: %d labels, %v; want %d", in, pushed, after.Len(), err, before.Len()+1)
		}
		if got, err := Strip(pushed); err != nil || !bytes.Equal(got, stripped) {
			t.Fatalf("Strip after Push = %x, %v; want %x", got, err, stripped)
		}
	})
}

func TestPacketAllocs(t *testing.T) {
	in := ip4(17, 0, nil, roceBytes)
	buf := spare(in, FirstGrowth)
	if n := testing.AllocsPerRun(100, func() {
		pkt, _ := Push(buf, &item, Params{})
		_, _ = Inspect(pkt)
		buf, _ = Strip(pkt)
	}); n != 0 || !bytes.Equal(buf, in) {
		t.Errorf("Push, Inspect and Strip allocate %v times and leave %x; want 0 and %x", n, buf, in)
	}
}

func BenchmarkPush(b *testing.B) {
	benchSizes(b, func(plain, _ []byte) func() {
		pkt := spare(plain, FirstGrowth)
		return func() {
			copy(pkt, plain[:20]) // the header is all that Push needs intact
			if _, err := Push(pkt, &item, Params{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkStrip(b *testing.B) {
	benchSizes(b, func(_, labelled []byte) func() {
		pkt := spare(labelled, 0)
		return func() {
			copy(pkt, labelled[:20+FirstGrowth])
			if _, err := Strip(pkt); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// benchSizes times what prepare returns for packets of typical lengths.
func benchSizes(b *testing.B, prepare func(plain, labelled []byte) func()) {
	for _, size := range []int{64, 1024, 1464} {
		plain := ip4(17, 0, nil, make([]byte, size-20))
		do := prepare(plain, rebuilt(plain, []Item{item}, 5, false))
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			for b.Loop() {
				do()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mpkt/s")
		})
	}
}

func BenchmarkInspect(b *testing.B) {
	pkt := rebuilt(ip4(17, 0, nil, make([]byte, 1000)), []Item{item, item, item}, 5, false)
	for b.Loop() {
		_, _ = Inspect(pkt)
	}
}
