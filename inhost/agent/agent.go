package agent

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/poll"
)

// Reason says why a flow was complained about.
type Reason uint8

// Reasons.
const (
	RTT    Reason = iota // a packet was acknowledged late
	Age                  // a packet is not acknowledged yet
	Rate                 // fewer bytes were acknowledged than the flow may expect
	Finish               // the flow, or the job it belongs to, took too long
	Turn                 // nothing is wrong that is known: it was this flow's turn
	Look                 // the analysis wants to look again
)

var reasonNames = [...]string{RTT: "round-trip time", Age: "unacknowledged", Rate: "rate", Finish: "completion time", Turn: "turn", Look: "second look"}

// String prints the reason.
func (r Reason) String() string { return reasonNames[r] }

// Config says when a flow suffers.
type Config struct {
	Host model.NodeID
	// Late is how many times its base a round-trip time may be; Limit, if it is
	// not 0, is an absolute bound in its place.
	Late  float64
	Limit time.Duration
	// Slow is the least share of its expected rate that a flow must get in
	// each Window; 0 does not look at rates.
	Slow   float64
	Window time.Duration
	// Overdue is how many times its expected time a flow or job may take; 0
	// does not look.
	Overdue float64
	// Turn is the interval at which flows are polled one after another; 0
	// polls only those that suffer.
	Turn time.Duration

	Again    time.Duration // between two polls about one flow, at least
	PerHost  time.Duration // between two polls of this host, at least
	HopLimit uint8
}

// DefaultConfig complains about three times the base round-trip time, a flow at
// most every 3 ms.
func DefaultConfig(host model.NodeID) Config {
	return Config{Host: host, Late: 3, Again: 3 * time.Millisecond, PerHost: 10 * time.Microsecond, HopLimit: 32}
}

// Check complains about what cannot work.
func (c *Config) Check() error {
	switch {
	case c.Limit < 0 || c.Limit == 0 && !(c.Late > 1):
		return fmt.Errorf("agent: round-trip limit %v or %v times the base, want a time above 0 or more than 1", c.Limit, c.Late)
	case c.Slow < 0 || c.Slow > 1 || c.Slow > 0 && c.Window <= 0:
		return fmt.Errorf("agent: share %v of the rate in windows of %v, want 0 to 1 and a window", c.Slow, c.Window)
	case c.Overdue < 0 || c.Overdue > 0 && c.Overdue < 1:
		return fmt.Errorf("agent: %v times the expected time, want 0 or at least 1", c.Overdue)
	case c.Turn < 0 || c.Again < 0 || c.PerHost < 0:
		return fmt.Errorf("agent: turn %v, again %v, per host %v; want none below 0", c.Turn, c.Again, c.PerHost)
	case c.HopLimit == 0:
		return fmt.Errorf("agent: hop limit 0, want at least 1")
	}
	return nil
}

// Trigger is a complaint. Its Poll is to be sent towards the fabric, by a queue
// that PFC never pauses.
type Trigger struct {
	Poll   poll.Poll
	Reason Reason
	Value  time.Duration // what was measured: a time; of Rate the window
	Limit  time.Duration // what it should have been at most
}

// Expect is what is known about a flow when it starts.
type Expect struct {
	BaseRTT time.Duration // without queues
	Rate    model.Rate    // it may expect; 0: not known
	Finish  time.Duration // of the flow or job; 0: not known
}

// Stats account for complaints.
type Stats struct {
	Polls      uint64
	Suppressed uint64 // complaints within Again or PerHost of another
	Late       uint64 // acknowledgements beyond the limit
}

// Agent watches the flows that start at one host. Memory is constant per flow:
// a few packets at a time are measured, spread over a base round trip, and
// while they are on their way they tell the age of the oldest unacknowledged
// one from below. One at a time would be blind while it is underway: a queue
// that fills up and drains again within three round trips shows its worst only
// to packets sent at the right moment.
type Agent struct {
	cfg    Config
	flows  map[model.FlowKey]*watched
	order  []model.FlowKey // for turns
	turn   int
	number uint32
	last   model.Time // poll of this host
	polled bool
	nextT  model.Time // turn
	stats  Stats
}

type watched struct {
	expect Expect
	start  model.Time
	sent   int64 // bytes, highest end of a packet
	acked  int64
	timed  [samples]sample // packets that are measured, a ring
	oldest int             // of them
	count  int
	window model.Time // begin of the present one
	before int64      // acked at its begin
	busy   bool       // something was unacknowledged all through the window
	polled model.Time
	once   bool // polled before
}

// samples is how many packets of a flow are measured at a time. They are sent
// at least a samples-th of the limit apart: what lasts for that long is seen.
const samples = 8

// sample is a packet that is measured.
type sample struct {
	end int64 // of its bytes in the flow
	at  model.Time
}

// New makes an agent that watches nothing yet.
func New(cfg Config) (*Agent, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return &Agent{cfg: cfg, flows: map[model.FlowKey]*watched{}}, nil
}

// Stats returns the present counts.
func (a *Agent) Stats() Stats { return a.stats }

// Start begins to watch a flow.
func (a *Agent) Start(now model.Time, key model.FlowKey, e Expect) {
	if a.flows[key] == nil {
		a.order = append(a.order, key)
	}
	a.flows[key] = &watched{expect: e, start: now, window: now}
}

