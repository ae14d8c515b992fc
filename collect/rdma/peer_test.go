package rdma

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/roce"
)

// What peers do that are not Weft: ports, identifications, RNR, gaps.

// withIdentification is a payload whose ICRC covers an IPv4 header with another
// identification.
func withIdentification(path Path, p *roce.Packet, id uint16) []byte {
	pkt := path.appendPacket(nil, p)
	binary.BigEndian.PutUint16(pkt[4:], id)
	end := len(pkt) - roce.ICRCSize
	pkt, err := roce.AppendICRC(pkt[:end], pkt[:end])
	if err != nil {
		panic(err)
	}
	return pkt[path.headers():]
}

func answerOf(q *Requester, s roce.Syndrome, psn roce.PSN) *roce.Packet {
	return &roce.Packet{
		BTH:  roce.BTH{Opcode: roce.Acknowledge, PKey: roce.DefaultPKey, DestQP: q.Local(), PSN: psn},
		AETH: roce.AETH{Syndrome: s},
	}
}

// TestAnswerFromAnyPort takes answers from another port, and with an identification,
// only where the connection says so.
func TestAnswerFromAnyPort(t *testing.T) {
	for _, anyID := range []bool{false, true} {
		p := connect(t, 256, 64, 100)
		p.req.conn.AnyIdentification = anyID
		p.req.Write(p.reg.Addr, p.reg.RKey, []byte("12345678"))
		p.req.Next(0)
		from := netip.AddrPortFrom(there.Addr(), 0xc123)
		p.req.Handle(0, from, withIdentification(Path{from, here}, answerOf(p.req, roce.AckNoCredit, 100), 0x77aa))
		if st := p.req.Stats(); (st.Acked == 1) != anyID || (st.Unexpected == 0) != anyID {
			t.Errorf("any identification %v: %+v", anyID, st)
		}
		p.req.Handle(0, from, withIdentification(Path{from, here}, answerOf(p.req, roce.AckNoCredit, 100), 0))
		if st := p.req.Stats(); st.Acked != 1 {
			t.Errorf("any identification %v: an answer with 0 gives %+v; want it acknowledged", anyID, st)
		}
		other := netip.MustParseAddrPort("10.0.0.3:4791")
		p.req.Handle(0, other, Path{other, here}.AppendPayload(nil, answerOf(p.req, roce.NakRemote, 100)))
		if !p.req.Connected() {
			t.Error("another host's NAK ended the connection")
		}
	}
}

