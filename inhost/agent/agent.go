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
	RTT            Reason = iota // a packet was acknowledged late
	Age                          // a packet is not acknowledged yet
	Rate                         // fewer bytes were acknowledged than the flow may expect
	CompletionTime               // the flow, or the job it belongs to, took too long
	RoundRobin                   // nothing is wrong that is known: it was this flow's turn
	FollowUp                     // the analysis wants to look again
)

var reasonNames = [...]string{RTT: "round-trip time", Age: "unacknowledged", Rate: "rate", CompletionTime: "completion time", RoundRobin: "turn", FollowUp: "second look"}

// String prints the reason.
func (r Reason) String() string { return reasonNames[r] }

// Config says when a flow suffers.
type Config struct {
	Host model.NodeID
	// RTTFactor is how many times its base a round-trip time may be; Limit, if it is
	// not 0, is an absolute bound in its place.
	RTTFactor float64
	RTTLimit  time.Duration
	// MinRateShare is the least share of its expected rate that a flow must get in
	// each Window; 0 does not look at rates.
	MinRateShare float64
	RateWindow   time.Duration
	// CompletionFactor is how many times its expected time a flow or job may take; 0
	// does not look.
	CompletionFactor float64
	// RoundRobin is the interval at which flows are polled one after another; 0
	// polls only those that suffer.
	RoundRobinInterval time.Duration

	MinRepollInterval time.Duration // between two polls about one flow, at least
	MinHostInterval   time.Duration // between two polls of this host, at least
	HopLimit          uint8
}

// DefaultConfig complains about three times the base round-trip time, a flow at
// most every 3 ms.
func DefaultConfig(host model.NodeID) Config {
	return Config{Host: host, RTTFactor: 3, MinRepollInterval: 3 * time.Millisecond, MinHostInterval: 10 * time.Microsecond, HopLimit: 32}
}

// Check returns an error for the first invalid field.
func (c *Config) Check() error {
	switch {
	case c.RTTLimit < 0 || c.RTTLimit == 0 && !(c.RTTFactor > 1):
		return fmt.Errorf("agent: round-trip limit %v or %v times the base, want a time above 0 or more than 1", c.RTTLimit, c.RTTFactor)
	case c.MinRateShare < 0 || c.MinRateShare > 1 || c.MinRateShare > 0 && c.RateWindow <= 0:
		return fmt.Errorf("agent: share %v of the rate in windows of %v, want 0 to 1 and a window", c.MinRateShare, c.RateWindow)
	case c.CompletionFactor < 0 || c.CompletionFactor > 0 && c.CompletionFactor < 1:
		return fmt.Errorf("agent: %v times the expected time, want 0 or at least 1", c.CompletionFactor)
	case c.RoundRobinInterval < 0 || c.MinRepollInterval < 0 || c.MinHostInterval < 0:
		return fmt.Errorf("agent: turn %v, again %v, per host %v; want none below 0", c.RoundRobinInterval, c.MinRepollInterval, c.MinHostInterval)
	case c.HopLimit == 0:
		return fmt.Errorf("agent: hop limit 0, want at least 1")
	}
	return nil
}

// DiagnosisRequest is a complaint. Its Poll is to be sent towards the fabric, by a queue
// that PFC never pauses.
type DiagnosisRequest struct {
	Poll     poll.Poll
	Reason   Reason
	Measured time.Duration // what was measured: a time; of Rate the window
	Limit    time.Duration // what it should have been at most
}

// FlowExpectation is what is known about a flow when it starts.
type FlowExpectation struct {
	BaseRTT        time.Duration // without queues
	Rate           model.Rate    // it may expect; 0: not known
	CompletionTime time.Duration // of the flow or job; 0: not known
}

// Stats account for complaints.
type Stats struct {
	Polls      uint64
	Suppressed uint64 // complaints within Again or MinHostInterval of another
	LateAcks   uint64 // acknowledgements beyond the limit
}

