package trace

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// TestPacketsInPausedQueues: a packet that is last seen where PFC pauses its queue is lost
// only if it does not appear once the queue is open.
func TestPacketsInPausedQueues(t *testing.T) {
	const ms = model.Time(time.Millisecond)
	path := pathTo(t, 15)
	for name, tc := range map[string]struct {
		pausedUntil int  // in ms; the queue is paused from 2 ms on
		interval    int  // of reports, in ms
		appears     int  // when the other switches mirror the packet; 0: never
		unknown     bool // nothing reports pauses
		want        End
		by          int // when its fate is known at the latest
	}{
		"open":                        {interval: 1, want: Lost, by: 12},
		"it appears after the pause":  {pausedUntil: 40, interval: 1, appears: 41, want: Arrived, by: 53},
		"it is lost after the pause":  {pausedUntil: 40, interval: 1, want: Lost, by: 64},
		"reports are rare":            {pausedUntil: 40, interval: 15, appears: 41, want: Arrived, by: 53},
		"reports come too rarely":     {pausedUntil: 40, interval: 500, appears: 0, want: Lost, by: 12},
		"the queue stays paused":      {pausedUntil: 5000, interval: 1, want: Unsettled, by: 1022},
		"what pauses it is not known": {pausedUntil: 40, interval: 1, unknown: true, want: Lost, by: 12},
	} {
		t.Run(name, func(t *testing.T) {
			var ended *Trace
			var at model.Time
			cfg := noPorts()
			cfg.CloseAfter, cfg.OutPorts = 10*time.Millisecond, true
			cfg.Pauses = func(_ *model.FlowKey, port model.Port) (Pauses, bool) {
				if out := outPort(t, path[0], path[1]); port != (model.Port{Node: path[0], Port: out}) {
					t.Errorf("asked for port %v, want port %d of %d", port, out, path[0])
				}
				read := at - at%(model.Time(tc.interval)*ms)
				until := min(read, model.Time(tc.pausedUntil)*ms)
				p := Pauses{Read: read, Interval: time.Duration(tc.interval) * time.Millisecond, Paused: max(until.Sub(2*ms), 0)}
				if p.Paused > 0 {
					p.Last = min(read, model.Time((tc.pausedUntil+tc.interval-1)/tc.interval*tc.interval)*ms)
				}
				return p, !tc.unknown
			}
			a, err := NewAssembler(cfg, intent, func(tr *Trace) { ended = tr.Clone() })
			if err != nil {
				t.Fatal(err)
			}
			show := func(hop int) {
				m := seen(path[hop], 15, uint8(64-hop), 7, at)
				next := model.NodeID(15)
				if hop+1 < len(path) {
					next = path[hop+1]
				}
				m.Out = outPort(t, path[hop], next)
				a.AddMirror(at, m)
			}
			for at = ms; at <= 1100*ms && ended == nil; at += ms {
				switch {
				case at == ms:
					show(0)
				case tc.appears != 0 && at == model.Time(tc.appears)*ms:
					for hop := range path[1:] {
						show(hop + 1)
					}
				default:
					a.Advance(at)
				}
			}
			switch {
			case ended == nil:
				t.Fatal("the trace never ended")
			case ended.End != tc.want || at > model.Time(tc.by)*ms:
				t.Errorf("%v at %v, want %v by %d ms", ended.End, time.Duration(at), tc.want, tc.by)
			}
			if n := a.Stats().Open; n > 0 {
				t.Errorf("%d traces are left, want none", n)
			}
		})
	}
}

// outPort is the port of a switch that leads to a node.
func outPort(t *testing.T, from, to model.NodeID) model.PortID {
	t.Helper()
	for i := range fabric.Node(from).Ports {
		if p := &fabric.Node(from).Ports[i]; p.Peer.Node == to {
			return p.ID
		}
	}
	t.Fatalf("no port of %d leads to %d", from, to)
	return 0
}
