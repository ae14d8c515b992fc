package hawkeye

import (
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/poll"
)

// makeCollectors makes a collector for each variant. Programs of two variants
// may take snapshots of one switch at the same nanosecond, for two detections;
// a single collector, for which a switch and a time name a snapshot, would
// treat the second as a conflict.
func (r *run) makeCollectors() error {
	for range len(r.lab.thresholds) * len(r.lab.lengths) {
		c, err := provenance.NewCollector(provenance.DefaultConfig(1 << 20))
		if err != nil {
			return err
		}
		r.collectors = append(r.collectors, c)
	}
	return nil
}

// collector returns that of the variant that a detection belongs to.
func (r *run) collector(ev poll.Event) *provenance.Collector {
	return r.collectors[int(ev.Number)%len(r.collectors)]
}

// evidence returns what has arrived about a detection.
func (r *run) evidence(ev poll.Event) *provenance.Evidence {
	e := r.collector(ev).Evidence(ev)
	if r.lab.removed.ports {
		return rewrite(e, withoutPorts)
	}
	return e
}

// receive takes a datagram of reports.
func (r *run) receive(at model.Time, _ model.NodeID, datagram []byte) {
	r.bytes += model.Bytes(len(datagram))
	var in dta.Reader
	var rep dta.Report
	if in.Reset(datagram) != nil {
		return
	}
	for in.Next(&rep) {
		var k epoch.Chunk
		if _, err := k.Parse(rep.Data); err == nil {
			_, _ = r.collector(k.Event).AddChunk(at, rep.Data) // the collector counts what it cannot use
		}
	}
}