// Agent watches the flows that start at one host. Memory is constant per flow:
// a few packets at a time are measured, spread over a base round trip, and
// while they are on their way they tell the age of the oldest unacknowledged
// one from below. One at a time would be blind while it is underway: a queue
// that fills up and drains again within three round trips shows its worst only
// to packets sent at the right moment.
type Agent struct {
	cfg            Config
	flows          map[model.FlowKey]*watchedFlow
	order          []model.FlowKey // for turns
	nextInTurn     int
	number         uint32
	last           model.Time // poll of this host
	polled         bool
	nextRoundRobin model.Time // nextInTurn
	stats          Stats
}

type watchedFlow struct {
	expect       FlowExpectation
	start        model.Time
	sent         int64 // bytes, highest end of a packet
	acked        int64
	timed        [maxSamples]rttSample // packets that are measured, a ring
	oldest       int                   // of them
	count        int
	window       model.Time // begin of the present one
	before       int64      // acked at its begin
	busy         bool       // something was unacknowledged all through the window
	polled       model.Time
	polledBefore bool // polled before
}

// maxSamples is how many packets of a flow are measured at a time. They are sent
// at least a samples-th of the limit apart: what lasts for that long is seen.
const maxSamples = 8

// rttSample is a packet that is measured.
type rttSample struct {
	end int64 // of its bytes in the flow
	at  model.Time
}

// New makes an agent that watches nothing yet.
func New(cfg Config) (*Agent, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return &Agent{cfg: cfg, flows: map[model.FlowKey]*watchedFlow{}}, nil
}

// Stats returns the current counters.
func (a *Agent) Stats() Stats { return a.stats }

// StartFlow begins to watch a flow.
func (a *Agent) StartFlow(now model.Time, key model.FlowKey, e FlowExpectation) {
	if a.flows[key] == nil {
		a.order = append(a.order, key)
	}
	a.flows[key] = &watchedFlow{expect: e, start: now, window: now}
}

// OnSent tells that a packet left whose last byte is the flow's end-th. Packets
// that are sent again are not measured: an acknowledgement does not say which
// of the two it is for.
func (a *Agent) OnSent(now model.Time, key model.FlowKey, end int64) {
	w := a.flows[key]
	if w == nil {
		return
	}
	if end > w.sent && w.count < maxSamples && (w.count == 0 || now.Sub(w.newestSample().at) >= a.rttLimit(w)/maxSamples) {
		w.count++
		*w.newestSample() = rttSample{end, now}
	}
	w.sent = max(w.sent, end)
}

// OnAcked tells that all bytes up to end have arrived.
func (a *Agent) OnAcked(now model.Time, key model.FlowKey, end int64) (DiagnosisRequest, bool) {
	w := a.flows[key]
	if w == nil || end <= w.acked {
		return DiagnosisRequest{}, false
	}
	w.acked = end
	// One acknowledgement may be for several packets: for the last of them it
	// came at once, for those before it may have waited.
	rtt := time.Duration(0)
	for ; w.count > 0 && w.timed[w.oldest].end <= end; w.count-- {
		rtt = now.Sub(w.timed[w.oldest].at)
		w.oldest = (w.oldest + 1) % maxSamples
	}
	limit := a.rttLimit(w)
	if rtt <= limit {
		return DiagnosisRequest{}, false
	}
	a.stats.LateAcks++
	return a.request(now, key, w, RTT, rtt, limit)
}

// newestSample is the newest packet that is measured.
func (w *watchedFlow) newestSample() *rttSample { return &w.timed[(w.oldest+w.count-1)%maxSamples] }

// EndFlow ends a flow, finished or not.
func (a *Agent) EndFlow(now model.Time, key model.FlowKey) (t DiagnosisRequest, ok bool) {
	w := a.flows[key]
	if w == nil {
		return t, false
	}
	if limit := time.Duration(a.cfg.CompletionFactor * float64(w.expect.CompletionTime)); limit > 0 {
		if took := now.Sub(w.start); took > limit {
			t, ok = a.request(now, key, w, CompletionTime, took, limit)
		}
	}
	delete(a.flows, key)
	for i, k := range a.order {
		if k == key {
			a.order = append(a.order[:i], a.order[i+1:]...)
			if a.nextInTurn > i {
				a.nextInTurn--
			}
			break
		}
	}
	return t, ok
}