// Sent tells that a packet left whose last byte is the flow's end-th. Packets
// that are sent again are not measured: an acknowledgement does not say which
// of the two it is for.
func (a *Agent) Sent(now model.Time, key model.FlowKey, end int64) {
	w := a.flows[key]
	if w == nil {
		return
	}
	if end > w.sent && w.count < samples && (w.count == 0 || now.Sub(w.last().at) >= a.limit(w)/samples) {
		w.count++
		*w.last() = sample{end, now}
	}
	w.sent = max(w.sent, end)
}

// Acked tells that all bytes up to end have arrived.
func (a *Agent) Acked(now model.Time, key model.FlowKey, end int64) (Trigger, bool) {
	w := a.flows[key]
	if w == nil || end <= w.acked {
		return Trigger{}, false
	}
	w.acked = end
	// One acknowledgement may be for several packets: for the last of them it
	// came at once, for those before it may have waited.
	rtt := time.Duration(0)
	for ; w.count > 0 && w.timed[w.oldest].end <= end; w.count-- {
		rtt = now.Sub(w.timed[w.oldest].at)
		w.oldest = (w.oldest + 1) % samples
	}
	limit := a.limit(w)
	if rtt <= limit {
		return Trigger{}, false
	}
	a.stats.Late++
	return a.complain(now, key, w, RTT, rtt, limit)
}

// last is the newest packet that is measured.
func (w *watched) last() *sample { return &w.timed[(w.oldest+w.count-1)%samples] }

// End ends a flow, finished or not.
func (a *Agent) End(now model.Time, key model.FlowKey) (t Trigger, ok bool) {
	w := a.flows[key]
	if w == nil {
		return t, false
	}
	if limit := time.Duration(a.cfg.Overdue * float64(w.expect.Finish)); limit > 0 {
		if took := now.Sub(w.start); took > limit {
			t, ok = a.complain(now, key, w, Finish, took, limit)
		}
	}
	delete(a.flows, key)
	for i, k := range a.order {
		if k == key {
			a.order = append(a.order[:i], a.order[i+1:]...)
			if a.turn > i {
				a.turn--
			}
			break
		}
	}
	return t, ok
}

// Tick looks at what no packet would tell: flows from which nothing comes back.
// A host calls it a few times per limit.
func (a *Agent) Tick(now model.Time, out []Trigger) []Trigger {
	for _, key := range a.order {
		w := a.flows[key]
		limit := a.limit(w)
		if age := now.Sub(w.timed[w.oldest].at); w.count > 0 && age > limit {
			if t, ok := a.complain(now, key, w, Age, age, limit); ok {
				out = append(out, t)
			}
		}
		if a.cfg.Slow > 0 && now.Sub(w.window) >= a.cfg.Window {
			if t, ok := a.rate(now, key, w); ok {
				out = append(out, t)
			}
		}
	}
	if a.cfg.Turn > 0 && now >= a.nextT && len(a.order) > 0 {
		a.nextT = now.Add(a.cfg.Turn)
		a.turn %= len(a.order)
		key := a.order[a.turn]
		a.turn++
		if t, ok := a.complain(now, key, a.flows[key], Turn, 0, 0); ok {
			out = append(out, t)
		}
	}
	return out
}

// Ask polls about a flow because the analysis wants to look again, whenever the
// last poll was.
func (a *Agent) Ask(now model.Time, key model.FlowKey) (Trigger, bool) {
	w := a.flows[key]
	if w == nil {
		return Trigger{}, false
	}
	return a.trigger(now, key, w, Look, 0, 0), true
}

// rate ends a flow's window and judges it, if the flow had something to send
// all the time.
func (a *Agent) rate(now model.Time, key model.FlowKey, w *watched) (Trigger, bool) {
	span := now.Sub(w.window)
	got := float64(w.acked-w.before) * 8
	want := a.cfg.Slow * float64(w.expect.Rate) * span.Seconds()
	busy := w.busy
	w.window, w.before, w.busy = now, w.acked, w.sent > w.acked
	if !busy || w.sent == w.acked || got >= want {
		return Trigger{}, false
	}
	return a.complain(now, key, w, Rate, span, a.cfg.Window)
}

func (a *Agent) limit(w *watched) time.Duration {
	if a.cfg.Limit > 0 {
		return a.cfg.Limit
	}
	return time.Duration(a.cfg.Late * float64(w.expect.BaseRTT))
}

// complain makes a poll unless there was one just now.
func (a *Agent) complain(now model.Time, key model.FlowKey, w *watched, why Reason, value, limit time.Duration) (Trigger, bool) {
	if w.once && now.Sub(w.polled) < a.cfg.Again || a.polled && now.Sub(a.last) < a.cfg.PerHost {
		a.stats.Suppressed++
		return Trigger{}, false
	}
	return a.trigger(now, key, w, why, value, limit), true
}

func (a *Agent) trigger(now model.Time, key model.FlowKey, w *watched, why Reason, value, limit time.Duration) Trigger {
	w.polled, w.once = now, true
	a.last, a.polled = now, true
	a.number++
	a.stats.Polls++
	return Trigger{
		Reason: why, Value: value, Limit: limit,
		Poll: poll.Poll{
			Layout: poll.Weft, Flag: poll.Victim, HopLimit: a.cfg.HopLimit,
			Event: poll.Event{Host: a.cfg.Host, Number: a.number}, Origin: now, Flow: key,
		},
	}
}
