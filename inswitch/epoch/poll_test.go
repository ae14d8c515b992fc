package epoch

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/poll"
	"github.com/weft-telemetry/weft/wire/roce"
)

// TestPollsFollowTheCause is Table 1 and Fig. 6 of the paper as cases.
func TestPollsFollowTheCause(t *testing.T) {
	traffic := func(r *rig, in, out model.PortID, paused bool) {
		if paused {
			r.pause(0, out, 3, 10*µs)
		}
		r.packet(5*µs, in, out, 3, flowKey(1), 3)
	}
	for name, tc := range map[string]struct {
		flag  poll.Flag
		route model.PortID
		setup func(r *rig)
		want  []sent
	}{
		"victim's path, no pause":               {poll.Victim, 2, func(r *rig) { traffic(r, 1, 2, false) }, []sent{{2, poll.Victim}}},
		"victim's path, paused":                 {poll.Victim, 2, func(r *rig) { traffic(r, 1, 2, true) }, []sent{{2, poll.Both}}},
		"victim's path ends at its host":        {poll.Victim, 4, func(r *rig) { traffic(r, 1, 4, true) }, nil},
		"no route":                              {poll.Victim, 0, func(*rig) {}, nil},
		"causes, traffic and pause":             {poll.Causes, 2, func(r *rig) { traffic(r, 1, 3, true) }, []sent{{3, poll.Causes}}},
		"causes, no traffic from there":         {poll.Causes, 2, func(r *rig) { traffic(r, 2, 3, true) }, nil},
		"causes, not paused: the end":           {poll.Causes, 2, func(r *rig) { traffic(r, 1, 3, false) }, nil},
		"causes end at a host":                  {poll.Causes, 2, func(r *rig) { traffic(r, 1, 4, true) }, nil},
		"both, one port":                        {poll.Both, 2, func(r *rig) { traffic(r, 1, 2, true) }, []sent{{2, poll.Both}}},
		"both, two ports":                       {poll.Both, 2, func(r *rig) { traffic(r, 1, 2, false); traffic(r, 1, 3, true) }, []sent{{2, poll.Victim}, {3, poll.Causes}}},
		"an old pause does not count":           {poll.Causes, 2, func(r *rig) { r.pause(0, 3, 3, µs); r.packet(5*µs, 1, 3, 3, flowKey(1), 0) }, nil},
		"what an old pause left is still there": {poll.Causes, 2, func(r *rig) { leftByPause(r, 2) }, []sent{{3, poll.Causes}}},
		"what an old pause left has gone":       {poll.Causes, 2, func(r *rig) { leftByPause(r, 0) }, nil},
		"useless":                               {0, 2, func(r *rig) { traffic(r, 1, 2, true) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, DefaultConfig())
			tc.setup(r)
			r.route = tc.route
			p := request
			p.Flag = tc.flag
			r.poll(max(100*µs, time.Duration(r.ev.Now)), 1, p)
			if !slices.Equal(r.sent, tc.want) {
				t.Errorf("passed on %v; want %v", r.sent, tc.want)
			}
			if r.act.Verdict != inswitch.Consumed {
				t.Error("the poll went on with the traffic; want it taken")
			}
		})
	}
}

// leftByPause queues a packet while port 3 is paused, and others at port 3 once the epochs of
// the pause are no longer kept: the first of them finds a number of packets queued.
func leftByPause(r *rig, found int32) {
	r.pause(0, 3, 3, 10*µs)
	r.packet(5*µs, 1, 3, 3, flowKey(1), 3)
	for epoch := range 4 {
		r.packet(time.Duration(epoch+1)*r.cfg.EpochLength, 1, 3, 3, flowKey(1), found+int32(epoch))
	}
}

