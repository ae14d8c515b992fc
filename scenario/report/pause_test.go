package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
)

func TestPausedQueues(t *testing.T) {
	pause := func(at model.Time, hold time.Duration) PauseEvent {
		return PauseEvent{At: at, Pause: true, Hold: hold}
	}
	resume := func(at model.Time) PauseEvent { return PauseEvent{At: at} }
	for name, tc := range map[string]struct {
		events []PauseEvent
		want   []span
	}{
		"pause and resume":            {[]PauseEvent{pause(10, 0), resume(30)}, []span{{10, 30}}},
		"refreshed":                   {[]PauseEvent{pause(10, 20), pause(25, 20), resume(40)}, []span{{10, 40}}},
		"runs out":                    {[]PauseEvent{pause(10, 20)}, []span{{10, 30}}},
		"runs out, resume comes late": {[]PauseEvent{pause(10, 20), resume(50)}, []span{{10, 30}}},
		"runs out between pauses":     {[]PauseEvent{pause(10, 20), pause(50, 20)}, []span{{10, 30}, {50, 70}}},
		"refreshed at the last":       {[]PauseEvent{pause(10, 20), pause(30, 20)}, []span{{10, 30}, {30, 50}}},
		"a shorter one replaces":      {[]PauseEvent{pause(10, 60), pause(20, 5)}, []span{{10, 25}}},
		"open at the end":             {[]PauseEvent{pause(90, 0)}, []span{{90, 100}}},
		"held past the end":           {[]PauseEvent{pause(90, 50)}, []span{{90, 100}}},
		"resume alone":                {[]PauseEvent{resume(10)}, nil},
		"resumed at once":             {[]PauseEvent{pause(10, 0), resume(10)}, nil},
		"out of order":                {[]PauseEvent{resume(30), pause(10, 0)}, []span{{10, 30}}},
	} {
		r := &Run{End: 100, Pauses: tc.events}
		queues := r.pausedQueues()
		if len(queues) != 1 {
			t.Errorf("%s: %d queues; want 1", name, len(queues))
			continue
		}
		if diff := cmp.Diff(tc.want, queues[0].spans, cmp.AllowUnexported(span{})); diff != "" {
			t.Errorf("%s: spans differ (-want +got):\n%s", name, diff)
		}
		var total time.Duration
		for _, s := range tc.want {
			total += s.length()
		}
		if queues[0].total != total {
			t.Errorf("%s: total = %v; want %v", name, queues[0].total, total)
		}
	}
}

func TestPausedQueuesKeepApart(t *testing.T) {
	r := &Run{End: 100, Pauses: []PauseEvent{
		{At: 1, ID: 2, Port: 1, Priority: 3, Pause: true},
		{At: 2, ID: 1, Port: 2, Priority: 3, Pause: true},
		{At: 3, ID: 1, Port: 2, Priority: 4, Pause: true},
		{At: 4, ID: 1, Port: 1, Priority: 3, Pause: true},
		{At: 5, ID: 1, Port: 2, Priority: 3},
	}}
	var got []time.Duration
	for _, q := range r.pausedQueues() {
		got = append(got, q.total)
	}
	want := []time.Duration{96, 3, 97, 99} // 1:1, 1:2 priority 3, 1:2 priority 4, 2:1
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paused times by node, port, priority differ (-want +got):\n%s", diff)
	}
}
