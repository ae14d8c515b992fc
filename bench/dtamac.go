package bench

import (
	"context"
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// macGoal is the least share of the rate without MACs that remains with them.
const macGoal = 0.5

// compareMAC sends the same reports with a MAC to one collector, and without to
// another, in turn.
func compareMAC(ctx context.Context) ([]Result, error) {
	rows := wireRows()
	plain, err := startWeft(ctx, rows, wireDatagram, true)
	if err != nil {
		return nil, err
	}
	defer plain.close()
	signed, err := startSigned(ctx, rows)
	if err != nil {
		return nil, err
	}
	defer signed.close()
	start := time.Now()
	clock := func() time.Duration { return time.Since(start) }
	with, without, err := pairedRounds(ctx, wireRounds, clock,
		roundWork{ready: signed.sign, ops: wireReports, times: 2, run: signed.insert},
		roundWork{ops: wireReports, times: 2, run: func() error { return plain.insert(0, wireReports) }})
	if err != nil {
		return nil, err
	}
	return []Result{comparePaired(wireName+", with a MAC", with, "M/s", "the same without a MAC", without, macGoal)}, nil
}

// signedInserter is a reporter that authenticates, and its collector.
type signedInserter struct {
	*loopback
	plain  [][]byte
	signed [][]byte
	per    int // reports of a datagram
	mac    *dta.MAC
	start  model.Time
	seq    dta.Seq
}

func startSigned(ctx context.Context, rows []byte) (*signedInserter, error) {
	plain, err := pack(rows, wireDatagram-dta.SignedOverhead)
	if err != nil {
		return nil, err
	}
	gate := keyGate{keys: []translate.GateKey{{ID: 1}}}
	s := &signedInserter{
		plain: plain, signed: make([][]byte, len(plain)), per: (wireReports + len(plain) - 1) / len(plain),
		mac: dta.NewMAC(1, gate.keys[0].Secret[:]), start: model.TimeOf(time.Now()),
	}
	s.loopback, err = openLoopback(ctx, true, &gate)
	return s, err
}

// sign makes the datagrams of the next round. The switches do this, so it is not
// timed.
func (s *signedInserter) sign() {
	sent := model.TimeOf(time.Now())
	for i, d := range s.plain {
		var h dta.Header
		_, _ = h.Parse(d) // our own, so it parses
		h.Seq = s.seq
		h.AppendTo(d[:0])
		s.seq += dta.Seq(h.Count)
		s.signed[i], _ = s.mac.AppendSigned(s.signed[i][:0], d, s.start, sent+model.Time(i))
	}
}

func (s *signedInserter) insert() error {
	return s.send(s.signed, s.per, func([]byte) error { return nil })
}

// keyGate is a Gate that knows the keys of all reporters and admits everything.
type keyGate struct{ keys []translate.GateKey }

func (*keyGate) Datagram(model.Time, netip.AddrPort, *dta.Header, int) translate.Refusal {
	return translate.Admitted
}

func (*keyGate) Prototype(model.Time, netip.AddrPort, int) translate.Refusal {
	return translate.Admitted
}

func (*keyGate) Report(model.Time, *dta.Header, *dta.Report) translate.Refusal {
	return translate.Admitted
}

func (g *keyGate) Keys(model.NodeID) []translate.GateKey { return g.keys }
func (*keyGate) Generation() uint64                      { return 1 }
func (*keyGate) TimeWindow() time.Duration               { return 10 * time.Second }

func (*keyGate) Refused(netip.AddrPort, translate.Refusal, int) {}