// TestMemoryScalesWithTheBuffer: intervals are reported for as long in every network,
// compared with how long a link takes for the buffer.
func TestMemoryScalesWithTheBuffer(t *testing.T) {
	ports := func(rates ...model.Rate) (list []inswitch.Port) {
		for _, r := range rates {
			list = append(list, inswitch.Port{Rate: r})
		}
		return list
	}
	for name, tc := range map[string]struct {
		inswitch.Device
		want time.Duration
	}{
		"the paper's network":        {inswitch.Device{Buffer: 3 * model.MB, Ports: ports(100 * model.Gbps)}, 9600 * µs},
		"a slower link":              {inswitch.Device{Buffer: 3 * model.MB, Ports: ports(100*model.Gbps, 25*model.Gbps)}, 38400 * µs},
		"a larger buffer":            {inswitch.Device{Buffer: 12 * model.MB, Ports: ports(100 * model.Gbps)}, 38400 * µs},
		"more than a report can say": {inswitch.Device{Buffer: 64 * model.MB, Ports: ports(model.Mbps)}, time.Duration(epoch.MaxAge)},
		"unknown buffer":             {inswitch.Device{Ports: ports(100 * model.Gbps)}, pauseMemory},
		"unknown rate":               {inswitch.Device{Buffer: 3 * model.MB, Ports: ports(0)}, pauseMemory},
	} {
		if got := memoryOf(&tc.Device); got != tc.want {
			t.Errorf("%s: %v; want %v", name, got, tc.want)
		}
	}
}

// TestReportsHoldWhatPollsFollow: a neighbour that sends no more waits for a
// queue that others still use. The poll goes there for what it sent last, and
// the report says so.
func TestReportsHoldWhatPollsFollow(t *testing.T) {
	cfg := DefaultConfig()
	r := newRig(t, cfg)
	r.packet(5*µs, 1, 3, 3, flowKey(1), 3)
	r.packet(6*µs, 1, 2, 3, flowKey(2), 3) // to a port that is not paused
	r.pause(10*µs, 3, 3, 10*time.Millisecond)
	for at := 100 * µs; at < 4*cfg.EpochLength; at += 100 * µs {
		r.packet(at, 2, 3, 3, flowKey(3), 3)
	}
	p := request
	p.Flag = poll.Causes
	if r.poll(4*cfg.EpochLength, 1, p); !slices.Equal(r.sent, []sent{{3, poll.Causes}}) {
		t.Fatalf("passed on %v; want it where the last traffic went", r.sent)
	}
	var old []epoch.Meter
	for _, m := range readAnswer(r.reports(4*cfg.EpochLength + cfg.ReadoutTime)).Meters {
		if m.Epoch == 0 {
			old = append(old, m)
		}
	}
	if want := []epoch.Meter{{In: 1, Out: 3, Priority: 3, Packets: 1, Bytes: 1000}}; !slices.Equal(old, want) {
		t.Errorf("the report of the first epoch is %+v; want %+v", old, want)
	}
}

func TestAVisitOnTheVictimsPathDoesNotHideTheCause(t *testing.T) {
	r := newRig(t, DefaultConfig())
	r.route = 2
	r.pause(0, 2, 3, time.Millisecond)
	r.packet(1*µs, 1, 2, 3, flowKey(1), 1)
	r.poll(10*µs, 1, request)
	p := request
	p.Flag = poll.Both
	if r.poll(11*µs, 1, p); !slices.Equal(r.sent, []sent{{2, poll.Causes}}) {
		t.Errorf("passed on %v after a visit with flag victim; want the causes only", r.sent)
	}
	if r.poll(12*µs, 1, p); len(r.sent) != 0 || r.Stats().Duplicates != 1 {
		t.Errorf("passed on %v the third time, %+v; want nothing, and counted", r.sent, r.Stats())
	}
	if r.poll(12*µs, 3, p); len(r.sent) == 0 {
		t.Error("nothing passed on for a poll by another port; want it taken")
	}
	if r.poll(time.Second, 1, p); len(r.sent) == 0 {
		t.Error("nothing passed on a second later; want the poll taken again")
	}
}

