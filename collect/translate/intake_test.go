package translate

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/inswitch/reporter"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

var peer = netip.MustParseAddrPort("10.0.0.1:40041")

// tally is a Sink that counts reports by the number in their data.
type tally struct {
	runs     int
	got      map[uint32]int
	appended uint64
	verdict  func() dta.Verdict
}

func newTally() *tally { return &tally{got: map[uint32]int{}} }

func (c *tally) Put(_ model.Time, r *dta.Report) dta.Verdict {
	if c.verdict != nil {
		if v := c.verdict(); v != dta.Stored {
			return v
		}
	}
	if r.Primitive == dta.Append {
		c.appended++
	}
	if len(r.Data) == 4 {
		c.got[binary.BigEndian.Uint32(r.Data)]++
	} else {
		c.got[0]++
	}
	return dta.Stored
}

// PutRun accepts every other run, so that both cases are tested.
func (c *tally) PutRun(now model.Time, first *dta.Report, run []byte, count int) bool {
	c.runs++
	if c.verdict != nil || c.runs%2 == 0 {
		return false
	}
	for r := *first; len(run) > 0; {
		n, err := r.Parse(run)
		if err != nil {
			panic(err)
		}
		c.Put(now, &r)
		run = run[n:]
	}
	return true
}

// datagram holds count appends numbered from first, with the numbers as data.
func datagram(id model.NodeID, first dta.Seq, count int) []byte {
	w := dta.NewWriter(id, first)
	w.Begin(make([]byte, dta.HeaderSize+12*count))
	for i := range count {
		rep := dta.Report{Primitive: dta.Append, Retransmit: true, Data: binary.BigEndian.AppendUint32(nil, uint32(first)+uint32(i))}
		if err := w.AddReport(&rep); err != nil {
			panic(err)
		}
	}
	return w.Finish()
}

func acks(t testing.TB, b []byte) (all []dta.Ack) {
	t.Helper()
	for len(b) > 0 {
		var a dta.Ack
		n, err := a.Parse(b)
		if err != nil {
			t.Fatalf("answer %x: %v", b, err)
		}
		all = append(all, a)
		b = b[n:]
	}
	return all
}

func TestIntakeTracksSequenceNumbers(t *testing.T) {
	in, sink := NewIntake(10), newTally()
	take := func(first dta.Seq, count int) []dta.Ack {
		return acks(t, in.HandleDatagram(0, peer, datagram(7, first, count), sink, nil))
	}
	const start = dta.Seq(0xfffffff0)
	take(start, 10)
	got := take(start+13, 2)
	if len(got) != 1 || got[0] != (dta.Ack{Verdict: dta.Gap, Reporter: 7, First: start + 10, Count: 3}) {
		t.Errorf("after a gap of 3 the answer is %+v; want a refusal of %d, 3", got, start+10)
	}
	take(start+11, 1) // sent again
	take(start+11, 1) // and again
	take(start+9, 3)  // 9 and 11 are known, 10 is not
	take(start+14, 4) // 14 is known
	if st := in.Stats(); st.Missing != 3 || st.Late != 2 || st.Duplicate != 4 || st.Stored != 17 || st.Reports != 21 {
		t.Errorf("stats %+v; want 3 missing, 2 late, 4 duplicate, 17 stored of 21", st)
	}
	for n, times := range sink.got {
		if times != 1 {
			t.Errorf("report %d stored %d times; want once", n, times)
		}
	}
}

func TestIntakeDetectsTailLoss(t *testing.T) {
	in, sink := NewIntake(10), newTally()
	in.HandleDatagram(0, peer, datagram(7, 100, 2), sink, nil)
	beacon := dta.Header{Reporter: 7, Seq: 105}.AppendTo(nil)
	got := acks(t, in.HandleDatagram(0, peer, beacon, sink, nil))
	if len(got) != 1 || got[0].First != 102 || got[0].Count != 3 {
		t.Errorf("a beacon of 105 after 101 is answered by %+v; want a refusal of 102, 3", got)
	}
	if again := in.HandleDatagram(0, peer, beacon, sink, nil); len(again) != 0 {
		t.Errorf("the same beacon again is answered by %x; want nothing", again)
	}
}

