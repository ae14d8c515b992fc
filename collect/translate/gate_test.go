package translate

import (
	"bytes"
	"maps"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// testGate knows keys and refuses what it is told to.
type testGate struct {
	keys       map[model.NodeID][]GateKey
	generation uint64
	datagram   func(h *dta.Header) Refusal
	report     func(r *dta.Report) Refusal
	prototype  Refusal
	refused    [Refusals]int
	reports    int
}

func (g *testGate) Datagram(_ model.Time, _ netip.AddrPort, h *dta.Header, _ int) Refusal {
	if g.datagram == nil {
		return Admitted
	}
	return g.datagram(h)
}

func (g *testGate) Prototype(model.Time, netip.AddrPort, int) Refusal { return g.prototype }

func (g *testGate) Report(_ model.Time, _ *dta.Header, r *dta.Report) Refusal {
	if g.report == nil {
		return Admitted
	}
	return g.report(r)
}

func (g *testGate) Keys(id model.NodeID) []GateKey { return g.keys[id] }
func (g *testGate) Generation() uint64             { return g.generation }
func (g *testGate) TimeWindow() time.Duration      { return 10 * time.Second }

func (g *testGate) Refused(_ netip.AddrPort, why Refusal, reports int) {
	g.refused[why]++
	g.reports += reports
}

// Wall-clock times of the tests.
const (
	testNow   = model.Time(1_790_000_000e9)
	testStart = testNow - model.Time(time.Hour)
)

func secretOf(id model.NodeID, key uint8) (s [32]byte) {
	for i := range s {
		s[i] = byte(id)*7 + key + byte(i)
	}
	return s
}

// keyed is a Gate with keys 1 and 2 of the reporters.
func keyed(ids ...model.NodeID) *testGate {
	g := &testGate{keys: map[model.NodeID][]GateKey{}}
	for _, id := range ids {
		g.keys[id] = []GateKey{{1, secretOf(id, 1)}, {2, secretOf(id, 2)}}
	}
	return g
}

// signed makes a datagram one of version 2.
func signed(datagram []byte, key uint8, start, sent model.Time) []byte {
	var h dta.Header
	if _, err := h.Parse(datagram); err != nil {
		panic(err)
	}
	secret := secretOf(h.Reporter, key)
	out, err := dta.NewMAC(key, secret[:]).AppendSigned(nil, datagram, start, sent)
	if err != nil {
		panic(err)
	}
	return out
}

// snapshot is the state of one reporter.
type snapshot struct {
	started               bool
	from                  netip.AddrPort
	received, start, sent model.Time
	numbers, afterwards   numbers
	restarting            bool
	ends                  [latestEnds]dta.Seq
	endAt                 uint8
	size, protos, places  int // of the table
}

// state is a table's content, every bit of it.
func state(t *Reporters) map[model.NodeID]snapshot {
	all := map[model.NodeID]snapshot{}
	for id, s := range t.byID {
		x := snapshot{
			s.started, s.from, s.received, s.start, s.sent, s.numbers,
			numbers{},
			s.restart != nil, s.ends, s.endAt,
			t.size, len(t.protos), len(t.ring),
		}
		if s.restart != nil {
			x.afterwards = *s.restart
		}
		all[id] = x
	}
	return all
}

// TestReplayAfterHalfTheNumbers: a datagram that was overheard so many reports ago
// that its numbers seem to be ahead again is not taken for a new one.
func TestReplayAfterHalfTheNumbers(t *testing.T) {
	gate, sink := keyed(7), newTally()
	in := NewSharedIntake(NewReporters(4), gate)
	overheard := signed(datagram(7, 100, 2), 1, testStart, testNow)
	in.HandleDatagram(testNow, peer, overheard, sink, nil)
	for i := range model.Time(3) {
		in.HandleDatagram(testNow, peer, signed(datagram(7, 100+dta.Seq(i+1)<<30, 2), 1, testStart, testNow+i+1), sink, nil)
	}
	before := in.Stats()
	in.HandleDatagram(testNow, peer, overheard, sink, nil)
	if st := in.Stats(); st.Stored != before.Stored || st.Stale != before.Stale+2 || st.Missing != before.Missing || sink.got[100] != 1 {
		t.Errorf("stats %+v, want those before, 2 more stale: %+v", st, before)
	}
}

func TestSignedDatagramsAreStoredAndAnswered(t *testing.T) {
	gate, sink := keyed(7), newTally()
	in := NewSharedIntake(NewReporters(4), gate)
	for i, key := range []uint8{1, 2} { // both keys are valid
		d := signed(datagram(7, dta.Seq(100+2*i), 2), key, testStart, testNow+model.Time(i))
		if answer := in.HandleDatagram(testNow, peer, d, sink, nil); len(answer) != 0 {
			t.Errorf("an expected datagram is answered by %x", answer)
		}
	}
	answer := in.HandleDatagram(testNow, peer, signed(datagram(7, 107, 1), 2, testStart, testNow+5), sink, []byte{0xaa})[1:]
	secret := secretOf(7, 2)
	var a dta.Answer
	n, err := a.Parse(answer)
	if err != nil || !dta.NewMAC(2, secret[:]).Verify(answer) || a != (dta.Answer{KeyID: 2, Reporter: 7, Start: testStart, Sent: testNow + 5}) {
		t.Fatalf("answer %x is %+v, %v; want it authenticated with key 2 of the reporter", answer, a, err)
	}
	if got := acks(t, answer[n:len(answer)-dta.MACSize]); len(got) != 1 || got[0] != (dta.Ack{Verdict: dta.Gap, Reporter: 7, First: 104, Count: 3}) {
		t.Errorf("after a gap of 3 the answer is %+v; want a refusal of 104, 3", got)
	}
	// Lost for longer than the window: authentic, so all of it is missing.
	in.HandleDatagram(testNow, peer, signed(datagram(7, 108+3*window, 1), 1, testStart, testNow+6), sink, nil)
	// Sent again, with a new time: only what is missing is stored.
	in.HandleDatagram(testNow, peer, signed(datagram(7, 107+3*window, 2), 1, testStart, testNow+7), sink, nil)
	if st := in.Stats(); st.Stored != 7 || st.Duplicate != 1 || st.Late != 1 || st.Missing != 3+3*window || st.Denied != 0 || st.Restarts != 0 {
		t.Errorf("stats %+v; want 7 stored, 1 duplicate, 1 late, %d missing", st, 3+3*window)
	}
	// A later start is a restart, wherever it begins to number and from whatever port.
	elsewhere := netip.MustParseAddrPort("10.9.9.9:5")
	in.HandleDatagram(testNow, elsewhere, signed(datagram(7, 100, 2), 1, testStart+1, testNow+8), sink, nil)
	if st := in.Stats(); st.Stored != 9 || st.Restarts != 1 {
		t.Errorf("stats after a restart %+v; want 9 stored, 1 restart", st)
	}
}

func TestKeysAreReread(t *testing.T) {
	gate, sink := keyed(7), newTally()
	in := NewSharedIntake(NewReporters(4), gate)
	in.HandleDatagram(testNow, peer, signed(datagram(7, 1, 1), 1, testStart, testNow), sink, nil)
	gate.keys[7] = gate.keys[7][1:]
	gate.generation++
	in.HandleDatagram(testNow, peer, signed(datagram(7, 2, 1), 1, testStart, testNow), sink, nil)
	in.HandleDatagram(testNow, peer, signed(datagram(7, 2, 1), 2, testStart, testNow), sink, nil)
	if st := in.Stats(); st.Stored != 2 || gate.refused[UnknownKey] != 1 {
		t.Errorf("stats %+v, refused %v; want 2 stored, 1 with an unknown key", st, gate.refused)
	}
	// Without keys the reporter is one of version 1 again.
	delete(gate.keys, 7)
	gate.generation++
	in.HandleDatagram(testNow, peer, datagram(7, 3, 1), sink, nil)
	in.HandleDatagram(testNow, peer, signed(datagram(7, 4, 1), 2, testStart, testNow), sink, nil)
	if st := in.Stats(); st.Stored != 3 || st.Restarts != 1 || gate.refused[UnknownKey] != 2 {
		t.Errorf("stats %+v, refused %v; want 3 stored, 1 restart, 2 with an unknown key", st, gate.refused)
	}
}

type forgery struct {
	name string
	why  Refusal // Admitted: a duplicate
	make func(t *rapid.T, authentic []byte, h dta.Header) []byte
}

// forgeries are what an attacker can do with an authentic datagram of reporter 7
// that it has seen, and with its own key of reporter 8.
var forgeries = []forgery{
	{"altered", WrongMAC, func(t *rapid.T, d []byte, _ dta.Header) []byte {
		// Not the version, key id or reporter: they select other checks.
		at := rapid.SampledFrom(append([]int{2, 3}, ints(8, len(d))...)).Draw(t, "at")
		d = bytes.Clone(d)
		d[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		return d
	}},
	{"cut", WrongMAC, func(t *rapid.T, d []byte, _ dta.Header) []byte {
		return d[:rapid.IntRange(dta.SignedHeaderSize+dta.MACSize, len(d)-1).Draw(t, "cut")]
	}},
	{"extended", WrongMAC, func(t *rapid.T, d []byte, _ dta.Header) []byte {
		return append(bytes.Clone(d), rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "more")...)
	}},
	{"another reporter's key", WrongMAC, func(_ *rapid.T, d []byte, h dta.Header) []byte {
		secret := secretOf(8, 1)
		return resigned(dta.NewMAC(1, secret[:]), d, h.Start, h.Sent+1)
	}},
	{"a guessed key", WrongMAC, func(t *rapid.T, d []byte, h dta.Header) []byte {
		return resigned(dta.NewMAC(1, rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "key")), d, h.Start, h.Sent+1)
	}},
	{"an unknown key id", UnknownKey, func(t *rapid.T, d []byte, h dta.Header) []byte {
		secret := secretOf(7, 1)
		return resigned(dta.NewMAC(rapid.Uint8Range(3, 255).Draw(t, "id"), secret[:]), d, h.Start, h.Sent+1)
	}},
	{"version 1", NoMAC, func(_ *rapid.T, d []byte, h dta.Header) []byte {
		h.Signed = false
		return append(h.AppendTo(nil), d[dta.SignedHeaderSize:len(d)-dta.MACSize]...)
	}},
	{"the prototype's format", PrototypeNotAllowed, func(_ *rapid.T, _ []byte, _ dta.Header) []byte {
		p := dta.Prototype{Layout: dta.Base3, Report: dta.Report{Primitive: dta.Append, Retransmit: true, List: 7, Data: make([]byte, 4)}}
		return p.AppendTo(nil)
	}},
	{"an earlier start", Replayed, func(t *rapid.T, d []byte, h dta.Header) []byte {
		return resigned(macOf(7), d, h.Start-model.Time(rapid.Int64Range(1, 1e9).Draw(t, "before")), h.Sent)
	}},
	{"sent too long ago", OutsideTimeWindow, func(t *rapid.T, d []byte, h dta.Header) []byte {
		return resigned(macOf(7), d, h.Start, testNow-model.Time(rapid.Int64Range(10e9+1, 1e18).Draw(t, "age")))
	}},
	{"sent in the future", OutsideTimeWindow, func(t *rapid.T, d []byte, h dta.Header) []byte {
		return resigned(macOf(7), d, h.Start, testNow+model.Time(rapid.Int64Range(10e9+1, 1e18).Draw(t, "ahead")))
	}},
	{"started in the future", OutsideTimeWindow, func(t *rapid.T, d []byte, h dta.Header) []byte {
		return resigned(macOf(7), d, testNow+model.Time(rapid.Int64Range(10e9+1, 1e18).Draw(t, "ahead")), h.Sent)
	}},
	{"a copy", Admitted, func(_ *rapid.T, d []byte, _ dta.Header) []byte { return d }},
}

