package commodity

import (
	"fmt"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/commodity"
	"github.com/weft-telemetry/weft/model"
)

// score counts verdicts of runs with one fault each.
type score struct {
	runs, found  int // runs, and those with a right verdict
	right, wrong int // verdicts: one for each cause and place of a run
	notices      int // contention of flows, which is load and no fault: not scored
}

func (s *score) add(o score) {
	s.runs, s.found = s.runs+o.runs, s.found+o.found
	s.right, s.wrong, s.notices = s.right+o.right, s.wrong+o.wrong, s.notices+o.notices
}

func (s *score) precision() float64 {
	if s.right+s.wrong == 0 {
		return 1
	}
	return float64(s.right) / float64(s.right+s.wrong)
}

func (s *score) recall() float64 { return float64(s.found) / float64(max(s.runs, 1)) }

func (s *score) String() string {
	return fmt.Sprintf("precision %.2f, recall %.2f", s.precision(), s.recall())
}

// cell is precision and recall in a table. Without verdicts there is no precision.
func (s *score) cell() string {
	if s.right+s.wrong == 0 {
		return fmt.Sprintf("– / %.2f", s.recall())
	}
	return fmt.Sprintf("%.2f / %.2f", s.precision(), s.recall())
}

// statement is what a verdict says: repeated each round, it is still one.
type statement struct {
	cause anomaly.Cause
	at    model.Port
}

// score compares the verdicts of a view with what was injected. A verdict is right if
// cause and place are, its intervals overlap the fault, and the flows that it names
// as culprits of an incast are that incast's.
func (r *run) score(v view) (s score) {
	s.runs = 1
	said := map[statement]bool{} // whether it is right in its final form
	var order []statement
	for i := range r.verdicts[v] {
		d := &r.verdicts[v][i]
		what := statement{d.Cause, d.Location}
		if d.Cause == anomaly.Imbalance {
			what.at = model.Port{} // one incident of the fabric
		}
		if _, known := said[what]; !known {
			order = append(order, what)
		}
		said[what] = said[what] || r.isRight(d)
	}
	for _, what := range order {
		switch {
		case what.cause.Severity() == anomaly.Notice:
			s.notices++
		case said[what]:
			s.right++
			s.found = 1
		default:
			s.wrong++
		}
	}
	return s
}

func (r *run) isRight(d *commodity.Verdict) bool {
	f := &r.fault
	if d.To <= model.Time(f.start) || d.From >= model.Time(f.end) {
		return false
	}
	switch f.kind {
	case storm:
		return d.Cause == anomaly.Storm && d.Location.Node == f.host
	case slowReceiver:
		return d.Cause == anomaly.SlowReceiver && d.Location.Node == f.host
	case incast:
		return d.Cause == anomaly.Incast && d.Location == r.fabric.Node(f.host).Ports[0].Peer && r.namesSenders(d)
	case imbalance:
		return d.Cause == anomaly.Imbalance
	case blackhole:
		return d.Cause == anomaly.Blackhole && d.Location.Node == f.at
	}
	return false
}

// namesSenders reports whether most of the culprits' bytes are of the incast's
// flows.
func (r *run) namesSenders(d *commodity.Verdict) bool {
	all, right := uint64(0), uint64(0)
	for i := range d.Culprits {
		c := &d.Culprits[i]
		all += c.Bytes
		from, _ := r.fabric.ByAddr(c.Flow.Src)
		to, _ := r.fabric.ByAddr(c.Flow.Dst)
		for _, s := range r.fault.senders {
			if s == from && to == r.fault.host {
				right += c.Bytes
			}
		}
	}
	return all > 0 && right > all/2
}
