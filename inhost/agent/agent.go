package agent

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/poll"
)

// Reason is why a host requests a diagnosis of a flow.
type Reason uint8

// Reasons.
const (
	RTT            Reason = iota // a packet was acknowledged late
	Age                          // a packet is not acknowledged yet
	Rate                         // fewer bytes were acknowledged than the flow may expect
	CompletionTime               // the flow, or the job it belongs to, took too long
	RoundRobin                   // periodic: no problem was detected
	FollowUp                     // the analysis requested another poll, and no packet is late any more
)

// OfPacket reports whether a single packet was late.
func (r Reason) OfPacket() bool { return r == RTT || r == Age }

var reasonNames = [...]string{
	RTT: "round-trip time", Age: "unacknowledged", Rate: "rate",
	CompletionTime: "completion time", RoundRobin: "round robin", FollowUp: "follow-up",
}

// String returns the reason's name.
func (r Reason) String() string { return reasonNames[r] }

// Config is when a host requests a diagnosis.
type Config struct {
	Host model.NodeID
	// RTTFactor is the limit of the round-trip time as a multiple of its base;
	// RTTLimit, if not 0, is an absolute limit in its place.
	RTTFactor float64
	RTTLimit  time.Duration
	// MinRateShare is the share of its expected rate that a flow must get in
	// each RateWindow; 0 does not check rates.
	MinRateShare float64
	RateWindow   time.Duration
	// CompletionFactor is the limit of a flow's or job's completion time as a
	// multiple of the expected one; 0 does not check.
	CompletionFactor float64
	// RoundRobinInterval is the interval at which flows are polled one after
	// another; 0 polls only slow flows.
	RoundRobinInterval time.Duration

	MinRepollInterval time.Duration // between two polls about one flow
	MinHostInterval   time.Duration // between two polls of this host
	HopLimit          uint8

	// AcksWithData is set if acknowledgements share a class with data, so that they
	// may wait: if a packet's path cannot account for all of its lateness, theirs is
	// polled, too.
	AcksWithData bool
}

// DefaultConfig detects three times the base round-trip time and polls a flow
// at most every 3 ms.
func DefaultConfig(host model.NodeID) Config {
	return Config{
		Host: host, RTTFactor: 3, MinRepollInterval: 3 * time.Millisecond,
		MinHostInterval: 10 * time.Microsecond, HopLimit: 32,
	}
}

// Check returns an error for the first invalid field.
func (c *Config) Check() error {
	switch {
	case c.RTTLimit < 0 || c.RTTLimit == 0 && !(c.RTTFactor > 1):
		return fmt.Errorf("agent: RTT limit %v, RTT factor %v, want a limit above 0 or a factor above 1", c.RTTLimit,
			c.RTTFactor)
	case c.MinRateShare < 0 || c.MinRateShare > 1 || c.MinRateShare > 0 && c.RateWindow <= 0:
		return fmt.Errorf("agent: minimum rate share %v in windows of %v, want 0 to 1 and a window", c.MinRateShare,
			c.RateWindow)
	case c.CompletionFactor < 0 || c.CompletionFactor > 0 && c.CompletionFactor < 1:
		return fmt.Errorf("agent: completion factor %v, want 0 or at least 1", c.CompletionFactor)
	case c.RoundRobinInterval < 0 || c.MinRepollInterval < 0 || c.MinHostInterval < 0:
		return fmt.Errorf("agent: round-robin interval %v, repoll interval %v, host interval %v; want none below 0",
			c.RoundRobinInterval, c.MinRepollInterval, c.MinHostInterval)
	case c.HopLimit == 0:
		return fmt.Errorf("agent: hop limit 0, want at least 1")
	}
	return nil
}

// DiagnosisRequest is the detection of a slow flow. Its Poll is to be sent into
// the fabric, in a queue that PFC never pauses.
type DiagnosisRequest struct {
	Poll     poll.Poll
	Reason   Reason
	Measured time.Duration // the measured time; for Rate the window, for FollowUp since the flow was slow
	Limit    time.Duration // the limit that Measured exceeds
}

// Latency returns how long the late packet took, or its age; 0 if none was measured.
func (r *DiagnosisRequest) Latency() time.Duration {
	if r.Reason.OfPacket() {
		return r.Measured
	}
	return 0
}

// Window returns how long the flow has been slow, where no packet was measured; 0 if
// that is unknown.
func (r *DiagnosisRequest) Window() time.Duration {
	if r.Reason.OfPacket() {
		return 0
	}
	return r.Measured
}

// FlowExpectation is what is known about a flow when it starts.
type FlowExpectation struct {
	BaseRTT        time.Duration // without queues
	Rate           model.Rate    // expected; 0: unknown
	CompletionTime time.Duration // of the flow or job; 0: unknown
}

// Stats are the agent's counters.
type Stats struct {
	Polls      uint64
	Suppressed uint64 // requests within MinRepollInterval or MinHostInterval of another
	LateAcks   uint64 // acknowledgements after the limit
}

