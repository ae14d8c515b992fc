package rdma

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/roce"
)

var (
	here  = netip.MustParseAddrPort("10.0.0.1:49152")
	there = netip.MustParseAddrPort("10.0.0.2:4791")
)

// bytesMemory is memory that panics on an access out of bounds.
type bytesMemory []byte

func (m bytesMemory) Size() int64 { return int64(len(m)) }

func (m bytesMemory) Write(off uint64, b []byte) error {
	if off > uint64(len(m)) || uint64(len(b)) > uint64(len(m))-off {
		panic(fmt.Sprintf("write of %d bytes at %d of %d", len(b), off, len(m)))
	}
	copy(m[off:], b)
	return nil
}

func (m bytesMemory) FetchAdd(off, delta uint64) (uint64, error) {
	if off%8 != 0 || off+8 > uint64(len(m)) {
		panic(fmt.Sprintf("add at %d of %d", off, len(m)))
	}
	was := binary.LittleEndian.Uint64(m[off:])
	binary.LittleEndian.PutUint64(m[off:], was+delta)
	return was, nil
}

func (m bytesMemory) CompareSwap(off, compare, swap uint64) (uint64, error) {
	if off%8 != 0 || off+8 > uint64(len(m)) {
		panic(fmt.Sprintf("swap at %d of %d", off, len(m)))
	}
	was := binary.LittleEndian.Uint64(m[off:])
	if was == compare {
		binary.LittleEndian.PutUint64(m[off:], swap)
	}
	return was, nil
}

// pair is a connection.
type pair struct {
	res  *Responder
	req  *Requester
	mem  bytesMemory
	reg  Region
	imms []roce.ImmDt
}

func connect(t testing.TB, size, window int, first roce.PSN) *pair {
	t.Helper()
	p := &pair{mem: make(bytesMemory, size)}
	p.res = NewResponder(there, rand.New(rand.NewPCG(1, 2)), func(i roce.ImmDt) { p.imms = append(p.imms, i) })
	p.reg = p.res.Register(p.mem)
	cfg := DefaultRequesterConfig()
	cfg.Window, cfg.Retries = window, 1<<30
	var err error
	if p.req, err = NewRequester(cfg, 0x77); err != nil {
		t.Fatal(err)
	}
	p.reconnect(t, 0, first)
	return p
}

func (p *pair) reconnect(t testing.TB, now model.Time, first roce.PSN) {
	t.Helper()
	qp, err := p.res.Connect(Connection{Path: Path{there, here}, Remote: p.req.Local(), First: first})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.req.Connect(now, Connection{Path: Path{here, there}, Remote: qp, First: first}); err != nil {
		t.Fatal(err)
	}
}

// carry delivers packets and answers without loss.
func (p *pair) carry(now model.Time) {
	for pkt := p.req.Next(now); pkt != nil; pkt = p.req.Next(now) {
		if answer := p.res.Handle(here, pkt); answer != nil {
			p.req.Handle(now, there, bytes.Clone(answer))
		}
	}
}

func TestWritesAndAddsArrive(t *testing.T) {
	p := connect(t, 4096, 64, 0xfffffe) // the PSN wraps
	p.req.Write(p.reg.Addr+1, p.reg.RKey, []byte("hello"))
	p.req.WriteImm(p.reg.Addr+4096-8, p.reg.RKey, []byte("12345678"), 42)
	p.req.FetchAdd(p.reg.Addr+64, p.reg.RKey, 5)
	p.req.FetchAdd(p.reg.Addr+64, p.reg.RKey, 7)
	p.req.Write(p.reg.Addr+2048, p.reg.RKey, bytes.Repeat([]byte{9}, MTU))
	p.carry(0)
	want := make(bytesMemory, 4096)
	copy(want[1:], "hello")
	copy(want[4096-8:], "12345678")
	want[64] = 12
	copy(want[2048:], bytes.Repeat([]byte{9}, MTU))
	if !bytes.Equal(p.mem, want) {
		t.Errorf("memory differs from what was written")
	}
	if st := p.req.Stats(); st.Acked != 5 || st.Packets != 5 || p.req.WindowFree() != 64 {
		t.Errorf("requester %+v, %d free in the window; want 5 acked of 5", st, p.req.WindowFree())
	}
	if st := p.res.Stats(); st.Writes != 3 || st.Adds != 2 || st.Packets != 5 || len(p.imms) != 1 || p.imms[0] != 42 {
		t.Errorf("responder %+v, immediate %v; want 3 writes, 2 adds, [42]", st, p.imms)
	}
}

