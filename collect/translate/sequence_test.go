package translate

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// beacon is a datagram without reports.
func beacon(id model.NodeID, seq dta.Seq) []byte {
	return dta.Header{Reporter: id, Seq: seq}.AppendTo(nil)
}

// TestEmptyDatagramsCannotMuteASwitch: whatever numbers the datagrams without
// reports claim, with the switch's own address and port, as often as they come:
// every report of the switch is stored, once.
func TestEmptyDatagramsCannotMuteASwitch(t *testing.T) {
	for name, claim := range map[string]func(i int, next dta.Seq) dta.Seq{
		"far away, the same": func(int, dta.Seq) dta.Seq { return 1 << 30 },
		"far away, in turns": func(i int, _ dta.Seq) dta.Seq { return dta.Seq(i) << 20 },
		"a window ahead":     func(_ int, next dta.Seq) dta.Seq { return next + window - 1 },
		"further each time":  func(i int, _ dta.Seq) dta.Seq { return 1<<20 + dta.Seq(i+1)*(window-1) },
		"behind":             func(_ int, next dta.Seq) dta.Seq { return next - 2*window },
	} {
		in, sink := NewIntake(4), newTally()
		next, forged := dta.Seq(1<<20), 0
		for i := range 200 {
			in.HandleDatagram(model.Time(i)*1e6, peer, datagram(7, next, 3), sink, nil)
			next += 3
			for range 20 {
				in.HandleDatagram(model.Time(i)*1e6, peer, beacon(7, claim(forged, next)), sink, nil)
				forged++
			}
		}
		if st := in.Stats(); st.Stored != 600 || st.Stale != 0 || len(sink.got) != 600 {
			t.Errorf("%s: %+v; want all 600 reports stored", name, st)
		}
	}
}

// TestForgedReportsCannotMuteASwitchForLong: reports with the switch's address
// and port, far from its numbers, cost it no report when they come one by one, and
// after the last of them everything is as before.
func TestForgedReportsCannotMuteASwitchForLong(t *testing.T) {
	in, sink := NewIntake(4), newTally()
	next, now := dta.Seq(1<<20), model.Time(0)
	honest := func(datagrams int) (stored int) {
		for range datagrams {
			now = now.Add(time.Millisecond)
			in.HandleDatagram(now, peer, datagram(7, next, 3), sink, nil)
			for i := range dta.Seq(3) {
				stored += sink.got[uint32(next+i)]
			}
			next += 3
		}
		return stored
	}
	honest(10)
	for i := range 100 {
		// Two in a row look like a restart; some move the window.
		first := dta.Seq(i) << 24
		in.HandleDatagram(now, peer, datagram(7, first, 2), sink, nil)
		in.HandleDatagram(now, peer, datagram(7, first+2, 2), sink, nil)
		in.HandleDatagram(now, peer, datagram(7, first+window, 2), sink, nil)
		if got := honest(1); got != 3 {
			t.Fatalf("after %d forged runs %d of 3 reports are stored", i+1, got)
		}
	}
	// A flood: more forged runs between two datagrams than are remembered.
	for i := range 1000 {
		in.HandleDatagram(now, peer, datagram(7, dta.Seq(i)<<22, 2), sink, nil)
		if i%100 == 99 {
			honest(1)
		}
	}
	before := in.Stats().Stale
	honest(1)
	if got := honest(50); got != 150 {
		t.Errorf("after the flood %d of 150 reports are stored", got)
	}
	if st := in.Stats(); st.Stale > before+3 {
		t.Errorf("stale went from %d to %d after the flood; want at most one datagram more", before, st.Stale)
	}
}

