package reporter

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

func must(t testing.TB, cfg Config) *Reporter {
	t.Helper()
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// event is an Append whose data says which one it is.
func event(i int) *dta.Report {
	return &dta.Report{Primitive: dta.Append, Retransmit: true, List: 3, Data: binary.BigEndian.AppendUint32(nil, uint32(i))}
}

// read returns the numbers and the data of a datagram's reports.
func read(t interface{ Fatalf(string, ...any) }, datagram []byte) (seqs []dta.Seq, data []uint32) {
	var in dta.Reader
	var rep dta.Report
	in.Reset(datagram)
	for seq := in.Seq(); in.Next(&rep); seq = in.Seq() {
		seqs, data = append(seqs, seq), append(data, binary.BigEndian.Uint32(rep.Data))
	}
	if in.Err() != nil {
		t.Fatalf("datagram %x: %v", datagram, in.Err())
	}
	return seqs, data
}

func TestConfigErrors(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"reporter: datagram size 11, want at least 12": func(c *Config) { c.DatagramBytes = 11 },
		"reporter: datagram queue 0, want at least 1":  func(c *Config) { c.MaxDatagrams = 0 },
		"reporter: max resends -1, want at least 0":    func(c *Config) { c.MaxResends = -1 },
	} {
		cfg := DefaultConfig(1, 0)
		change(&cfg)
		if _, err := New(cfg); err == nil || err.Error() != want {
			t.Errorf("New = %v; want %s", err, want)
		}
	}
}

func TestReportsArePackedAndNumbered(t *testing.T) {
	cfg := DefaultConfig(7, 0xfffffffe)
	cfg.DatagramBytes = dta.HeaderSize + 3*12
	r := must(t, cfg)
	for i := range 7 {
		if err := r.AddReport(0, event(i)); err != nil {
			t.Fatal(err)
		}
	}
	if r.ReadyDatagrams() != 2 || r.PendingReports() != 1 {
		t.Fatalf("%d ready, %d waiting; want 2, 1", r.ReadyDatagrams(), r.PendingReports())
	}
	r.Tick(model.Time(0).Add(cfg.Linger) - 1)
	if r.ReadyDatagrams() != 2 {
		t.Error("a datagram left before its time")
	}
	r.Tick(model.Time(0).Add(cfg.Linger))
	var all []uint32
	for i := range r.ReadyDatagrams() {
		seqs, data := read(t, r.Datagram(i))
		for j := range seqs {
			if want := cfg.FirstSeq + dta.Seq(len(all)); seqs[j] != want {
				t.Errorf("report %d has number %d; want %d", len(all), seqs[j], want)
			}
			all = append(all, data[j])
		}
	}
	if want := []uint32{0, 1, 2, 3, 4, 5, 6}; len(all) != len(want) {
		t.Errorf("sent %v; want %v", all, want)
	}
}

func TestImmediateLeavesAtOnce(t *testing.T) {
	r := must(t, DefaultConfig(7, 0))
	rep := event(1)
	rep.Immediate = true
	r.AddReport(0, event(0))
	r.AddReport(0, rep)
	if r.ReadyDatagrams() != 1 || r.PendingReports() != 0 {
		t.Errorf("%d ready, %d waiting; want 1, 0", r.ReadyDatagrams(), r.PendingReports())
	}
}

func TestSlowHostLosesReportsAndNothingElse(t *testing.T) {
	cfg := DefaultConfig(7, 0)
	cfg.DatagramBytes, cfg.MaxDatagrams = dta.HeaderSize+12, 2
	r := must(t, cfg)
	for i := range 10 {
		r.AddReport(0, event(i))
	}
	// Two wait, one is being filled.
	if st := r.Stats(); st.Packed != 3 || st.Congested != 7 || r.ReadyDatagrams() != 2 {
		t.Errorf("stats %+v, %d ready; want 3 packed, 7 congested, 2 ready", st, r.ReadyDatagrams())
	}
	r.Release(2)
	if err := r.AddReport(0, event(10)); err != nil {
		t.Errorf("Add after Release = %v; want nil", err)
	}
	if seqs, _ := read(t, r.Datagram(0)); seqs[0] != 2 {
		t.Errorf("the third datagram starts at %d; want 2", seqs[0])
	}
}