// TestRefusals changes one field of a valid packet: it is refused, counted by
// its reason, and memory is unchanged.
func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(p *pair, pkt *roce.Packet)
		want   Refusal
		nak    roce.Syndrome // 0: no answer
	}{
		"other key":       {func(_ *pair, k *roce.Packet) { k.RETH.RKey++ }, BadRKey, roce.NakAccess},
		"before":          {func(_ *pair, k *roce.Packet) { k.RETH.VA-- }, OutOfBounds, roce.NakAccess},
		"behind":          {func(p *pair, k *roce.Packet) { k.RETH.VA += p.reg.Length - 7 }, OutOfBounds, roce.NakAccess},
		"far":             {func(_ *pair, k *roce.Packet) { k.RETH.VA = 1<<64 - 4 }, OutOfBounds, roce.NakAccess},
		"length":          {func(_ *pair, k *roce.Packet) { k.RETH.Length = 1 << 31 }, BadLength, roce.NakAccess},
		"too short":       {func(_ *pair, k *roce.Packet) { k.Payload = k.Payload[:4] }, BadLength, roce.NakAccess},
		"too long":        {func(_ *pair, k *roce.Packet) { k.Payload, k.RETH.Length = make([]byte, MTU+4), MTU+4 }, BadLength, roce.NakAccess},
		"unaligned add":   {func(p *pair, k *roce.Packet) { toAdd(p, k); k.Atomic.VA += 4 }, Misaligned, roce.NakAccess},
		"add outside":     {func(p *pair, k *roce.Packet) { toAdd(p, k); k.Atomic.VA += p.reg.Length }, OutOfBounds, roce.NakAccess},
		"add across end":  {func(p *pair, k *roce.Packet) { toAdd(p, k); k.Atomic.VA += p.reg.Length - 4 }, OutOfBounds, roce.NakAccess},
		"add other key":   {func(p *pair, k *roce.Packet) { toAdd(p, k); k.Atomic.RKey ^= 1 }, BadRKey, roce.NakAccess},
		"add and payload": {func(p *pair, k *roce.Packet) { toAdd(p, k); k.Payload = make([]byte, 4) }, BadLength, roce.NakAccess},
		"read":            {func(_ *pair, k *roce.Packet) { k.BTH.Opcode = roce.ReadRequest }, BadOpcode, roce.NakRequest},
		"send":            {func(_ *pair, k *roce.Packet) { k.BTH.Opcode = roce.SendOnly }, BadOpcode, roce.NakRequest},
		"future":          {func(_ *pair, k *roce.Packet) { k.BTH.PSN++ }, PSNGap, roce.NakSequence},
		"past":            {func(_ *pair, k *roce.Packet) { k.BTH.PSN-- }, DuplicatePSN, roce.AckNoCredit},
		"no such queue":   {func(_ *pair, k *roce.Packet) { k.BTH.DestQP ^= 1 }, UnknownQP, 0},
		"version":         {func(_ *pair, k *roce.Packet) { k.BTH.Version = 1 }, BadVersion, 0},
		"partition":       {func(_ *pair, k *roce.Packet) { k.BTH.PKey = 1 }, BadVersion, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := connect(t, 256, 64, 100)
			pkt := roce.Packet{
				BTH:     roce.BTH{Opcode: roce.WriteOnly, PKey: roce.DefaultPKey, DestQP: p.req.conn.Remote, PSN: 100, AckReq: true},
				RETH:    roce.RETH{VA: p.reg.Addr, RKey: p.reg.RKey, Length: 8},
				Payload: bytes.Repeat([]byte{0xee}, 8),
			}
			tc.change(p, &pkt)
			answer := p.res.Handle(here, Path{here, there}.appendPacket(nil, &pkt)[28:])
			st := p.res.Stats()
			if st.Refused[tc.want] != 1 || st.Writes+st.Adds != 0 {
				t.Errorf("stats %+v; want 1 refused as %q and nothing written", st, tc.want)
			}
			if !bytes.Equal(p.mem, make([]byte, 256)) {
				t.Error("memory was written")
			}
			var got roce.Packet
			if tc.nak == 0 {
				if answer != nil {
					t.Errorf("answer %x; want none", answer)
				}
			} else if _, err := got.Parse(answer[:len(answer)-roce.ICRCSize]); err != nil || got.AETH.Syndrome != tc.nak || got.BTH.DestQP != 0x77 {
				t.Errorf("answer %+v, %v; want syndrome %#x to 0x77", got, err, tc.nak)
			}
		})
	}
}

