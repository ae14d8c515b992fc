package control

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/audit"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
)

const (
	// auditShare is the least error of a source that is named.
	auditShare = 0.007
	// addedShare is the same where switches add to the traffic: counters include labels and
	// polls, which flowsets do not.
	addedShare = 0.03
	// pollsLast is for how long after an answer polls may be in a window of the audit.
	pollsLast = 2 * time.Second
)

// pollTime is when polls were last answered.
type pollTime struct {
	reports uint64
	until   model.Time
}

// auditSlot has the sources of a slot compared with each other. A slot that was analysed in
// other processes has no maps.
func (c *Controller) auditSlot(s *flowwatch.Slot) {
	if s.Remote() || c.auditor == nil {
		return
	}
	if n := c.stats.Reports[Epoch]; n != c.polled.reports {
		c.polled = pollTime{n, s.Start().Add(pollsLast)}
	}
	packets, bytes := auditShare, auditShare
	if c.stats.Reports[Label] > 0 {
		bytes = addedShare
	}
	if s.Start() < c.polled.until {
		packets, bytes = addedShare, addedShare
	}
	c.auditor.SetShares(packets, bytes)
	c.auditor.AddSlot(s.Index, s.Decoded, s.Parts())
}

// auditCounters has the counters of a port compared with other sources.
func (c *Controller) auditCounters(k *PortCounters) {
	c.auditor.AddTotals(&audit.Totals{
		Port: k.Port, At: k.At, HasPackets: k.Packets > 0, HasBytes: true, TxPackets: k.Packets, TxBytes: k.Bytes,
	})
}

// doubtIncidents has open incidents not rely on sources that are wrong at their place.
func (c *Controller) doubtIncidents() {
	if c.auditor == nil {
		return
	}
	findings := c.auditor.Findings()
	if len(findings) == 0 {
		return
	}
	for _, in := range c.correlator.OpenIncidents() {
		for i := range findings {
			if f := &findings[i]; restsOn(in, f) {
				source := anomaly.Counters
				if f.Kind == audit.Flowset {
					source = anomaly.Flowsets
				}
				c.correlator.Doubt(in, source, c.wrongText(f))
			}
		}
	}
}

// restsOn reports whether an incident is where a source is wrong. What flowsets show is a
// difference of two switches.
func restsOn(in *incident.Incident, f *audit.Finding) bool {
	if f.Kind == audit.Flowset {
		return in.Location.Node == f.Port.Node || in.HasNextHop && in.NextHop == f.Port.Node
	}
	return in.Location == f.Port || in.Location == model.Port{Node: f.Port.Node}
}

// wrongSources are the sources that are wrong, in the API's words.
func (c *Controller) wrongSources() []api.WrongSource {
	list := []api.WrongSource{}
	for _, f := range c.auditor.Findings() {
		w := api.WrongSource{
			Switch: c.nodeName(f.Port.Node), Source: f.Kind.String(), State: f.State.String(), Share: f.Share, Witnesses: f.Witnesses,
			First: c.wallTime(f.First), Last: c.wallTime(f.Last), Text: c.wrongText(&f),
		}
		if f.Protocol != portstat.UnknownSource {
			w.Protocol = f.Protocol.String()
		}
		if f.At.Port != 0 {
			p := c.portRef(f.At)
			w.Port = &p
		}
		list = append(list, w)
	}
	return list
}

// wrongText is what is wrong with a source, as a sentence without its full stop.
func (c *Controller) wrongText(f *audit.Finding) string {
	what := fmt.Sprintf("counter of %s at %s", f.Kind, c.portName(f.Port))
	if f.Kind == audit.Flowset {
		what = "flowset of " + c.nodeName(f.Port.Node)
	}
	if f.Protocol != portstat.UnknownSource {
		what += " by " + f.Protocol.String()
	}
	switch f.State {
	case audit.Resetting:
		return what + " was reset"
	case audit.Silent:
		return what + " counts nothing while packets pass"
	}
	direction := "many"
	if f.Share < 0 {
		direction = "few"
	}
	return fmt.Sprintf("%s counts %s too %s, by %d others of the same packets", what, model.FormatShare(max(f.Share, -f.Share)), direction, f.Witnesses)
}