func TestIntakeRestart(t *testing.T) {
	elsewhere := netip.MustParseAddrPort("10.0.0.1:50000")
	for name, tc := range map[string]struct {
		from   netip.AddrPort
		stored uint64
		stale  uint64
	}{
		"from another port":       {elsewhere, 2 + 4, 0},
		"found by the second one": {peer, 2 + 2, 2},
	} {
		in, sink := NewIntake(10), newTally()
		in.HandleDatagram(0, peer, datagram(7, 1<<20, 2), sink, nil)
		in.HandleDatagram(0, tc.from, datagram(7, 100, 2), sink, nil)
		in.HandleDatagram(0, tc.from, datagram(7, 102, 2), sink, nil)
		if st := in.Stats(); st.Stored != tc.stored || st.Stale != tc.stale || st.Restarts != 1 || st.Missing != 0 {
			t.Errorf("%s: %+v; want %d stored, %d stale, 1 restart", name, st, tc.stored, tc.stale)
		}
	}
	// A single late datagram does not move the window.
	in, sink := NewIntake(10), newTally()
	in.HandleDatagram(0, peer, datagram(7, 1<<20, 2), sink, nil)
	in.HandleDatagram(0, peer, datagram(7, 100, 1), sink, nil)
	in.HandleDatagram(0, peer, datagram(7, 1<<20+2, 2), sink, nil)
	if st := in.Stats(); st.Stale != 1 || st.Restarts != 0 || st.Stored != 4 {
		t.Errorf("after a late datagram %+v; want 1 stale, 4 stored", st)
	}
}

func TestIntakeRefusals(t *testing.T) {
	in, sink := NewIntake(10), newTally()
	verdicts := []dta.Verdict{dta.Stored, dta.RateLimited, dta.RateLimited, dta.Unserved, dta.Stored, dta.RateLimited}
	i := 0
	sink.verdict = func() dta.Verdict { i++; return verdicts[i-1] }
	got := acks(t, in.HandleDatagram(0, peer, datagram(7, 100, len(verdicts)), sink, nil))
	want := []dta.Ack{
		{Verdict: dta.RateLimited, Reporter: 7, First: 101, Count: 2},
		{Verdict: dta.Unserved, Reporter: 7, First: 103, Count: 1},
		{Verdict: dta.RateLimited, Reporter: 7, First: 105, Count: 1},
	}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("answers %+v; want %+v", got, want)
	}
	// What was refused is stored when it comes again; what was stored is not.
	sink.verdict = nil
	in.HandleDatagram(0, peer, datagram(7, 100, 3), sink, nil)
	if st := in.Stats(); st.Duplicate != 1 || st.Late != 2 || st.Refused[dta.RateLimited] != 3 || st.Refused[dta.Unserved] != 1 {
		t.Errorf("stats %+v; want 1 duplicate, 2 late, 3 rate-limited, 1 unserved", st)
	}
}

func TestIntakeMalformedDatagrams(t *testing.T) {
	in, sink := NewIntake(10), newTally()
	whole := datagram(7, 100, 3)
	got := acks(t, in.HandleDatagram(0, peer, whole[:len(whole)-1], sink, nil))
	if len(got) != 1 || got[0] != (dta.Ack{Verdict: dta.Malformed, Reporter: 7, First: 102, Count: 1}) {
		t.Errorf("a cut datagram is answered by %+v; want malformed from 102, 1", got)
	}
	for _, b := range [][]byte{nil, {0xd1}, {0xd2, 1, 2, 3}, {1, 2, 3}, append([]byte{0xd1, 1}, make([]byte, 20)...)} {
		if answer := in.HandleDatagram(0, peer, b, sink, nil); len(answer) != 0 {
			t.Errorf("HandleDatagram(%x) answers %x; want nothing", b, answer)
		}
	}
	if st := in.Stats(); st.Truncated != 1 || st.UnknownFormat != 5 || st.Datagrams != 6 {
		t.Errorf("stats %+v; want 1 truncated, 5 of unknown format of 6", st)
	}
}

func TestIntakeLimitsTrackedReporters(t *testing.T) {
	in, sink := NewIntake(2), newTally()
	for id := range model.NodeID(4) {
		in.HandleDatagram(0, peer, datagram(id, 5, 1), sink, nil)
		in.HandleDatagram(0, peer, datagram(id, 5, 1), sink, nil)
	}
	if st := in.Stats(); st.Reporters != 2 || st.Duplicate != 2 || st.Untracked != 4 || st.Stored != 6 {
		t.Errorf("stats %+v; want 2 reporters, 2 duplicate, 4 untracked, 6 stored", st)
	}
}