func toAdd(p *pair, k *roce.Packet) {
	k.BTH.Opcode = roce.FetchAdd
	k.Atomic = roce.AtomicETH{VA: p.reg.Addr, RKey: p.reg.RKey, SwapAdd: 1}
	k.Payload = nil
}

func TestBadICRCAndWrongPeer(t *testing.T) {
	p := connect(t, 256, 64, 100)
	p.req.Write(p.reg.Addr, p.reg.RKey, []byte("12345678"))
	pkt := bytes.Clone(p.req.Next(0))
	for i := range pkt {
		bad := bytes.Clone(pkt)
		bad[i] ^= 0x10
		if i == 4 { // congestion bits: switches may change them
			continue
		}
		if answer := p.res.Handle(here, bad); answer != nil {
			t.Fatalf("byte %d changed, answer %x; want none", i, answer)
		}
	}
	if st := p.res.Stats(); st.Refused[BadICRC] != uint64(len(pkt)-1) || st.Writes != 0 {
		t.Errorf("stats %+v; want %d with a bad ICRC, nothing written", st, len(pkt)-1)
	}
	other := netip.MustParseAddrPort("10.0.0.3:49152")
	pkt2 := roce.Packet{BTH: roce.BTH{Opcode: roce.WriteOnly, PKey: roce.DefaultPKey, DestQP: p.req.conn.Remote, PSN: 100}, RETH: roce.RETH{VA: p.reg.Addr, RKey: p.reg.RKey}}
	p.res.Handle(other, Path{other, there}.appendPacket(nil, &pkt2)[28:])
	p.res.Handle(netip.MustParseAddrPort("[::1]:5"), pkt)
	p.res.Handle(here, pkt[:10])
	if st := p.res.Stats(); st.Refused[WrongPeer] != 2 || st.Refused[Truncated] != 1 || st.Writes != 0 {
		t.Errorf("stats %+v; want 2 of a wrong peer, 1 truncated", st)
	}
	if answer := p.res.Handle(here, pkt); answer == nil || p.res.Stats().Writes != 1 {
		t.Error("the undamaged packet is not executed")
	}
}

func TestFailedQueuePairNeedsANewConnection(t *testing.T) {
	p := connect(t, 256, 64, 100)
	p.req.Write(p.reg.Addr+300, p.reg.RKey, []byte("12345678"))
	p.req.Write(p.reg.Addr, p.reg.RKey, []byte("12345678"))
	p.carry(0)
	if st := p.req.Stats(); p.req.Connected() || st.RemoteErrors != 1 || st.Lost != 2 {
		t.Fatalf("up %v, %+v; want down, 1 remote error, 2 lost", p.req.Connected(), st)
	}
	if p.req.Write(p.reg.Addr, p.reg.RKey, []byte("12345678")) || p.req.Stats().WindowFull != 1 {
		t.Error("a write without a connection is accepted")
	}
	p.reconnect(t, 0, 500)
	p.req.Write(p.reg.Addr, p.reg.RKey, []byte("12345678"))
	p.carry(0)
	if st := p.res.Stats(); st.Writes != 1 || p.req.Stats().Acked != 1 {
		t.Errorf("after reconnecting %+v; want 1 write", st)
	}
}