// TestAnotherAddressCannotReportForASwitch: neither reports nor empty datagrams
// from another address are taken, or move anything, while the switch is received.
// When it has been silent for 10 s, it may have moved.
func TestAnotherAddressCannotReportForASwitch(t *testing.T) {
	stranger := netip.MustParseAddrPort("203.0.113.5:40041")
	gate, sink := &testGate{}, newTally()
	table := NewReporters(4)
	workers := []*Intake{NewSharedIntake(table, gate), NewSharedIntake(table, gate)}
	now := model.Time(1e12)
	workers[0].HandleDatagram(now, peer, datagram(7, 100, 2), sink, nil)
	before := state(table)[7]
	for _, in := range workers {
		for _, d := range [][]byte{datagram(7, 102, 2), beacon(7, 200), beacon(7, 102+window-1), datagram(7, 1<<30, 2), datagram(7, 1<<30+2, 2)} {
			if answer := in.HandleDatagram(now.Add(silence)-1, stranger, d, sink, nil); len(answer) > 0 {
				t.Errorf("a stranger is answered by %x", answer)
			}
		}
	}
	if after := state(table)[7]; after != before || gate.refused[AnotherAddress] != 10 || workers[0].Stats().Missing+workers[1].Stats().Missing != 0 {
		t.Errorf("a stranger made the state %+v, refused %v; want %+v, 10", after, gate.refused, before)
	}
	// Empty datagrams do not move it even then.
	now = now.Add(silence)
	workers[1].HandleDatagram(now, stranger, beacon(7, 102), sink, nil)
	workers[1].HandleDatagram(now, stranger, datagram(7, 102, 2), sink, nil)
	workers[0].HandleDatagram(now, peer, datagram(7, 104, 2), sink, nil)
	if gate.refused[AnotherAddress] != 12 || sink.got[102] != 1 || sink.got[104] != 0 {
		t.Errorf("refused %v, stored %v; want the new address only", gate.refused, sink.got)
	}
	// A clock that was set back does not keep the binding.
	now -= model.Time(time.Hour)
	workers[0].HandleDatagram(now, peer, datagram(7, 104, 2), sink, nil)
	workers[0].HandleDatagram(now.Add(silence), peer, datagram(7, 104, 2), sink, nil)
	if gate.refused[AnotherAddress] != 13 || sink.got[104] != 1 {
		t.Errorf("refused %v, stored %v; want the old address again after 10 s", gate.refused, sink.got)
	}
}

// TestRestartReplacesSilentNumbers: the numbers after a restart run beside those
// before, and are the only ones when those have been silent.
func TestRestartReplacesSilentNumbers(t *testing.T) {
	elsewhere := netip.AddrPortFrom(peer.Addr(), 50000)
	in, sink := NewIntake(4), newTally()
	now := model.Time(1e12)
	in.HandleDatagram(now, peer, datagram(7, 1<<20, 2), sink, nil)
	next := dta.Seq(100)
	for range 15 {
		in.HandleDatagram(now, elsewhere, datagram(7, next, 2), sink, nil)
		next += 2
		now = now.Add(time.Second)
	}
	s := in.table.byID[7]
	if st := in.Stats(); st.Restarts != 1 || st.Stored != 32 || s.restart != nil || s.next != next || s.from != elsewhere {
		t.Errorf("stats %+v, next %d from %v; want 1 restart, 32 stored, the new numbers only", st, s.next, s.from)
	}
}

// TestStrangersCannotInflateMissing: one datagram counts at most a window as
// missing, and one of another address nothing.
func TestStrangersCannotInflateMissing(t *testing.T) {
	in, sink := NewIntake(4), newTally()
	in.HandleDatagram(0, peer, datagram(7, 100, 1), sink, nil)
	for i := range dta.Seq(1000) {
		in.HandleDatagram(0, netip.MustParseAddrPort("203.0.113.5:1"), beacon(7, 101+i*(window-1)), sink, nil)
	}
	if st := in.Stats(); st.Missing != 0 || st.DeniedDatagrams != 1000 {
		t.Errorf("a stranger made the stats %+v; want nothing missing", st)
	}
	for _, seq := range []dta.Seq{1 << 31, 1 << 30, 101 + window, 101 + window - 1} {
		before := in.Stats().Missing
		in.HandleDatagram(0, peer, beacon(7, seq), sink, nil)
		if got := in.Stats().Missing - before; got >= window {
			t.Errorf("an empty datagram of %d makes %d reports missing; want less than %d", seq, got, window)
		}
	}
}