func ints(from, to int) (all []int) {
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

func macOf(id model.NodeID) *dta.MAC {
	secret := secretOf(id, 1)
	return dta.NewMAC(1, secret[:])
}

func resigned(m *dta.MAC, datagram []byte, start, sent model.Time) []byte {
	out, err := m.AppendSigned(nil, datagram, start, sent)
	if err != nil {
		panic(err)
	}
	return out
}

// drawSigned makes an authentic datagram of reports of every primitive.
func drawSigned(t *rapid.T, first dta.Seq) []byte {
	w := dta.NewSignedWriter(7, first, macOf(7), testStart)
	w.Begin(make([]byte, 1400))
	for range rapid.IntRange(1, 5).Draw(t, "kinds") {
		r := dta.Report{
			Primitive:  rapid.SampledFrom([]dta.Primitive{dta.KeyWrite, dta.Append, dta.KeyIncrement, dta.Postcarding}).Draw(t, "primitive"),
			Immediate:  rapid.Bool().Draw(t, "immediate"),
			Retransmit: rapid.Bool().Draw(t, "retransmit"),
			Redundancy: rapid.Uint8Range(1, dta.MaxRedundancy).Draw(t, "redundancy"),
			Key:        rapid.SliceOfN(rapid.Byte(), 1, dta.MaxKey).Draw(t, "key"),
			Data:       rapid.SliceOfN(rapid.Byte(), 0, 30).Draw(t, "data"),
			List:       dta.ListID(rapid.Uint32().Draw(t, "list")),
		}
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			if err := w.AddReport(&r); err != nil {
				t.Fatal(err)
			}
		}
	}
	return w.FinishAt(testNow - model.Time(rapid.Int64Range(-9e9, 9e9).Draw(t, "age")))
}

