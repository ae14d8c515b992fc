package roce

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// packetOf returns an IPv4 packet with a valid ICRC.
func packetOf(t interface{ Fatal(...any) }, payload int, id uint16, flags byte, r *rand.Rand) []byte {
	ip := make([]byte, minSize4+payload)
	for i := range ip {
		ip[i] = byte(r.Uint32())
	}
	ip[0], ip[9] = 0x45, protoUDP
	binary.BigEndian.PutUint16(ip[4:], id)
	ip[6], ip[7] = flags, 0
	ip, err := AppendICRC(ip, ip)
	if err != nil {
		t.Fatal(err)
	}
	return ip
}

// TestAnyIdentification compares with the obvious: try every identification with
// and without DF.
func TestAnyIdentification(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed")))
		payload := rapid.IntRange(0, 4096).Draw(t, "payload")
		id := rapid.Uint16().Draw(t, "identification")
		flags := rapid.SampledFrom([]byte{0, 0x40}).Draw(t, "flags")
		ip := packetOf(t, payload, id, flags, r)
		ip[4], ip[5], ip[6] = 0, 0, 0x40 // as a receiver assumes
		if err := CheckICRCAnyIdentification(ip); err != nil {
			t.Fatalf("identification %#x, flags %#x, %d bytes: %v", id, flags, payload, err)
		}
	})
}

func TestAnyIdentificationFindsDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const packets = 1 << 17
	accepted := 0
	for range packets {
		ip := packetOf(t, 64, uint16(r.Uint32()), 0x40, r)
		ip[4], ip[5] = 0, 0
		binary.LittleEndian.PutUint32(ip[len(ip)-4:], r.Uint32()) // a random CRC
		if CheckICRCAnyIdentification(ip) == nil {
			accepted++
		}
	}
	// One in 2^15 is expected: 4 of these.
	if accepted > 20 {
		t.Errorf("%d of %d damaged packets accepted; want about %d", accepted, packets, packets>>15)
	}
}

func BenchmarkCheckICRCAnyIdentification(b *testing.B) {
	ip := packetOf(b, 1024, 99, 0x40, rand.New(rand.NewPCG(1, 2)))
	ip[4], ip[5] = 0, 0
	for b.Loop() {
		if err := CheckICRCAnyIdentification(ip); err != nil {
			b.Fatal(err)
		}
	}
}