// TestPollsTurnRound: at the victim's last switch a poll goes back on the path of the
// acknowledgements, if the queues of the victim's path cannot have delayed it so long.
func TestPollsTurnRound(t *testing.T) {
	const late = 20 * µs
	for name, tc := range map[string]struct {
		setup func(r *rig)
		late  time.Duration
		want  []sent
	}{
		"nothing waited":                    {func(*rig) {}, late, []sent{{2, poll.Victim}}},
		"no lateness to explain":            {func(*rig) {}, 0, nil},
		"the queue to the host is paused":   {func(r *rig) { r.pause(50*µs, 4, 3, 100*µs) }, late, nil},
		"it was paused, too short":          {func(r *rig) { r.pause(90*µs, 4, 3, 5*µs) }, late, []sent{{2, poll.Victim}}},
		"it was paused, too early":          {func(r *rig) { r.pause(10*µs, 4, 3, 40*µs) }, late, []sent{{2, poll.Victim}}},
		"the acknowledgements' port paused": {func(r *rig) { r.pause(50*µs, 2, 3, 100*µs); r.packet(60*µs, 4, 2, 3, flowKey(2), 3) }, late, []sent{{2, poll.Both}}},
		"the receiver's packets paused":     {func(r *rig) { r.pause(50*µs, 3, 3, 100*µs); r.packet(60*µs, 4, 3, 3, flowKey(2), 3) }, late, []sent{{2, poll.Victim}, {3, poll.Causes}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, DefaultConfig())
			tc.setup(r)
			r.route, r.back = 4, 2
			p := request
			p.Unexplained = poll.LatenessOf(tc.late)
			r.poll(max(100*µs, time.Duration(r.ev.Now)), 1, p)
			if !slices.Equal(r.sent, tc.want) {
				t.Errorf("passed on %v; want %v", r.sent, tc.want)
			}
			for _, s := range r.act.Sends {
				var got poll.Poll
				if _, err := got.Parse(s.Content); err != nil || !got.Returning || got.Flow != roce.AckKey(request.Flow) {
					t.Errorf("sent %+v, %v; want it on the path of the acknowledgements", got, err)
				}
			}
		})
	}
}

// TestAnswersSayThatThePollReturned: its path was longer, which matters where it aligns clocks.
func TestAnswersSayThatThePollReturned(t *testing.T) {
	cfg := DefaultConfig()
	r := newRig(t, cfg)
	p := request
	p.Returning = true
	r.poll(10*µs, 1, p)
	second := request
	second.Event.Number = 2
	r.poll(20*µs, 1, second)
	got := r.reports(cfg.ReadoutTime + 10*µs)
	if len(got) != 2 || got[0].Flags&epoch.Returning == 0 || got[1].Flags&epoch.Returning != 0 {
		t.Errorf("chunks %+v; want the first flagged as returning alone", got)
	}
}

func TestOneSnapshotAnswersTwoRequests(t *testing.T) {
	cfg := DefaultConfig()
	r := newRig(t, cfg)
	r.packet(1*µs, 1, 2, 3, flowKey(1), 1)
	r.poll(10*µs, 1, request)
	second := request
	second.Event.Number = 2
	r.poll(20*µs, 1, second)
	r.packet(30*µs, 1, 3, 3, flowKey(2), 1) // after the freeze
	if got := r.reports(cfg.ReadoutTime); len(got) != 0 {
		t.Fatalf("%d chunks before the switch CPU is done; want none", len(got))
	}
	got := r.reports(cfg.ReadoutTime + 10*µs)
	if len(got) != 2 || got[0].Event.Number != 1 || got[1].Event.Number != 2 || got[1].Flags != epoch.ByReference || got[1].Snapshot != got[0].Snapshot {
		t.Fatalf("chunks %+v; want the records for the first, a reference for the second", got)
	}
	var asked epoch.PollRef
	if _, err := asked.Parse(got[1].Records); err != nil || asked.ReceivedAt.Sub(got[0].Snapshot) != 10*µs {
		t.Errorf("the second was asked at %v, %v; want 10 µs after the snapshot at %v", asked.ReceivedAt, err, got[0].Snapshot)
	}
	if a := readAnswer(got); len(a.Flows) != 1 || a.Flows[0].Key != flowKey(1) {
		t.Errorf("flows %+v; want the one of before the freeze", a.Flows)
	}
	if s := r.Stats(); s.Snapshots != 1 || s.SnapshotsReused != 1 {
		t.Errorf("stats %+v; want one snapshot, reused once", s)
	}
}

func TestMalformedPollsAndHopLimit(t *testing.T) {
	r := newRig(t, DefaultConfig())
	r.route = 2
	p := request
	p.HopLimit = 0
	if r.poll(0, 1, p); len(r.sent) != 0 || r.Stats().HopLimitExceeded != 1 {
		t.Errorf("passed on %v with no hop left, %+v; want nothing", r.sent, r.Stats())
	}
	r.poll(0, 1, request)
	r.frame = r.frame[:20]
	r.show()
	if r.Stats().Malformed != 1 {
		t.Errorf("stats %+v of a poll that is cut off; want it counted", r.Stats())
	}
}