// total is a Sink that counts and accepts runs.
type total struct{ reports int }

func (s *total) Put(model.Time, *dta.Report) dta.Verdict {
	s.reports++
	return dta.Stored
}

func (s *total) PutRun(_ model.Time, _ *dta.Report, _ []byte, count int) bool {
	s.reports += count
	return true
}

// TestForgedDatagramsMoveOnlyCounters: for reports of every primitive, altered
// and forged datagrams and copies, at the worker that handled the authentic one
// or at another, from its address or another, give the sink nothing, leave the
// state of all reporters as it was, byte for byte, and are not answered.
func TestForgedDatagramsMoveOnlyCounters(t *testing.T) {
	for _, forged := range forgeries {
		t.Run(forged.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkForgery(t, forged) })
		})
	}
}

func checkForgery(t *rapid.T, forged forgery) {
	gate := keyed(7, 8)
	gate.prototype = PrototypeNotAllowed
	table, sink := NewReporters(4), &total{}
	workers := []*Intake{NewSharedIntake(table, gate), NewSharedIntake(table, gate)}
	first := dta.Seq(rapid.Uint32().Draw(t, "first"))
	var authentic []byte
	for range rapid.IntRange(1, 3).Draw(t, "datagrams") {
		authentic = drawSigned(t, first)
		var h dta.Header
		h.Parse(authentic)
		first += dta.Seq(h.Count)
		if answer := workers[0].HandleDatagram(testNow, peer, authentic, sink, nil); len(answer) > 0 {
			t.Fatalf("an authentic datagram is answered by %x", answer)
		}
	}
	var h dta.Header
	h.Parse(authentic)
	d := forged.make(t, authentic, h)
	in := rapid.SampledFrom(workers).Draw(t, "worker")
	from := rapid.SampledFrom([]netip.AddrPort{peer, netip.MustParseAddrPort("10.0.0.1:9"), netip.MustParseAddrPort("203.0.113.5:40041")}).Draw(t, "from")
	before, stored, counted := state(table), sink.reports, in.Stats()
	var answer []byte
	for range rapid.IntRange(1, 3).Draw(t, "times") {
		answer = in.HandleDatagram(testNow, from, d, sink, answer)
	}
	if len(answer) > 0 || sink.reports != stored {
		t.Fatalf("%s: %x is answered by %x, %d reports reached the sink; want nothing", forged.name, d, answer, sink.reports-stored)
	}
	if after := state(table); !maps.Equal(after, before) {
		t.Fatalf("%s: %x made the state\n%+v\nwant\n%+v", forged.name, d, after, before)
	}
	after := in.Stats()
	if forged.why == Admitted && after.Duplicate == counted.Duplicate || forged.why != Admitted && gate.refused[forged.why] == 0 {
		t.Fatalf("%s: %x is not counted: refused %v, %+v", forged.name, d, gate.refused, after)
	}
	if after.Stored != counted.Stored || after.Missing != counted.Missing || after.Restarts != counted.Restarts ||
		after.Reports != after.Stored+after.Duplicate+after.Stale+after.Denied {
		t.Fatalf("%s: stats went from %+v to %+v", forged.name, counted, after)
	}
}

