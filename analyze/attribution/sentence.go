package attribution

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Names gives the names that a sentence uses.
type Names interface {
	Interface(model.Port) string // "leaf5 Ethernet4"
	Link(model.Port) string      // "leaf5 Ethernet4 → tor5"
	Node(model.NodeID) string
	Flow(model.FlowKey) string // "h4 → h10"
}

// FabricNames returns the names of a fabric.
func FabricNames(f *topo.Fabric) Names { return fabricNames{f} }

type fabricNames struct{ fabric *topo.Fabric }

func (n fabricNames) Interface(p model.Port) string {
	return strings.Replace(n.fabric.PortRef(p), ":", " ", 1)
}
func (n fabricNames) Link(p model.Port) string { return n.fabric.PortName(p) }

func (n fabricNames) Node(id model.NodeID) string {
	if n.fabric.HasNode(id) {
		return n.fabric.Node(id).Name
	}
	return fmt.Sprintf("node %d", id)
}

func (n fabricNames) Flow(k model.FlowKey) string {
	name := func(a model.Addr) string {
		if id, ok := n.fabric.ByAddr(a); ok {
			return n.Node(id)
		}
		return a.String()
	}
	return name(k.Src) + " → " + name(k.Dst)
}

// Sentence returns the account in one sentence. Its times are rounded to two
// digits of the lateness, and sum to it.
func (a *Account) Sentence(names Names) string {
	flow := names.Flow(a.Flow)
	if a.Late <= 0 {
		return flow + " was not late"
	}
	w := sentenceWriter{account: a, names: names, unit: twoDigits(a.Late)}
	for i := range a.Terms {
		if t := &a.Terms[i]; t.Kind != Unexplained {
			w.cause(t)
		}
	}
	w.unexplained()
	late := model.FormatDuration(a.Late.Round(w.unit))
	if a.InFlight {
		return fmt.Sprintf("%s is in flight and late by %s: %s", flow, late, strings.Join(w.clauses, "; "))
	}
	return fmt.Sprintf("%s was late by %s: %s", flow, late, strings.Join(w.clauses, "; "))
}

// twoDigits returns the unit of the second digit of a duration.
func twoDigits(d time.Duration) time.Duration {
	return max(1, time.Duration(math.Pow10(int(math.Log10(float64(d)))-1)))
}

type sentenceWriter struct {
	account *Account
	names   Names
	unit    time.Duration
	sum     time.Duration // of what was written, unrounded
	clauses []string
}

// time rounds a part so that the rounded parts sum to the rounded whole; false
// if nothing is left of it.
func (w *sentenceWriter) time(d time.Duration) (string, bool) {
	from := w.sum.Round(w.unit)
	w.sum += d
	d = w.sum.Round(w.unit) - from
	return model.FormatDuration(d), d > 0
}

func (w *sentenceWriter) add(format string, args ...any) {
	w.clauses = append(w.clauses, fmt.Sprintf(format, args...))
}

// cause writes the clauses of a term: one for each queue of the path in which the packet was
// paused, and one for its wait at the place itself.
func (w *sentenceWriter) cause(t *Term) {
	left, because := t.Time-t.Queued, w.because(t)
	var through []string
	for i := range t.Via {
		if v := &t.Via[i]; v.Waited == 0 && v.Time >= w.unit/2 && !w.inCycle(t, v.Place) {
			through = append(through, w.names.Interface(v.Port))
		}
	}
	if len(through) > 0 {
		because += ", through " + strings.Join(through, " and ")
	}
	var parts []string
	for i := range t.Via {
		v := &t.Via[i]
		waited := min(v.Waited, left)
		left -= waited
		if text, ok := w.time(waited); ok && v.Waited > 0 {
			if 2*v.Behind > v.Waited {
				text += " behind the backlog of a pause at "
			} else {
				text += " paused at "
			}
			parts = append(parts, text+w.names.Interface(v.Port))
		}
	}
	if len(parts) > 0 {
		if !strings.HasPrefix(because, "by ") {
			because = ", " + because
		} else {
			because = " " + because
		}
		w.add("%s%s", strings.Join(parts, " and "), because)
	}
	if text, ok := w.time(t.Queued + left); ok {
		if len(parts) > 0 {
			w.add("%s queued there", text)
		} else {
			w.add("%s queued at %s, %s", text, w.names.Link(t.Place.Port), congestedBy(t, w.names))
		}
	}
}

func (w *sentenceWriter) inCycle(t *Term, p Place) bool {
	if t.Deadlock < 0 {
		return false
	}
	for _, c := range w.account.Deadlocks[t.Deadlock].Cycle {
		if c.Queue == p.Queue {
			return true
		}
	}
	return false
}

// because returns why the packet was paused.
func (w *sentenceWriter) because(t *Term) string {
	switch t.Kind {
	case Contention:
		return "because " + w.names.Link(t.Place.Port) + " was " + congestedBy(t, w.names)
	case HostInjection:
		if len(t.Via) == 1 && t.Via[0].Queue == t.Place.Queue {
			return "by pause frames from " + w.names.Node(t.Place.Peer.Node)
		}
		return "because " + w.names.Node(t.Place.Peer.Node) + " sent pause frames to " + w.names.Interface(t.Place.Port)
	}
	d := &w.account.Deadlocks[t.Deadlock]
	var cycle []string
	for _, p := range d.Cycle {
		cycle = append(cycle, w.names.Link(p.Port))
	}
	text := fmt.Sprintf("because of a deadlock cycle of %s (%s)", plural.Count(len(cycle), "queue"), strings.Join(cycle, ", "))
	if d.Persistent {
		text = strings.Replace(text, "a deadlock", "a persistent deadlock", 1)
	}
	switch {
	case d.Trigger == nil:
		return text
	case d.TriggerKind == HostInjection:
		return text + ", triggered by pause frames from " + w.names.Node(d.Trigger.Peer.Node)
	}
	return text + ", triggered by congestion of " + w.names.Link(d.Trigger.Port)
}

// congestedBy returns "congested by 9 flows".
func congestedBy(t *Term, names Names) string {
	switch len(t.Culprits) {
	case 0:
		return "congested"
	case 1:
		return "congested by " + names.Flow(t.Culprits[0].Flow)
	}
	return "congested by " + plural.Count(len(t.Culprits), "flow")
}

// unexplained writes what no cause explains, and what reports would.
func (w *sentenceWriter) unexplained() {
	sum := time.Duration(0)
	var missing []string
	for i := range w.account.Terms {
		t := &w.account.Terms[i]
		if t.Kind != Unexplained {
			continue
		}
		sum += t.Time
		if t.Place == nil {
			continue
		}
		switch t.Reason {
		case NoReport:
			missing = append(missing, "no report from "+w.names.Node(t.Place.Port.Node))
		case NoPeerReport:
			missing = append(missing, "no report from "+w.names.Node(t.Place.Peer.Node))
		case TooEarly:
			missing = append(missing, w.names.Interface(t.Place.Port)+" was paused before the reported intervals")
		case TooLate:
			missing = append(missing, w.names.Node(t.Place.Port.Node)+" reported an earlier snapshot")
		}
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	text, ok := w.time(sum)
	switch {
	case !ok:
	case len(missing) > 0:
		w.add("%s unexplained (%s)", text, strings.Join(missing, ", "))
	default:
		w.add("%s unexplained", text)
	}
}
