package translate

import (
	"net/netip"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// keyRings are the MACs of an Intake for the reporters that have keys. The keys
// bound their number.
type keyRings struct {
	generation uint64
	rings      map[model.NodeID][]*dta.MAC
}

// find returns a reporter's MAC of a key id, or nil.
func (k *keyRings) find(gate Gate, reporter model.NodeID, id uint8) *dta.MAC {
	if g := gate.Generation(); k.rings == nil || g != k.generation {
		k.generation, k.rings = g, map[model.NodeID][]*dta.MAC{}
	}
	ring, ok := k.rings[reporter]
	if !ok {
		keys := gate.Keys(reporter)
		if len(keys) == 0 {
			return nil
		}
		for i := range keys {
			ring = append(ring, dta.NewMAC(keys[i].ID, keys[i].Secret[:]))
		}
		k.rings[reporter] = ring
	}
	for _, m := range ring {
		if m.ID() == id {
			return m
		}
	}
	return nil
}

// admit decides about a datagram before anything of its reporter is read. It
// returns the MAC that verified it, or nil for version 1.
func (in *Intake) admit(now model.Time, from netip.AddrPort, h *dta.Header, datagram []byte) (*dta.MAC, Refusal) {
	if in.gate == nil {
		if h.Signed {
			return nil, UnknownKey
		}
		return nil, Admitted
	}
	if why := in.gate.Datagram(now, from, h, len(datagram)); why != Admitted {
		return nil, why
	}
	if !h.Signed {
		if len(in.gate.Keys(h.Reporter)) > 0 {
			return nil, NoMAC
		}
		return nil, Admitted
	}
	mac := in.keys.find(in.gate, h.Reporter, h.KeyID)
	if mac == nil {
		return nil, UnknownKey
	}
	if !mac.Verify(datagram) {
		return nil, WrongMAC
	}
	// A start in the future would lock the reporter out when its clock is right
	// again.
	most := in.gate.TimeWindow()
	if age := now.Sub(h.Sent); age > most || age < -most || h.Start <= 0 || h.Start.Sub(now) > most {
		return nil, OutsideTimeWindow
	}
	return mac, Admitted
}

// admitReport decides about one report of an admitted datagram.
func (in *Intake) admitReport(now model.Time, r *dta.Report) Refusal {
	if in.gate == nil {
		return Admitted
	}
	return in.gate.Report(now, &in.head, r)
}

// admitRun reports whether all reports of a run are admitted; in.report is the
// first of them. It leaves the refusals to admitReport.
func (in *Intake) admitRun(now model.Time, run []byte, size int) bool {
	if in.gate == nil {
		return true
	}
	if in.gate.Report(now, &in.head, &in.report) != Admitted {
		return false
	}
	for run = run[size:]; len(run) > 0; run = run[size:] {
		_, _ = in.other.Parse(run) // NextRun has validated it
		if in.gate.Report(now, &in.head, &in.other) != Admitted {
			return false
		}
	}
	return true
}

// leastReport is the length of the shortest report: a Key-Write of one byte of
// key and no data.
const leastReport = 5

// claimedReports returns how many reports a datagram says that it has, at most as
// many as fit: a header alone must not move counters.
func claimedReports(h *dta.Header, size int) int {
	return min(int(h.Count), (size-h.Size())/leastReport)
}

// deny counts a datagram that is not admitted.
func (in *Intake) deny(from netip.AddrPort, why Refusal, reports int) {
	in.stats.DeniedDatagrams++
	in.stats.Reports += uint64(reports)
	in.stats.Denied += uint64(reports)
	in.stats.DeniedBy[why] += uint64(reports)
	if in.gate != nil {
		in.gate.Refused(from, why, reports)
	}
}

// denyReport counts one report that is not admitted.
func (in *Intake) denyReport(from netip.AddrPort, why Refusal) {
	in.stats.Denied++
	in.stats.DeniedBy[why]++
	in.gate.Refused(from, why, 1)
}