func TestRefusedReportsAreSentAgain(t *testing.T) {
	cfg := DefaultConfig(7, 100)
	cfg.MaxResends = 1
	r := must(t, cfg)
	for i := range 6 {
		rep := event(i)
		rep.Retransmit = i != 3
		r.AddReport(0, rep)
	}
	r.Flush(0)
	r.Release(1)
	// 101 to 104 are missing; of them 103 has no copy.
	nack := dta.Ack{Verdict: dta.Gap, Reporter: 7, First: 101, Count: 4}.AppendTo(nil)
	if err := r.HandleAcks(0, nack); err != nil {
		t.Fatal(err)
	}
	r.Tick(0)
	if r.ReadyDatagrams() != 2 {
		t.Fatalf("%d datagrams; want 2: a run ends where a number has no copy", r.ReadyDatagrams())
	}
	first, _ := read(t, r.Datagram(0))
	second, data := read(t, r.Datagram(1))
	if len(first) != 2 || first[0] != 101 || len(second) != 1 || second[0] != 104 || data[0] != 4 {
		t.Errorf("sent again %v and %v; want [101 102] and [104]", first, second)
	}
	r.Release(2)
	r.HandleAcks(0, nack)
	r.Tick(0)
	if st := r.Stats(); r.ReadyDatagrams() != 0 || st.Resent != 3 || st.NoCopy != 2 || st.Abandoned != 3 || st.Refused[dta.Gap] != 8 {
		t.Errorf("after the second refusal %d datagrams, %+v; want none, 3 resent, 3 abandoned", r.ReadyDatagrams(), st)
	}
}

func TestOverloadedTranslatorIsGivenTime(t *testing.T) {
	cfg := DefaultConfig(7, 0)
	r := must(t, cfg)
	r.AddReport(0, event(0))
	r.Flush(0)
	r.Release(1)
	r.HandleAcks(0, dta.Ack{Verdict: dta.RateLimited, Reporter: 7, Count: 1}.AppendTo(nil))
	r.Tick(model.Time(0).Add(cfg.Backoff) - 1)
	if r.ReadyDatagrams() != 0 {
		t.Error("sent again at once")
	}
	r.Tick(model.Time(0).Add(cfg.Backoff))
	if r.ReadyDatagrams() != 1 {
		t.Error("not sent again")
	}
}

func TestAnswersThatChangeNothing(t *testing.T) {
	r := must(t, DefaultConfig(7, 10))
	r.AddReport(0, event(0))
	r.AddReport(0, event(1))
	r.Flush(0)
	r.Release(1)
	for _, a := range []dta.Ack{
		{Verdict: dta.Gap, Reporter: 8, First: 10, Count: 1},       // another's
		{Verdict: dta.Gap, Reporter: 7, First: 12, Count: 1},       // not sent yet
		{Verdict: dta.Malformed, Reporter: 7, First: 10, Count: 1}, // would be refused again
		{Verdict: dta.Verdict(200), Reporter: 7, First: 10, Count: 1},
		{Verdict: dta.Stored, Reporter: 7, First: 10, Count: 1 << 30},
	} {
		r.HandleAcks(0, a.AppendTo(nil))
	}
	r.Tick(0)
	st := r.Stats()
	if r.ReadyDatagrams() != 0 || st.Foreign != 2 || st.Stored != 2 || st.Refused[dta.Malformed] != 1 || st.Refused[Verdicts-1] != 1 {
		t.Errorf("%d datagrams, %+v; want none, 2 foreign, 2 stored, 1 malformed, 1 unknown", r.ReadyDatagrams(), st)
	}
	if r.history.count != 0 {
		t.Errorf("%d copies of stored reports", r.history.count)
	}
	if err := r.HandleAcks(0, []byte{1, 2, 3}); err != dta.ErrShort {
		t.Errorf("Answers(010203) = %v; want %v", err, dta.ErrShort)
	}
}

func TestBeaconHoldsTheNextNumber(t *testing.T) {
	cfg := DefaultConfig(7, 10)
	r := must(t, cfg)
	r.Tick(model.Time(time.Hour))
	if r.ReadyDatagrams() != 0 {
		t.Error("a beacon before the first report")
	}
	r.AddReport(0, event(0))
	r.Flush(0)
	r.Release(1)
	r.Tick(model.Time(0).Add(cfg.BeaconInterval))
	r.Tick(model.Time(0).Add(cfg.BeaconInterval))
	if r.ReadyDatagrams() != 1 {
		t.Fatalf("%d datagrams; want 1 beacon", r.ReadyDatagrams())
	}
	var h dta.Header
	h.Parse(r.Datagram(0))
	if want := (dta.Header{Reporter: 7, Seq: 11}); h != want {
		t.Errorf("beacon %+v; want %+v", h, want)
	}
}

