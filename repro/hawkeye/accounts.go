package hawkeye

import (
	"errors"
	"fmt"

	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/lateness"
)

// accountDetections accounts for the late packets of new detections, as of the
// instant of each. Detections of a rate or a completion time have no packet.
func (r *run) accountDetections() error {
	for ; r.accounted < len(r.detections); r.accounted++ {
		d := &r.detections[r.accounted]
		if d.detectedBy != agent.RTT && d.detectedBy != agent.Age {
			continue
		}
		if first := r.firstVariant(r.accounted); first < r.accounted {
			d.account = r.detections[first].account
			continue
		}
		// The host's clock has whole nanoseconds.
		sent, ok := r.oracle.Nearest(d.key, d.at-engine.Of(d.latency))
		if !ok {
			return fmt.Errorf("no packet of %v is known", d.key)
		}
		switch a, err := r.oracle.AccountRoundTripAt(d.key, sent, d.at); {
		case err == nil:
			d.account = &a
		case !errors.Is(err, lateness.ErrLost):
			return err
		}
	}
	return nil
}

// firstVariant returns the first of the detections that are the same but for the
// epoch length: they follow each other.
func (r *run) firstVariant(i int) int { return i - r.detections[i].variant%len(r.lab.lengths) }

// attribution is a part of a packet's lateness, in neutral terms: those of the
// simulator and of any diagnosis can be compared. The location of a deadlock
// cycle is its first port.
type attribution struct {
	place model.Port
	kind  lateness.Kind
	flow  model.FlowKey // that contended
	host  model.NodeID  // that paused the port
	ns    float64
}

// exactAttributions returns an exact account in neutral terms.
func exactAttributions(a *lateness.Account) (list []attribution) {
	for _, t := range a.Terms {
		part := attribution{place: t.Place.Port, kind: t.Kind}
		if t.Kind == lateness.Unexplained {
			part.place = model.Port{}
		}
		if len(t.Parties) == 0 {
			part.ns = nanoseconds(t.Time)
			list = append(list, part)
		}
		for _, p := range t.Parties {
			part.flow, part.host, part.ns = p.Flow, p.Host, nanoseconds(p.Time)
			list = append(list, part)
		}
	}
	return list
}

func nanoseconds(t engine.Time) float64 { return float64(t) / float64(engine.Nanosecond) }