// TestRequesterFailsWithoutResponder: packets to a queue pair of an earlier
// process get no answer, and the requester fails in bounded time.
func TestRequesterFailsWithoutResponder(t *testing.T) {
	p := connect(t, 256, 64, 100)
	p.req.cfg.Retries = 3
	p.res.Disconnect(p.req.conn.Remote)
	p.req.Write(p.reg.Addr, p.reg.RKey, []byte("12345678"))
	var now model.Time
	for range 10 {
		p.carry(now)
		now = now.Add(p.req.cfg.Timeout)
		p.req.Tick(now)
	}
	if st := p.req.Stats(); p.req.Connected() || st.Timeouts != 4 || st.Lost != 0 || st.Packets != 4 {
		t.Errorf("up %v, %+v; want down after 4 timeouts, nothing lost yet", p.req.Connected(), st)
	}
	if st := p.res.Stats(); st.Refused[UnknownQP] != 4 {
		t.Errorf("responder %+v; want 4 packets to an unknown queue pair", st)
	}
}

// TestEveryOperationOnce checks the guarantee of the connection on a path that
// drops, duplicates and reorders in both directions: memory ends up as if each
// operation had been executed once, in order, writes of several packets included,
// and no more atomic operations were unanswered than the responder allows. Connections end
// at any time and are continued.
func TestEveryOperationOnce(t *testing.T) {
	const size, mtu = 2048, 256
	rapid.Check(t, func(t *rapid.T) {
		p := &pair{mem: make(bytesMemory, size)}
		p.res = NewResponder(there, rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed"))), nil)
		p.reg = p.res.Register(p.mem)
		cfg := DefaultRequesterConfig()
		cfg.Window, cfg.Retries = 1<<rapid.IntRange(0, 6).Draw(t, "window"), 1<<30
		p.req, _ = NewRequester(cfg, 9)
		c := Connection{
			Path: Path{there, here}, Remote: 9, First: roce.PSN(rapid.Uint32Range(0, 1<<24-1).Draw(t, "psn")), MTU: mtu,
			Atomics: rapid.IntRange(0, 3).Draw(t, "atomics"), AnyIdentification: rapid.Bool().Draw(t, "any identification"),
		}
		messages := 0
		c.Receive = func(m []byte) {
			if string(m) != fmt.Sprint("message ", messages) {
				t.Fatalf("received %q; want message %d", m, messages)
			}
			messages++
		}
		qp, err := p.res.Connect(c)
		if err != nil {
			t.Fatal(err)
		}
		c.Path, c.Remote = Path{here, there}, qp
		if err := p.req.Connect(0, c); err != nil {
			t.Fatal(err)
		}
		want := make(bytesMemory, size)
		var now model.Time
		var delayed, answers [][]byte
		toResponder := func(pkt []byte) {
			if a := p.res.Handle(here, pkt); a != nil {
				answers = append(answers, bytes.Clone(a))
			}
		}
		ops, sends := rapid.IntRange(1, 150).Draw(t, "ops"), 0
		lossy := true
		for done := 0; done < ops || p.req.count > 0; {
			if lossy && rapid.IntRange(0, 7).Draw(t, "end") == 0 {
				if rapid.Bool().Draw(t, "the requester first") {
					p.req.Pause()
				}
				paused, ok := p.res.Pause(c.Remote)
				if !ok {
					t.Fatal("the queue pair failed")
				}
				p.req.Pause()
				back := c
				back.Path, back.Remote = Path{there, here}, 9
				if c.Remote, err = p.res.Resume(paused, back); err != nil {
					t.Fatal(err)
				}
				if c.First = paused.Expected(); rapid.Bool().Draw(t, "too far") {
					wrong := c
					wrong.First = p.req.first.Add(p.req.count + 1)
					if err := p.req.Resume(now, wrong); err == nil {
						t.Fatal("a connection that skips packets is taken for the same")
					}
				}
				if err := p.req.Resume(now, c); err != nil {
					t.Fatal(err)
				}
			}
			for done < ops && p.req.WindowFree() > 0 && rapid.IntRange(0, 3).Draw(t, "more") > 0 {
				at := uint64(rapid.IntRange(0, 7).Draw(t, "at")) * 8
				switch rapid.IntRange(0, 5).Draw(t, "kind") {
				case 0:
					word := binary.LittleEndian.Uint64(want[at:])
					compare := rapid.SampledFrom([]uint64{word, word + 1}).Draw(t, "compare")
					p.req.CompareSwap(p.reg.Addr+at, p.reg.RKey, compare, compare^1)
					want.CompareSwap(at, compare, compare^1)
				case 1, 2:
					p.req.FetchAdd(p.reg.Addr+at, p.reg.RKey, uint64(done+1))
					want.FetchAdd(at, uint64(done+1))
				case 3:
					p.req.Send([]byte(fmt.Sprint("message ", sends)))
					sends++
				default:
					most := min(cfg.Window, p.req.WindowFree(), 5) * mtu
					data := bytes.Repeat([]byte{byte(done)}, rapid.OneOf(rapid.IntRange(0, 8), rapid.IntRange(0, most)).Draw(t, "size"))
					if !p.req.Write(p.reg.Addr+at, p.reg.RKey, data) {
						t.Fatalf("write of %d bytes with %d packets free", len(data), p.req.WindowFree())
					}
					want.Write(at, data)
				}
				done++
			}
			for pkt := p.req.Next(now); pkt != nil; pkt = p.req.Next(now) {
				if unanswered := atomicsIn(p.req); c.Atomics > 0 && unanswered > c.Atomics {
					t.Fatalf("%d atomic operations are unanswered; want at most %d", unanswered, c.Atomics)
				}
				fate := 9
				if lossy {
					fate = rapid.IntRange(0, 9).Draw(t, "fate")
				}
				switch fate {
				case 0:
				case 1:
					delayed = append(delayed, bytes.Clone(pkt))
				case 2:
					toResponder(pkt)
					toResponder(pkt)
				default:
					toResponder(pkt)
				}
			}
			for _, d := range delayed {
				toResponder(d)
			}
			delayed = nil
			for _, a := range answers {
				if !lossy || rapid.IntRange(0, 3).Draw(t, "answer") > 0 {
					p.req.Handle(now, there, a)
				}
			}
			answers = nil
			now = now.Add(cfg.Timeout)
			p.req.Tick(now)
			lossy = lossy && now < model.Time(0).Add(300*cfg.Timeout)
		}
		if !bytes.Equal(p.mem, want) {
			t.Fatalf("memory\n%x\nwant\n%x", p.mem, want)
		}
		st, rs := p.req.Stats(), p.res.Stats()
		if st.Acked != uint64(ops) || st.Lost != 0 || rs.Writes+rs.Adds+rs.Swaps+rs.Sends != uint64(ops) || messages != sends {
			t.Fatalf("requester %+v, responder %+v, %d messages; want %d operations, %d messages", st, rs, messages, ops, sends)
		}
		refused := uint64(0)
		for _, n := range rs.Refused {
			refused += n
		}
		if rs.Packets != rs.Writes+rs.Adds+rs.Swaps+rs.Sends+rs.Parts+refused {
			t.Fatalf("counts do not add up: %+v", rs)
		}
	})
}

// atomicsIn counts the atomic operations among the packets sent.
func atomicsIn(q *Requester) (n int) {
	for i := range q.sent {
		if isAtomic(q.opcodeAt(i)) {
			n++
		}
	}
	return n
}

func TestAllocs(t *testing.T) {
	p := connect(t, 256, 64, 0)
	data := []byte("123456789")
	if n := testing.AllocsPerRun(100, func() {
		p.req.Write(p.reg.Addr, p.reg.RKey, data)
		p.req.FetchAdd(p.reg.Addr+64, p.reg.RKey, 1)
		for pkt := p.req.Next(0); pkt != nil; pkt = p.req.Next(0) {
			if answer := p.res.Handle(here, pkt); answer != nil {
				p.req.Handle(0, there, answer)
			}
		}
		p.req.Tick(0)
	}); n != 0 {
		t.Errorf("a round allocates %v times; want 0", n)
	}
	if p.req.count != 0 {
		t.Errorf("%d packets wait for acknowledgement; want 0", p.req.count)
	}
}

func BenchmarkWrite(b *testing.B) {
	p := connect(b, 1<<20, 8192, 0)
	data := []byte("12345678")
	for b.Loop() {
		for i := range 1024 {
			p.req.Write(p.reg.Addr+uint64(i)*8, p.reg.RKey, data)
		}
		p.carry(model.Time(time.Second))
	}
	b.ReportMetric(float64(b.N)*1024/1e6/b.Elapsed().Seconds(), "Mwrite/s")
}