// TestRefusedByTheGate: what the Gate refuses changes nothing, and refused
// reports do not take others of their datagram with them.
func TestRefusedByTheGate(t *testing.T) {
	gate, sink := &testGate{}, newTally()
	table := NewReporters(4)
	in := NewSharedIntake(table, gate)
	gate.datagram = func(h *dta.Header) Refusal {
		if h.Reporter == 9 {
			return UnknownReporter
		}
		return Admitted
	}
	gate.report = func(r *dta.Report) Refusal {
		if r.Data[3] == 102 {
			return ForeignSwitch
		}
		return Admitted
	}
	before := state(table)
	for range 2 {
		if answer := in.HandleDatagram(0, peer, datagram(9, 100, 4), sink, nil); len(answer) > 0 {
			t.Errorf("an unknown reporter is answered by %x", answer)
		}
	}
	empty := dta.Header{Reporter: 9, Count: 65535}.AppendTo(nil)
	in.HandleDatagram(0, peer, empty, sink, nil)
	if got := state(table); !maps.Equal(got, before) || gate.refused[UnknownReporter] != 3 || gate.reports != 8 {
		t.Errorf("an unknown reporter made the state %v, refused %v, %d reports; want nothing, 3, 8", got, gate.refused, gate.reports)
	}
	if answer := in.HandleDatagram(0, peer, datagram(7, 100, 4), sink, nil); len(answer) > 0 {
		t.Errorf("a refused report is answered by %x", answer)
	}
	if st := in.Stats(); st.Stored != 3 || st.Denied != 9 || st.DeniedDatagrams != 3 || st.Reports != 12 || sink.got[102] != 0 {
		t.Errorf("stats %+v, stored %v; want 3 stored, 9 denied", st, sink.got)
	}
	// The prototype's format goes by its own rule.
	p := dta.Prototype{Layout: dta.Base2, Report: dta.Report{Primitive: dta.Append, List: 1, Data: make([]byte, 4)}}
	gate.prototype = PrototypeNotAllowed
	in.HandleDatagram(0, peer, p.AppendTo(nil), sink, nil)
	if st := in.Stats(); st.Stored != 3 || gate.refused[PrototypeNotAllowed] != 1 {
		t.Errorf("stats %+v, refused %v; want the prototype refused", st, gate.refused)
	}
}

