package attribution

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

// TestAbsurdEvidence: intervals that overlap, end before they start or lie ages
// away, amounts below zero, feeds to queues that do not exist: the account still
// sums to the lateness.
func TestAbsurdEvidence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ev, v := anyWorld(t)
		addCurves(t, ev)
		absurd := rapid.SampledFrom([]int64{0, -1, 1, math.MaxInt64, math.MinInt64, int64(v.Sent), 1 << 40})
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			q := &ev.Queues[rapid.IntRange(0, len(ev.Queues)-1).Draw(t, "queue")]
			n := absurd.Draw(t, "value")
			switch rapid.IntRange(0, 13).Draw(t, "field") {
			case 0:
				q.Pauses = append(q.Pauses, Pause{From: model.Time(n), To: v.Sent + 5000, Bytes: model.Bytes(n)})
			case 1:
				q.Congestions = append(q.Congestions, Congestion{From: v.Sent - 3000, To: model.Time(n), Peak: model.Bytes(n)})
			case 2:
				q.Feeds = append(q.Feeds, Feed{To: int(n), Bytes: 1000, Until: math.MaxInt64})
			case 3:
				q.Rate = model.Rate(n)
			case 4:
				q.Delay = time.Duration(n)
			case 5:
				q.Threshold = model.Bytes(n)
			case 6:
				q.Depths = append(q.Depths, Depth{model.Time(n), model.Bytes(n)})
			case 7:
				q.Feeds = append(q.Feeds, Feed{To: 3, Bytes: model.Bytes(n), Held: true, From: model.Time(n), Until: math.MaxInt64})
			case 8:
				v.Path = append(v.Path, int(n))
			case 9:
				ev.Devices[0].ClockError = time.Duration(n)
			case 10:
				ev.Devices[1].Snapshot = model.Time(n)
			case 12:
				q.Curve = append(q.Curve, Depth{model.Time(n), model.Bytes(n)})
			case 13:
				q.Feeds = append(q.Feeds, Feed{To: 3, Bytes: model.Bytes(n), Curve: []Depth{{model.Time(n), model.Bytes(n)}, {v.Sent, 5000}}})
			case 11:
				q.Flows = append(q.Flows, FlowShare{Bytes: model.Bytes(n), From: model.Time(n), Until: v.Sent})
			}
		}
		a := Attribute(ev, v)
		sum := time.Duration(0)
		for i := range a.Terms {
			if a.Terms[i].Time <= 0 {
				t.Fatalf("term %+v", a.Terms[i])
			}
			sum += a.Terms[i].Time
		}
		if sum != a.Late {
			t.Fatalf("terms sum to %v, want %v", sum, a.Late)
		}
		line := a.Timeline(ev, v)
		line.Draw(plainNames{}, 20)
		a.Sentence(plainNames{})
	})
}

// plainNames names everything by number.
type plainNames struct{}

func (plainNames) Interface(p model.Port) string { return p.String() }
func (plainNames) Link(p model.Port) string      { return p.String() }
func (plainNames) Node(model.NodeID) string      { return "node" }
func (plainNames) Flow(k model.FlowKey) string   { return k.String() }