// TestSilentReportersAreForgotten: a full table makes room for new reporters when
// others have been silent; those that authenticate always find room, and stay.
func TestSilentReportersAreForgotten(t *testing.T) {
	gate, sink := keyed(9), newTally()
	table := NewReporters(4)
	in := NewSharedIntake(table, gate)
	now := testNow
	for id := range model.NodeID(6) {
		in.HandleDatagram(now, peer, datagram(id, 5, 1), sink, nil)
	}
	in.HandleDatagram(now, peer, signed(datagram(9, 5, 1), 1, testStart, now), sink, nil)
	if st := in.Stats(); st.Reporters != 5 || st.Untracked != 2 {
		t.Errorf("stats %+v; want 4 reporters and one with a key, 2 reports untracked", st)
	}
	now = now.Add(forgetAfter)
	in.HandleDatagram(now, peer, datagram(3, 6, 1), sink, nil) // is received
	for id := model.NodeID(20); id < 30; id++ {
		in.HandleDatagram(now, peer, datagram(id, 5, 1), sink, nil)
	}
	if st := in.Stats(); st.Reporters != 5 || st.Untracked != 2+7 || table.byID[3] == nil || table.byID[9] == nil || table.byID[0] != nil {
		t.Errorf("stats %+v; want 3 silent ones forgotten, 7 reports untracked", st)
	}
	in.HandleDatagram(now, peer, signed(datagram(9, 5, 1), 1, testStart, now), sink, nil)
	if st := in.Stats(); st.Duplicate != 1 {
		t.Errorf("stats %+v; want the report of the reporter with a key known", st)
	}
	// One that was the last of an Intake and is forgotten by another is new.
	other := NewSharedIntake(table, gate)
	in.HandleDatagram(now, peer, datagram(3, 7, 1), sink, nil)
	now = now.Add(forgetAfter)
	for id := model.NodeID(40); id < 44; id++ {
		other.HandleDatagram(now, peer, datagram(id, 5, 1), sink, nil)
	}
	now = now.Add(forgetAfter)
	in.HandleDatagram(now, peer, datagram(3, 7, 1), sink, nil)
	if st := in.Stats(); st.Duplicate != 1 || table.byID[3] == nil || other.Stats().Reporters != 0 {
		t.Errorf("stats %+v; want reporter 3 tracked anew", st)
	}
}

// TestIntakesShareATable: workers that handle datagrams of the same reporters at
// once store each report once.
func TestIntakesShareATable(t *testing.T) {
	const workers, datagrams = 4, 400
	table, gate := NewReporters(100), keyed(1, 2)
	sinks := make([]*tally, workers)
	var wg sync.WaitGroup
	for w := range workers {
		sinks[w] = newTally()
		wg.Go(func() {
			// A Gate of its own: testGate counts without a lock.
			in := NewSharedIntake(table, &testGate{keys: gate.keys})
			for i := range datagrams {
				for id := model.NodeID(1); id < 5; id++ {
					d := datagram(id, dta.Seq(id)<<24+dta.Seq(i)*3, 3)
					if id < 3 {
						d = signed(d, 1, testStart, testNow+model.Time(i))
					}
					in.HandleDatagram(testNow, peer, d, sinks[w], nil)
				}
			}
		})
	}
	wg.Wait()
	times := map[uint32]int{}
	for _, s := range sinks {
		for n, k := range s.got {
			times[n] += k
		}
	}
	if len(times) != 4*3*datagrams || table.Len() != 4 {
		t.Errorf("%d different reports of %d reporters; want %d of 4", len(times), table.Len(), 4*3*datagrams)
	}
	for n, k := range times {
		if k != 1 {
			t.Fatalf("report %d was stored %d times; want once", n, k)
		}
	}
}