// TestWithoutAGateNothingIsAuthentic: version 2 is refused where nobody can
// verify it.
func TestWithoutAGateNothingIsAuthentic(t *testing.T) {
	in, sink := NewIntake(4), newTally()
	in.HandleDatagram(testNow, peer, signed(datagram(7, 1, 2), 1, testStart, testNow), sink, nil)
	if st := in.Stats(); st.Stored != 0 || st.Denied != 2 || st.Reporters != 0 {
		t.Errorf("stats %+v; want 2 denied", st)
	}
}

func TestSignedIntakeAllocatesNothing(t *testing.T) {
	in := NewSharedIntake(NewReporters(4), keyed(7))
	secret := secretOf(7, 1)
	mac := dta.NewMAC(1, secret[:])
	plain := datagram(7, 0, 60)
	var d []byte
	seq := dta.Seq(0)
	answer := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() {
		dta.Header{Count: 60, Reporter: 7, Seq: seq}.AppendTo(plain[:0])
		d, _ = mac.AppendSigned(d[:0], plain, testStart, testNow+model.Time(seq))
		seq += 61
		answer = in.HandleDatagram(testNow, peer, d, accept{}, answer[:0])
	}); n != 0 || len(answer) == 0 || in.Stats().Denied > 0 {
		t.Errorf("HandleDatagram allocates %v times, answers %x, %+v; want 0, an answer", n, answer, in.Stats())
	}
}

func FuzzSignedIntake(f *testing.F) {
	f.Add(signed(datagram(7, 100, 3), 1, testStart, testNow))
	f.Add(datagram(7, 100, 3))
	f.Fuzz(func(t *testing.T, d []byte) {
		gate := keyed(7)
		gate.prototype = PrototypeNotAllowed
		gate.datagram = func(h *dta.Header) Refusal {
			if !h.Signed {
				return NoMAC
			}
			return Admitted
		}
		// The times leave the window, so that the seeds are refused as well.
		in, sink := NewSharedIntake(NewReporters(4), gate), &total{}
		answer := in.HandleDatagram(testNow+model.Time(time.Hour), peer, d, sink, nil)
		if st := in.Stats(); len(answer) > 0 || sink.reports > 0 || st.Reporters > 0 || st.Reports != st.Denied {
			t.Fatalf("%x is answered by %x, %+v; want it refused", d, answer, st)
		}
	})
}