// Agent watches the flows that start at one host. Memory is constant per flow:
// a few packets at a time are measured, spread over a base round trip, and
// while they are in flight they give a lower bound of the age of the oldest
// unacknowledged packet. Measuring one at a time would be blind while it is in
// flight: a queue that fills and drains within three round trips shows its peak
// only to packets sent at the right time.
type Agent struct {
	cfg            Config
	flows          map[model.FlowKey]*watchedFlow
	order          []model.FlowKey // for round robin
	nextInTurn     int
	number         uint32
	last           model.Time // last poll of this host
	polled         bool
	nextRoundRobin model.Time
	stats          Stats
}

type watchedFlow struct {
	expect       FlowExpectation
	start        model.Time
	sent         int64 // bytes, highest end of a packet
	acked        int64
	timed        [maxSamples]rttSample // packets being measured, a ring
	oldest       int                   // index in timed
	count        int
	window       model.Time // start of the current one
	before       int64      // acked at its start
	busy         bool       // some bytes were unacknowledged throughout the window
	polled       model.Time
	polledBefore bool
	slowSince    model.Time // start of what the last poll measured, if polledBefore
}

// maxSamples is how many packets of a flow are measured at a time. They are
// sent at least limit/maxSamples apart: congestion that lasts this long is
// detected.
const maxSamples = 8

// rttSample is a packet being measured.
type rttSample struct {
	end int64 // of its bytes in the flow
	at  model.Time
}

// New returns an agent that watches no flow.
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

// OnSent records that a packet was sent whose last byte is the flow's end-th.
// Retransmitted packets are not measured: an acknowledgement does not say which
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

// OnAcked records that all bytes up to end have arrived.
func (a *Agent) OnAcked(now model.Time, key model.FlowKey, end int64) (DiagnosisRequest, bool) {
	w := a.flows[key]
	if w == nil || end <= w.acked {
		return DiagnosisRequest{}, false
	}
	w.acked = end
	// One acknowledgement may cover several packets: for the last of them it
	// came at once, for earlier ones it may have been delayed.
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

// newestSample returns the newest packet being measured.
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

// Tick checks what no packet would show: flows without acknowledgements, rates,
// and round robin. A host calls it a few times per limit.
func (a *Agent) Tick(now model.Time, out []DiagnosisRequest) []DiagnosisRequest {
	for _, key := range a.order {
		w := a.flows[key]
		limit := a.rttLimit(w)
		if age := w.age(now); age > limit {
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

// FollowUp polls a flow again at the request of the analysis, whenever the last
// poll was: about the packet that is late by now or, if none is, about the time since
// what the last poll measured.
func (a *Agent) FollowUp(now model.Time, key model.FlowKey) (DiagnosisRequest, bool) {
	w := a.flows[key]
	if w == nil {
		return DiagnosisRequest{}, false
	}
	if age, limit := w.age(now), a.rttLimit(w); age > limit {
		return a.newRequest(now, key, w, Age, age, limit), true
	}
	slow := time.Duration(0)
	if w.polledBefore {
		slow = now.Sub(w.slowSince)
	}
	return a.newRequest(now, key, w, FollowUp, slow, 0), true
}

// age returns how long the oldest of the packets being measured is unacknowledged; 0
// if there is none.
func (w *watchedFlow) age(now model.Time) time.Duration {
	if w.count == 0 {
		return 0
	}
	return now.Sub(w.timed[w.oldest].at)
}

// checkRate ends a flow's window and checks its rate, if the flow was never
// idle.
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

// request returns a diagnosis request unless the last poll was too recent.
func (a *Agent) request(now model.Time, key model.FlowKey, w *watchedFlow, why Reason, value,
	limit time.Duration,
) (DiagnosisRequest, bool) {
	if w.polledBefore && now.Sub(w.polled) < a.cfg.MinRepollInterval || a.polled &&
		now.Sub(a.last) < a.cfg.MinHostInterval {
		a.stats.Suppressed++
		return DiagnosisRequest{}, false
	}
	return a.newRequest(now, key, w, why, value, limit), true
}

func (a *Agent) newRequest(now model.Time, key model.FlowKey, w *watchedFlow, why Reason, value,
	limit time.Duration,
) DiagnosisRequest {
	w.polled, w.polledBefore, w.slowSince = now, true, now.Add(-value)
	a.last, a.polled = now, true
	a.number++
	a.stats.Polls++
	unexplained := poll.Lateness(0)
	if a.cfg.AcksWithData && why != RoundRobin {
		late := w.expect.BaseRTT // a flow is slow if its packets take twice their time
		if why.OfPacket() {
			late = value - w.expect.BaseRTT
		}
		unexplained = poll.LatenessOf(late)
	}
	return DiagnosisRequest{
		Reason: why, Measured: value, Limit: limit,
		Poll: poll.Poll{
			Layout: poll.Weft, Flag: poll.Victim, HopLimit: a.cfg.HopLimit,
			Event: poll.Event{Host: a.cfg.Host, Number: a.number}, Origin: now, Flow: key,
			Unexplained: unexplained,
		},
	}
}