// TestRequestFromAnyPort executes a request from any port of the peer and answers
// to the port of the connection.
func TestRequestFromAnyPort(t *testing.T) {
	res := NewResponder(there, rand.New(rand.NewPCG(1, 2)), nil)
	mem := make(bytesMemory, 64)
	reg := res.Register(mem)
	listening := netip.AddrPortFrom(here.Addr(), roce.Port)
	qp, err := res.Connect(Connection{Path: Path{Dst: listening}, Remote: 9, First: 5, AnyIdentification: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, port := range []uint16{49152, 50000, 4791} {
		from := netip.AddrPortFrom(here.Addr(), port)
		pkt := roce.Packet{
			BTH:     roce.BTH{Opcode: roce.WriteOnly, PKey: roce.DefaultPKey, DestQP: qp, PSN: roce.PSN(5 + i), AckReq: true},
			RETH:    roce.RETH{VA: reg.Addr, RKey: reg.RKey, Length: 4},
			Payload: []byte{1, 2, 3, byte(i)},
		}
		answer := res.Handle(from, withIdentification(Path{from, there}, &pkt, uint16(1000+i)))
		if answer == nil || res.AnswerTo() != listening || mem[3] != byte(i) {
			t.Fatalf("request from port %d: answer %x to %v, memory %x; want an answer to %v", port, answer, res.AnswerTo(), mem[:4], listening)
		}
		if err := (Path{there, listening}).Check(answer); err != nil {
			t.Errorf("answer: %v", err)
		}
	}
}

// TestNotReady: the requester waits as long as the responder says, sends again, and
// gives up after the last retry.
func TestNotReady(t *testing.T) {
	p := connect(t, 256, 64, 100)
	p.req.cfg.RNRRetries = 3
	p.req.Send([]byte("hello"))
	p.req.Send([]byte("there"))
	var now model.Time
	for range 3 {
		sent := 0
		for p.req.Next(now) != nil {
			sent++
		}
		if sent != 2 {
			t.Fatalf("%d messages sent; want both", sent)
		}
		p.req.Handle(now, there, Path{there, here}.AppendPayload(nil, answerOf(p.req, roce.RNR(12), 100))) // 640 µs
		p.req.Tick(now.Add(639 * time.Microsecond))
		if pkt := p.req.Next(now.Add(639 * time.Microsecond)); pkt != nil {
			t.Fatalf("sent %x before the responder's time", pkt)
		}
		now = now.Add(640 * time.Microsecond)
	}
	p.req.Next(now)
	p.req.Handle(now, there, Path{there, here}.AppendPayload(nil, answerOf(p.req, roce.RNR(12), 100)))
	if st := p.req.Stats(); p.req.Connected() || st.RNRNaks != 4 || st.Lost != 0 || st.GivenUp != 1 || st.Packets != 7 {
		t.Errorf("connected %v, %+v; want given up after 4 NAKs and 7 packets, nothing lost yet", p.req.Connected(), st)
	}
}

// TestGapsAreBounded: a responder that reports the same gap again and again ends
// the connection; one whose gaps move does not.
func TestGapsAreBounded(t *testing.T) {
	p := connect(t, 256, 64, 100)
	p.req.cfg.Retries = 7
	nak := func(psn roce.PSN) {
		for p.req.Next(0) != nil {
		}
		p.req.Handle(0, there, Path{there, here}.AppendPayload(nil, answerOf(p.req, roce.NakSequence, psn)))
	}
	for range 40 {
		p.req.Write(p.reg.Addr, p.reg.RKey, []byte("12345678"))
	}
	for i := range 20 {
		nak(roce.PSN(101 + i))
	}
	if st := p.req.Stats(); !p.req.Connected() || st.Acked != 20 {
		t.Fatalf("connected %v, %+v; want 20 acknowledged", p.req.Connected(), st)
	}
	for range 8 {
		nak(120)
	}
	if st := p.req.Stats(); p.req.Connected() || st.GivenUp != 1 || st.Lost != 0 {
		t.Errorf("connected %v, %+v; want given up, nothing lost yet", p.req.Connected(), st)
	}
	p.reconnect(t, 0, 500)
	if st := p.req.Stats(); st.Lost != 20 {
		t.Errorf("another connection: %+v; want 20 lost", st)
	}
}

// TestOldNaks: a NAK that comes after what it asks for was sent again and acknowledged
// changes nothing, and is nothing unusual.
func TestOldNaks(t *testing.T) {
	p := connect(t, 256, 64, 100)
	for range 3 {
		p.req.Write(p.reg.Addr, p.reg.RKey, []byte("12345678"))
	}
	for p.req.Next(0) != nil {
	}
	before := p.req.Stats()
	before.Acked = 3
	answer := func(s roce.Syndrome, psn roce.PSN) {
		p.req.Handle(0, there, Path{there, here}.AppendPayload(nil, answerOf(p.req, s, psn)))
	}
	answer(roce.Ack(0), 102)
	answer(roce.NakSequence, 101)
	answer(roce.RNR(12), 101)
	if st := p.req.Stats(); st != before || !p.req.Connected() || p.req.Next(0) != nil {
		t.Errorf("%+v; want %+v and nothing to send", st, before)
	}
}

// TestWritesOfSeveralPackets refuses parts that do not make up a message.
func TestWritesOfSeveralPackets(t *testing.T) {
	type part struct {
		op     roce.Opcode
		bytes  int
		length uint32 // of the message, in a first packet
	}
	const first, middle, last = roce.WriteFirst, roce.WriteMiddle, roce.WriteLast
	for name, tc := range map[string]struct {
		parts []part
		want  Refusal // of the last one; refusals for none
	}{
		"three packets":         {[]part{{first, 256, 600}, {middle, 256, 0}, {last, 88, 0}}, refusals},
		"two packets":           {[]part{{first, 256, 257}, {last, 1, 0}}, refusals},
		"immediate":             {[]part{{first, 256, 260}, {roce.WriteLastImm, 4, 0}}, refusals},
		"middle alone":          {[]part{{middle, 256, 0}}, BadOpcode},
		"last alone":            {[]part{{last, 8, 0}}, BadOpcode},
		"two firsts":            {[]part{{first, 256, 600}, {first, 256, 600}}, BadOpcode},
		"another in between":    {[]part{{first, 256, 600}, {roce.WriteOnly, 8, 8}}, BadOpcode},
		"addition in between":   {[]part{{first, 256, 600}, {roce.FetchAdd, 0, 0}}, BadOpcode},
		"swap in between":       {[]part{{first, 256, 600}, {roce.CmpSwap, 0, 0}}, BadOpcode},
		"first is short":        {[]part{{first, 252, 600}}, BadLength},
		"first is all":          {[]part{{first, 256, 256}}, BadLength},
		"middle is short":       {[]part{{first, 256, 900}, {middle, 252, 0}}, BadLength},
		"middle is the rest":    {[]part{{first, 256, 512}, {middle, 256, 0}}, BadLength},
		"last is short":         {[]part{{first, 256, 600}, {middle, 256, 0}, {last, 84, 0}}, BadLength},
		"last is long":          {[]part{{first, 256, 300}, {last, 48, 0}}, BadLength},
		"last is above the MTU": {[]part{{first, 256, 600}, {last, 344, 0}}, BadLength},
		"end is out of bounds":  {[]part{{first, 256, 1025}}, OutOfBounds},
	} {
		t.Run(name, func(t *testing.T) {
			res := NewResponder(there, rand.New(rand.NewPCG(1, 2)), nil)
			mem := make(bytesMemory, 1024)
			reg := res.Register(mem)
			qp, err := res.Connect(Connection{Path: Path{Dst: here}, Remote: 9, MTU: 256})
			if err != nil {
				t.Fatal(err)
			}
			written := 0
			for i, part := range tc.parts {
				pkt := roce.Packet{
					BTH:     roce.BTH{Opcode: part.op, PadCount: uint8(-part.bytes & 3), PKey: roce.DefaultPKey, DestQP: qp, PSN: roce.PSN(i)},
					RETH:    roce.RETH{VA: reg.Addr, RKey: reg.RKey, Length: part.length},
					Atomic:  roce.AtomicETH{VA: reg.Addr, RKey: reg.RKey},
					Payload: bytes.Repeat([]byte{0xee}, (part.bytes+3)&^3),
				}
				res.Handle(here, Path{here, there}.AppendPayload(nil, &pkt))
				if i < len(tc.parts)-1 || tc.want == refusals {
					written += part.bytes
				}
			}
			st := res.Stats()
			for why, n := range st.Refused {
				if want := Refusal(why) == tc.want; want != (n == 1) {
					t.Errorf("%d refused as %q", n, Refusal(why))
				}
			}
			if st.Bytes != uint64(written) || (st.Writes == 1) != (tc.want == refusals) {
				t.Errorf("%+v; want %d bytes written", st, written)
			}
			if n := bytes.Count(mem, []byte{0xee}); n != written {
				t.Errorf("%d bytes in memory; want %d", n, written)
			}
		})
	}
}

// TestDuplicateBeforeAtomic: a write that is sent again after a lost answer to a FETCH_ADD is
// acknowledged up to that, with its result. The kernel's requester takes an acknowledgement
// without one for the end of the operation, and leaves its buffer as it was.
func TestDuplicateBeforeAtomic(t *testing.T) {
	p := connect(t, 256, 64, 100)
	p.req.Write(p.reg.Addr, p.reg.RKey, []byte("12345678"))
	p.req.FetchAdd(p.reg.Addr, p.reg.RKey, 1)
	write := bytes.Clone(p.req.Next(0))
	p.res.Handle(here, write)
	p.res.Handle(here, p.req.Next(0)) // the answer is lost
	var got roce.Packet
	answer := p.res.Handle(here, write)
	if _, err := got.Parse(answer[:len(answer)-roce.ICRCSize]); err != nil {
		t.Fatal(err)
	}
	want := binary.LittleEndian.Uint64([]byte("12345678"))
	if got.BTH.Opcode != roce.AtomicAcknowledge || got.BTH.PSN != 101 || uint64(got.AtomicAck) != want {
		t.Errorf("answer %+v; want the result %#x of number 101", got, want)
	}
	if p.res.Stats().Adds != 1 {
		t.Errorf("%+v; want one addition", p.res.Stats())
	}
}