// TestLossyPath holds the whole contract on random paths: whatever the path
// drops, the receiver ends up with every report of which a copy was kept, with
// the content of its number, and every count agrees.
func TestLossyPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig(7, dta.Seq(rapid.Uint32().Draw(t, "first")))
		cfg.DatagramBytes = rapid.IntRange(dta.HeaderSize+12, 120).Draw(t, "datagram")
		cfg.MaxDatagrams = rapid.IntRange(1, 6).Draw(t, "queue")
		cfg.HistoryBytes = rapid.IntRange(0, 4000).Draw(t, "history")
		cfg.MaxResends = 1 << 20
		cfg.Backoff, cfg.BeaconInterval = 0, 1
		r, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		numbered := map[dta.Seq]uint32{} // what the receiver got
		sent := map[dta.Seq]uint32{}     // what was packed
		next := cfg.FirstSeq             // the receiver's
		var now model.Time
		deliver := func() {
			for range r.ReadyDatagrams() {
				lost := rapid.IntRange(0, 3).Draw(t, "fate") == 0
				if d := r.Datagram(0); !lost {
					var h dta.Header
					h.Parse(d)
					seqs, data := read(t, d)
					for i, s := range seqs {
						if sent[s] != data[i] {
							t.Fatalf("number %d carries %d; want %d", s, data[i], sent[s])
						}
						numbered[s] = data[i]
					}
					if end := h.Seq + dta.Seq(h.Count); end.Sub(next) > 0 {
						next = end
					}
				}
				r.Release(1)
			}
		}
		ask := func() {
			for s := cfg.FirstSeq; s.Sub(next) < 0; s++ {
				if _, ok := numbered[s]; !ok {
					r.HandleAcks(now, dta.Ack{Verdict: dta.Gap, Reporter: 7, First: s, Count: 1}.AppendTo(nil))
				}
			}
		}
		n := rapid.IntRange(0, 150).Draw(t, "reports")
		for i := range n {
			now++
			seq := r.writer.Seq()
			if r.AddReport(now, event(i)) == nil {
				sent[seq] = uint32(i)
			}
			if rapid.IntRange(0, 4).Draw(t, "host") == 0 {
				deliver()
			}
		}
		for range 200 {
			now = now.Add(time.Second)
			r.Tick(now)
			deliver()
			ask()
		}
		st := r.Stats()
		if st.Reports != st.Packed+st.Malformed+st.TooLarge+st.Congested || st.Reports != uint64(n) || st.Packed != uint64(len(sent)) {
			t.Fatalf("counts do not add up: %+v", st)
		}
		if missing := uint64(len(sent) - len(numbered)); missing > st.CopiesEvicted && cfg.HistoryBytes >= 16 {
			t.Fatalf("%d reports missing; want at most the %d forgotten", missing, st.CopiesEvicted)
		}
	})
}

func TestHistoryKeepsTheYoungest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(rapid.IntRange(0, 300).Draw(t, "bytes"))
		type reference struct {
			seq  dta.Seq
			wire []byte
		}
		var all []reference
		for i := range rapid.IntRange(0, 60).Draw(t, "reports") {
			rep := &dta.Report{Primitive: dta.Append, Data: bytes.Repeat([]byte{byte(i)}, rapid.IntRange(0, 80).Draw(t, "size"))}
			seq := dta.Seq(2 * i)
			h.storeCopy(seq, rep)
			if rep.Size() > len(h.bytes) || len(h.copies) == 0 {
				continue // older ones stay
			}
			all = append(all, reference{seq, rep.AppendTo(nil)})
			// What is kept is a suffix, in order, with the bytes it came with.
			if h.count > len(all) {
				t.Fatalf("%d copies of %d reports", h.count, len(all))
			}
			for j := range h.count {
				c, want := h.at(j), all[len(all)-h.count+j]
				if c.seq != want.seq || !bytes.Equal(h.bytes[c.at:c.at+c.size], want.wire) {
					t.Fatalf("copy %d of %d is %d %x; want %d %x", j, h.count, c.seq, h.bytes[c.at:c.at+c.size], want.seq, want.wire)
				}
			}
			if h.count == 0 {
				t.Fatal("the youngest report was not kept")
			}
		}
	})
}

func TestReporterAllocatesNothing(t *testing.T) {
	cfg := DefaultConfig(7, 0)
	cfg.DatagramBytes = 200
	r := must(t, cfg)
	rep := event(1)
	nack := dta.Ack{Verdict: dta.Gap, Reporter: 7, First: 3, Count: 5}.AppendTo(nil)
	if n := testing.AllocsPerRun(1000, func() {
		for range 20 {
			r.AddReport(0, rep)
		}
		r.HandleAcks(0, nack)
		r.Tick(0)
		r.Release(r.ReadyDatagrams())
	}); n != 0 {
		t.Errorf("a round allocates %v times; want 0", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	for name, retransmit := range map[string]bool{"fire-and-forget": false, "kept": true} {
		b.Run(name, func(b *testing.B) {
			r := must(b, DefaultConfig(7, 0))
			rep := event(1)
			rep.Retransmit = retransmit
			for b.Loop() {
				r.AddReport(0, rep)
				r.Release(r.ReadyDatagrams())
			}
			b.ReportMetric(float64(b.N)/1e6/b.Elapsed().Seconds(), "Mreport/s")
		})
	}
}