// Tick looks at what no packet would tell: flows from which nothing comes back.
// A host calls it a few times per limit.
func (a *Agent) Tick(now model.Time, out []DiagnosisRequest) []DiagnosisRequest {
	for _, key := range a.order {
		w := a.flows[key]
		limit := a.rttLimit(w)
		if age := now.Sub(w.timed[w.oldest].at); w.count > 0 && age > limit {
			if t, ok := a.request(now, key, w, Age, age, limit); ok {
				out = append(out, t)
			}
		}
		if a.cfg.MinRateShare > 0 && now.Sub(w.window) >= a.cfg.RateWindow {
			if t, ok := a.checkRate(now, key, w); ok {
				out = append(out, t)
			}
		}
	}
	if a.cfg.RoundRobinInterval > 0 && now >= a.nextRoundRobin && len(a.order) > 0 {
		a.nextRoundRobin = now.Add(a.cfg.RoundRobinInterval)
		a.nextInTurn %= len(a.order)
		key := a.order[a.nextInTurn]
		a.nextInTurn++
		if t, ok := a.request(now, key, a.flows[key], RoundRobin, 0, 0); ok {
			out = append(out, t)
		}
	}
	return out
}

// FollowUp polls about a flow because the analysis wants to look again, whenever the
// newestSample poll was.
func (a *Agent) FollowUp(now model.Time, key model.FlowKey) (DiagnosisRequest, bool) {
	w := a.flows[key]
	if w == nil {
		return DiagnosisRequest{}, false
	}
	return a.newRequest(now, key, w, FollowUp, 0, 0), true
}

// checkRate ends a flow's window and judges it, if the flow had something to send
// all the time.
func (a *Agent) checkRate(now model.Time, key model.FlowKey, w *watchedFlow) (DiagnosisRequest, bool) {
	span := now.Sub(w.window)
	got := float64(w.acked-w.before) * 8
	want := a.cfg.MinRateShare * float64(w.expect.Rate) * span.Seconds()
	busy := w.busy
	w.window, w.before, w.busy = now, w.acked, w.sent > w.acked
	if !busy || w.sent == w.acked || got >= want {
		return DiagnosisRequest{}, false
	}
	return a.request(now, key, w, Rate, span, a.cfg.RateWindow)
}

func (a *Agent) rttLimit(w *watchedFlow) time.Duration {
	if a.cfg.RTTLimit > 0 {
		return a.cfg.RTTLimit
	}
	return time.Duration(a.cfg.RTTFactor * float64(w.expect.BaseRTT))
}

// request makes a poll unless there was one just now.
func (a *Agent) request(now model.Time, key model.FlowKey, w *watchedFlow, why Reason, value, limit time.Duration) (DiagnosisRequest, bool) {
	if w.polledBefore && now.Sub(w.polled) < a.cfg.MinRepollInterval || a.polled && now.Sub(a.last) < a.cfg.MinHostInterval {
		a.stats.Suppressed++
		return DiagnosisRequest{}, false
	}
	return a.newRequest(now, key, w, why, value, limit), true
}

func (a *Agent) newRequest(now model.Time, key model.FlowKey, w *watchedFlow, why Reason, value, limit time.Duration) DiagnosisRequest {
	w.polled, w.polledBefore = now, true
	a.last, a.polled = now, true
	a.number++
	a.stats.Polls++
	return DiagnosisRequest{
		Reason: why, Measured: value, Limit: limit,
		Poll: poll.Poll{
			Layout: poll.Weft, Flag: poll.Victim, HopLimit: a.cfg.HopLimit,
			Event: poll.Event{Host: a.cfg.Host, Number: a.number}, Origin: now, Flow: key,
		},
	}
}
