package reporter

import (
	"bytes"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

var testSecret = []byte("a secret")

func signedConfig() Config {
	cfg := DefaultConfig(7, 100)
	cfg.Key, cfg.Start, cfg.Linger = dta.NewMAC(3, testSecret), 5000, 0
	return cfg
}

// answerTo is an authentic answer to a datagram.
func answerTo(t *testing.T, datagram []byte, a dta.Ack) []byte {
	t.Helper()
	var h dta.Header
	if _, err := h.Parse(datagram); err != nil {
		t.Fatal(err)
	}
	b := dta.Answer{KeyID: h.KeyID, Reporter: h.Reporter, Start: h.Start, Sent: h.Sent}.AppendTo(nil)
	b = a.AppendTo(b)
	return dta.NewMAC(h.KeyID, testSecret).AppendMAC(b, b)
}

func TestKeyNeedsAStart(t *testing.T) {
	cfg := signedConfig()
	cfg.Start = 0
	if _, err := New(cfg); err == nil || err.Error() != "reporter: start 0 with a key, want the time of the start" {
		t.Errorf("New without a start = %v", err)
	}
	cfg = signedConfig()
	cfg.DatagramBytes = dta.SignedHeaderSize + dta.MACSize - 1
	if _, err := New(cfg); err == nil || err.Error() != "reporter: datagram size 43, want at least 44" {
		t.Errorf("New without space = %v", err)
	}
}

// TestEveryDatagramIsSigned: full and empty ones and resent copies, each with a
// later send time than the one before, even when the clock stands still.
func TestEveryDatagramIsSigned(t *testing.T) {
	cfg := signedConfig()
	cfg.DatagramBytes = dta.SignedHeaderSize + 3*12 + dta.MACSize
	r := must(t, cfg)
	verify := dta.NewMAC(3, testSecret)
	var last model.Time
	check := func(want int) {
		t.Helper()
		if r.ReadyDatagrams() != want {
			t.Fatalf("%d datagrams; want %d", r.ReadyDatagrams(), want)
		}
		for i := range want {
			var h dta.Header
			d := r.Datagram(i)
			if _, err := h.Parse(d); err != nil || !verify.Verify(d) || h.Start != 5000 || h.Sent <= last || len(d) > cfg.DatagramBytes {
				t.Errorf("datagram %x has %+v, %v; want it to verify, sent after %d", d, h, err, last)
			}
			last = h.Sent
		}
	}
	for i := range 6 {
		r.AddReport(9000, event(i))
	}
	r.Flush(9000)
	check(2)
	nack := answerTo(t, r.Datagram(1), dta.Ack{Verdict: dta.Gap, Reporter: 7, First: 100, Count: 6})
	r.Release(2)
	if err := r.HandleAcks(9000, nack); err != nil {
		t.Fatalf("HandleAcks(%x) = %v; want nil", nack, err)
	}
	r.Tick(9000)
	check(2)
	if _, data := read(t, r.Datagram(1)); len(data) != 3 || data[2] != 5 {
		t.Errorf("resent %v; want 3, 4, 5", data)
	}
	r.Release(2)
	r.Tick(model.Time(9000).Add(cfg.BeaconInterval))
	check(1)
}

// TestForgedAnswersHaveNoEffect: a reporter with a key drops answers without a
// MAC, with another's, altered ones, copies, and those to an earlier start.
func TestForgedAnswersHaveNoEffect(t *testing.T) {
	r := must(t, signedConfig())
	for i := range 4 {
		r.AddReport(9000, event(i))
		r.Flush(9000)
	}
	nack := dta.Ack{Verdict: dta.Gap, Reporter: 7, First: 100, Count: 1}
	first, second := answerTo(t, r.Datagram(1), nack), answerTo(t, r.Datagram(2), nack)
	if err := r.HandleAcks(9001, first); err != nil {
		t.Fatalf("an authentic answer: %v", err)
	}
	var h dta.Header
	h.Parse(r.Datagram(3))
	remade := func(change func(*dta.Answer)) []byte {
		a := dta.Answer{KeyID: 3, Reporter: 7, Start: h.Start, Sent: h.Sent}
		change(&a)
		b := nack.AppendTo(a.AppendTo(nil))
		return dta.NewMAC(3, testSecret).AppendMAC(b, b)
	}
	wrong := bytes.Clone(second)
	wrong[len(wrong)-1] ^= 1
	altered := bytes.Clone(second)
	altered[dta.AnswerSize+11] ^= 1
	before := r.stats
	count := uint64(0)
	for name, tc := range map[string]struct {
		answer []byte
		want   error
	}{
		"version 1":           {nack.AppendTo(nil), dta.ErrShort},
		"two of version 1":    {nack.AppendTo(nack.AppendTo(nil)), dta.ErrVersion},
		"wrong MAC":           {wrong, dta.ErrMAC},
		"altered":             {altered, dta.ErrMAC},
		"cut":                 {second[:dta.AnswerSize+4], dta.ErrMAC},
		"a copy":              {first, ErrReplayed},
		"to an older one":     {answerTo(t, r.Datagram(0), nack), ErrReplayed},
		"to an earlier start": {remade(func(a *dta.Answer) { a.Start-- }), ErrReplayed},
		"to nothing sent":     {remade(func(a *dta.Answer) { a.Sent += 1e9 }), ErrReplayed},
		"to another":          {remade(func(a *dta.Answer) { a.Reporter = 8 }), ErrReplayed},
		"of another key":      {remade(func(a *dta.Answer) { a.KeyID = 4 }), dta.ErrMAC},
		"reports":             {r.Datagram(3), dta.ErrVersion},
	} {
		if err := r.HandleAcks(9001, tc.answer); err != tc.want {
			t.Errorf("%s: HandleAcks(%x) = %v; want %v", name, tc.answer, err, tc.want)
		}
		count++
	}
	before.Unverified += count
	if r.stats != before {
		t.Errorf("forged answers made the stats %+v; want %+v", r.stats, before)
	}
	if err := r.HandleAcks(9002, second); err != nil {
		t.Errorf("the next authentic answer: %v", err)
	}
}

func TestSignedReporterAllocatesNothing(t *testing.T) {
	cfg := signedConfig()
	cfg.MaxDatagrams = 2
	r, rep := must(t, cfg), event(1)
	if n := testing.AllocsPerRun(100, func() {
		r.AddReport(1, rep)
		r.Flush(1)
		r.Release(r.ReadyDatagrams())
	}); n != 0 {
		t.Errorf("a signed datagram allocates %v times; want 0", n)
	}
}

func FuzzSignedAnswers(f *testing.F) {
	r, err := New(signedConfig())
	if err != nil {
		f.Fatal(err)
	}
	r.AddReport(9000, event(0))
	r.Flush(9000)
	f.Add(dta.Answer{KeyID: 3, Reporter: 7, Start: 5000, Sent: 9000}.AppendTo(nil))
	f.Add(dta.Ack{Verdict: dta.Gap, Reporter: 7, First: 100, Count: 1}.AppendTo(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		before := r.stats
		if err := r.HandleAcks(9001, in); err == nil {
			t.Fatalf("HandleAcks(%x) takes a forged answer", in)
		}
		before.Unverified++
		if r.stats != before {
			t.Fatalf("HandleAcks(%x) made the stats %+v; want %+v", in, r.stats, before)
		}
	})
}