func TestIntakePrototype(t *testing.T) {
	in, sink := NewIntake(10), newTally()
	send := func(layout dta.Layout, seq uint8, retransmit bool) []byte {
		p := dta.Prototype{Layout: layout, Seq: seq, Report: dta.Report{
			Primitive: dta.Append, Retransmit: retransmit, List: 1, Data: []byte{0, 0, 1, seq},
		}}
		return in.HandleDatagram(0, peer, p.AppendTo(nil), sink, nil)
	}
	send(dta.Base2, 0, false)
	send(dta.Base2, 0, false) // no numbers: both count
	if sink.got[256] != 2 {
		t.Errorf("short layout stored %d times; want 2", sink.got[256])
	}
	for seq := 250; seq < 300; seq++ { // over the wraparound
		if answer := send(dta.Base3, uint8(seq), true); len(answer) != 0 {
			t.Fatalf("report %d in order is answered by %x", seq, answer)
		}
	}
	var nack dta.PrototypeAck
	if _, err := nack.Parse(send(dta.Base3, 47, true)); err != nil || nack != (dta.PrototypeAck{Seq: 43, Nack: true}) {
		t.Errorf("47 after 43 is answered by %+v, %v; want a refusal after 43", nack, err)
	}
	send(dta.Base3, 44, true) // sent again
	send(dta.Base3, 44, true)
	send(dta.Base3, 47, true)
	if st := in.Stats(); st.Missing != 3 || st.Late != 1 || st.Duplicate != 2 || sink.got[256+44] != 1 || sink.got[256+47] != 1 {
		t.Errorf("stats %+v; want 3 missing, 1 late, 2 duplicate", st)
	}
}

// TestReporterToIntake connects the two ends over a path that drops, duplicates
// and reorders datagrams in both directions: every retransmittable report is
// stored exactly once.
func TestReporterToIntake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := reporter.DefaultConfig(7, dta.Seq(rapid.Uint32().Draw(t, "first")))
		cfg.DatagramBytes = rapid.IntRange(dta.HeaderSize+12, 100).Draw(t, "datagram")
		cfg.MaxResends, cfg.MaxDatagrams, cfg.Backoff, cfg.BeaconInterval = 1000, 64, 0, 1
		in, sink := NewIntake(10), newTally()
		var now model.Time
		if rapid.Bool().Draw(t, "signed") {
			now = testNow
			cfg.Key, cfg.Start = macOf(7), testStart
			cfg.DatagramBytes += dta.SignedOverhead
			in = NewSharedIntake(NewReporters(10), keyed(7))
		}
		rep, err := reporter.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		overload := rapid.IntRange(0, 3).Draw(t, "overload")
		sink.verdict = func() dta.Verdict {
			if overload > 0 && rapid.IntRange(0, 3).Draw(t, "full") < overload {
				return dta.RateLimited
			}
			return dta.Stored
		}
		var late [][]byte
		carry := func(lossy bool) {
			for range rep.ReadyDatagrams() {
				d := append([]byte(nil), rep.Datagram(0)...)
				rep.Release(1)
				fate := 3
				if lossy {
					fate = rapid.IntRange(0, 4).Draw(t, "fate")
				}
				times := 1
				switch fate {
				case 0:
					continue
				case 1:
					late = append(late, d)
					continue
				case 2:
					times = 2
				}
				for range times {
					answer := in.HandleDatagram(now, peer, d, sink, nil)
					if !lossy || rapid.Bool().Draw(t, "answered") {
						rep.HandleAcks(now, answer)
					}
				}
			}
		}
		// The first datagram arrives: before it there is no number to miss.
		n := rapid.IntRange(1, 100).Draw(t, "reports")
		for i := range n {
			now++
			r := dta.Report{Primitive: dta.Append, Retransmit: true, Data: binary.BigEndian.AppendUint32(nil, uint32(i))}
			if err := rep.AddReport(now, &r); err != nil {
				t.Fatal(err)
			}
			carry(in.stats.Datagrams > 0)
		}
		rep.Flush(now)
		carry(in.stats.Datagrams > 0)
		for _, d := range late {
			rep.HandleAcks(now, in.HandleDatagram(now, peer, d, sink, nil))
		}
		overload = 0
		for range 50 {
			now = now.Add(time.Second)
			rep.Tick(now)
			carry(false)
		}
		st := in.Stats()
		if st.Reports != st.Stored+st.Duplicate+st.Stale+st.Refused[dta.RateLimited] || st.DeniedDatagrams > 0 {
			t.Fatalf("counts do not add up: %+v", st)
		}
		for i := range n {
			if sink.got[uint32(i)] > 1 {
				t.Fatalf("report %d stored %d times", i, sink.got[uint32(i)])
			}
		}
		// A refusal may be lost, and then its reports: never silently.
		if unaccounted := n - len(sink.got); uint64(unaccounted) > st.Missing-min(st.Missing, st.Late)+st.Refused[dta.RateLimited] {
			t.Fatalf("%d of %d reports are missing without a count: %+v", unaccounted, n, st)
		}
	})
}

func TestAdvanceMatchesOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s sequence
		s.next = dta.Seq(rapid.Uint32().Draw(t, "next"))
		reference := map[dta.Seq]bool{}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			to := s.next + dta.Seq(rapid.IntRange(0, window+200).Draw(t, "by"))
			s.advance(to)
			for range rapid.IntRange(0, 20).Draw(t, "stores") {
				n := s.next - 1 - dta.Seq(rapid.IntRange(0, window-1).Draw(t, "back"))
				s.store(n)
				reference[n] = true
			}
			if back := rapid.IntRange(0, 300).Draw(t, "run"); back > 0 {
				s.storeRun(s.next-dta.Seq(back), back)
				for i := range dta.Seq(back) {
					reference[s.next-1-i] = true
				}
			}
			for n := range reference {
				if s.next.Sub(n) > window {
					delete(reference, n)
				}
			}
			for n := s.next - window; n != s.next; n++ {
				if s.stored(n) != reference[n] {
					t.Fatalf("stored(%d) = %v with next %d; want %v", n, s.stored(n), s.next, reference[n])
				}
			}
		}
	})
}

func FuzzIntake(f *testing.F) {
	f.Add(datagram(7, 100, 3), datagram(7, 101, 3))
	p := dta.Prototype{Layout: dta.Base3, Report: dta.Report{Primitive: dta.KeyWrite, Redundancy: 2, Retransmit: true, Key: make([]byte, 4), Data: make([]byte, 4)}}
	f.Add(p.AppendTo(nil), p.AppendTo(nil))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		in, sink := NewIntake(10), newTally()
		for _, d := range [][]byte{a, b, a} {
			in.HandleDatagram(0, peer, d, sink, nil)
		}
		st := in.Stats()
		sum := st.Stored + st.Duplicate + st.Stale + st.Denied
		for _, n := range st.Refused {
			sum += n
		}
		if st.Reports != sum {
			t.Fatalf("counts do not add up after %x, %x: %+v", a, b, st)
		}
		if st.Appended != sink.appended {
			t.Fatalf("%d appended after %x, %x; want %d", st.Appended, a, b, sink.appended)
		}
	})
}

type accept struct{}

func (accept) Put(model.Time, *dta.Report) dta.Verdict { return dta.Stored }

func (accept) PutRun(model.Time, *dta.Report, []byte, int) bool { return false }

func TestIntakeAllocatesNothing(t *testing.T) {
	in := NewIntake(10)
	d := datagram(7, 0, 60)
	seq := dta.Seq(0)
	answer := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() {
		dta.Header{Count: 60, Reporter: 7, Seq: seq}.AppendTo(d[:0])
		seq += 61
		answer = in.HandleDatagram(0, peer, d, accept{}, answer[:0])
	}); n != 0 {
		t.Errorf("HandleDatagram allocates %v times; want 0", n)
	}
}

func BenchmarkIntake(b *testing.B) {
	in := NewIntake(10)
	d := datagram(7, 0, 60)
	seq := dta.Seq(0)
	for b.Loop() {
		dta.Header{Count: 60, Reporter: 7, Seq: seq}.AppendTo(d[:0])
		seq += 60
		in.HandleDatagram(0, peer, d, accept{}, nil)
	}
	b.ReportMetric(float64(b.N)*60/1e6/b.Elapsed().Seconds(), "Mreport/s")
}
