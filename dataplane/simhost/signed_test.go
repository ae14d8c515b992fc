package simhost

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/wire/dta"
)

// TestSwitchesAuthenticateTheirReports: with keys every datagram has the MAC of
// its switch's key, over both carriers, and no longer than the carrier takes.
func TestSwitchesAuthenticateTheirReports(t *testing.T) {
	secret := func(id model.NodeID) []byte { return []byte{byte(id), 1, 2, 3} }
	for _, inBand := range []bool{false, true} {
		n := dumbbell(t, sim.DefaultConfig())
		in := newInbox(t)
		verify := map[model.NodeID]*dta.MAC{4: dta.NewMAC(4, secret(4))}
		sink := func(at model.Time, from model.NodeID, datagram []byte) {
			var h dta.Header
			if _, err := h.Parse(datagram); err != nil || h.Signed != (from == 4) {
				t.Fatalf("switch %d sent %x: %+v, %v; want only switch 4 to authenticate", from, datagram, h, err)
			}
			if h.Signed && !verify[from].Verify(datagram) {
				t.Fatalf("switch %d sent %x, which does not verify", from, datagram)
			}
			in.take(at, from, datagram)
		}
		cfg := Config{
			Linger: 5 * time.Microsecond,
			Key: func(id model.NodeID) *dta.MAC {
				if id == 5 {
					return nil
				}
				return dta.NewMAC(uint8(id), secret(id))
			},
		}
		var err error
		if inBand {
			cfg.Carrier, err = NewInBand(n, InBandConfig{Collector: n.Fabric().Hosts()[0]}, sink)
		} else {
			cfg.Carrier, err = NewManagement(n, ManagementConfig{}, sink)
		}
		if err != nil {
			t.Fatal(err)
		}
		size := MaxReportData(cfg.Carrier) - dta.SignedOverhead
		a := attach(t, n, 4, cfg, &ticker{size: size})
		b := attach(t, n, 5, cfg, &ticker{size: 20})
		n.Run(200 * µs)
		for _, s := range []*Switch{a, b} {
			if st := balance(t, s); st.Delivered == 0 || st.Lost[TooLarge] > 0 {
				t.Errorf("in band %v: switch %d has %+v; want reports delivered, none too large", inBand, s.sw.ID, st)
			}
		}
	}
}
