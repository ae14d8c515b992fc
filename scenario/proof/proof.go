package proof

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/topo"
)

// Verdict is what a proof says of a verdict.
type Verdict string

// Verdicts.
const (
	// Proven: without what is named the packet arrives in time, or earlier by what the
	// account attributes to it where that is a part of its lateness.
	Proven Verdict = "proven"
	// Partly: without it the packet is less late, but later than the account says; or
	// something else does the same.
	Partly Verdict = "partly proven"
	// Refuted: without it the packet is later than it would be if half of what the
	// account says were true.
	Refuted Verdict = "refuted"
	// NotShown: the rebuilt run does not show the symptom, so that nothing is proven.
	NotShown Verdict = "not shown"
)

const (
	// tolerance is the largest error of the rebuilt lateness.
	tolerance = 0.2
	// inTime is the largest slowdown of a packet that nothing delays.
	inTime = 1.3
	// enough is the part of what an account attributes to a cause by which a removal must
	// shorten the delay.
	enough = 0.8
	// Whole is the share of the lateness from which a cause is the only one.
	Whole = 0.9
	// half is the part of the same below which a removal refutes the verdict.
	half = 0.5
)

// Result is a proof.
type Result struct {
	Verdict  Verdict     `json:"verdict"`
	Text     string      `json:"text"`
	Victim   api.FlowRef `json:"victim"`
	LateNs   int64       `json:"late_ns"` // recorded
	InFlight bool        `json:"in_flight"`
	// Share is the part of the lateness that the account attributes to the cause.
	Share   float64 `json:"share"`
	Rebuilt Trial   `json:"rebuilt"`
	// Error is by how much the rebuilt lateness deviates from the recorded one, as a
	// share of it. Of a packet in flight, which was late by that much so far, only less
	// is an error.
	Error float64 `json:"error"`
	Speed float64 `json:"speed"` // fitted: rate of senders over their recorded mean rate
	// Drain is fitted where pauses of a host do not explain it: the share of its link
	// that the host takes.
	Drain   float64 `json:"drain,omitempty"`
	Without Trial   `json:"without"`
	// Control has something else removed; nil if records have nothing else.
	Control *Trial `json:"control,omitempty"`
	// Together has all removed that the account names: the verdict's culprits, and those of
	// what else the packet waited for; nil if there is nothing else.
	Together *Trial   `json:"together,omitempty"`
	Remedies []Trial  `json:"remedies"`
	Notes    []string `json:"notes"` // what the rebuilt run does not have
	Runs     int      `json:"runs"`  // simulations
}

// Trial is one run of the rebuilt scenario.
type Trial struct {
	Name     string  `json:"name"`
	What     string  `json:"what"` // that was changed
	LateNs   int64   `json:"late_ns"`
	Slowdown float64 `json:"slowdown"`  // of the packet, against an idle fabric
	PausedNs int64   `json:"paused_ns"` // summed over all ports of switches
	// Gain is the share of the rebuilt lateness that is gone; less than 0: it is later.
	Gain     float64 `json:"gain"`
	Scenario string  `json:"-"` // its text
}

// prover makes one proof.
type prover struct {
	c        *Case
	world    *world
	sim      sim.Config  // of the rebuilt fabric
	packet   model.Bytes // payload of a packet
	duration time.Duration

	paths       []path // by sender
	victimPath  path
	victimStart time.Duration
	used        map[[2]model.NodeID]map[uint16]bool
	runs        int
}

// Prove tests a verdict. An error that is a *MissingError says which records it would
// need.
func Prove(ctx context.Context, c *Case) (*Result, error) {
	if len(c.Named.Flows)+len(c.Named.Hosts) == 0 {
		return nil, errNoCulprit
	}
	w, err := newWorld(c)
	if err != nil {
		return nil, err
	}
	p := &prover{c: c, world: w, used: map[[2]model.NodeID]map[uint16]bool{}}
	p.prepare()
	r := &Result{
		Victim: c.Diagnosis.Victim, LateNs: int64(w.victim.late), InFlight: w.victim.inFlight, Share: share(c.Diagnosis), Notes: p.notes(),
	}
	rebuilt, fit, err := p.fit(ctx)
	if err != nil {
		return nil, err
	}
	r.Speed, r.Drain, r.Error = fit.speed, fit.drain, p.deviation(rebuilt)
	r.Rebuilt = newTrial("rebuilt", "as recorded", rebuilt)
	without, err := p.run(ctx, setup{
		name: "without", about: "Without what the verdict names.", fitted: fit, without: c.Named,
	})
	if err != nil {
		return nil, err
	}
	r.Without = newTrial("without", "without "+p.describe(c.Named), without)
	if other, ok := p.other(); ok {
		control, err := p.run(ctx, setup{name: "control", about: "Without something that the verdict does not name.", fitted: fit, without: other})
		if err != nil {
			return nil, err
		}
		x := newTrial("control", "without "+p.describe(other)+" instead", control)
		r.Control = &x
	}
	if all, more := p.together(); more {
		o, err := p.run(ctx, setup{name: "together", about: "Without all that the account names.", fitted: fit, without: all})
		if err != nil {
			return nil, err
		}
		x := newTrial("together", "without all that the account names", o)
		r.Together = &x
	}
	if r.Remedies, err = p.remedies(ctx, fit, rebuilt); err != nil {
		return nil, err
	}
	r.judge()
	r.Without.Gain = r.fall(&r.Without)
	if r.Control != nil {
		r.Control.Gain = r.fall(r.Control)
	}
	if r.Together != nil {
		r.Together.Gain = r.fall(r.Together)
	}
	for i := range r.Remedies {
		r.Remedies[i].Gain = r.fall(&r.Remedies[i])
	}
	r.Runs = p.runs
	return r, nil
}

func newTrial(name, what string, o *outcome) Trial {
	return Trial{Name: name, What: what, LateNs: int64(o.late), Slowdown: o.slowdown(), PausedNs: int64(o.paused), Scenario: o.text}
}

// prepare computes what all trials have in common.
func (p *prover) prepare() {
	w := p.world
	s := *p.c.Fabric
	if p.c.DefaultSettings && w.mtu > 0 {
		s.Sim.MTU = int32(min(max(w.mtu, 64), 9600))
	}
	p.packet, p.sim = model.Bytes(s.Sim.MTU), s.Sim
	taken := map[model.FlowKey][]topo.Hop{}
	for i := range w.senders {
		f := &w.senders[i]
		p.paths = append(p.paths, p.findPath(f.src, f.dst, !f.flow.Src.Is4(), trace{f.flow.SrcPort, f.outs, taken[f.flow]}))
		taken[f.flow] = p.paths[i].hops
	}
	v := &w.victim
	p.victimPath = p.findPath(v.src, v.dst, !v.flow.Src.Is4(), trace{outs: v.outs, like: taken[v.flow]})
	p.victimStart = max(0, v.queued-p.travel(v.src, v.first.Node, p.victimPath.hops))
	// Queues of the recorded lateness drain, and the packet arrives.
	p.duration = (w.end() + 4*v.late + time.Millisecond).Round(time.Microsecond)
}

// settings returns the section fabric of a setup. Nothing is lost in the rebuilt run, and
// a packet that waits is not sent again.
func (p *prover) settings(r remedy) string {
	s := scenario.Scenario{Sim: p.sim}
	if r.headroom {
		s.Sim.Headroom = 0 // what each link needs
	}
	return s.FabricSection() + "  rto: 0s\n"
}

// deviation returns the error of a rebuilt run as a share of the recorded lateness.
func (p *prover) deviation(o *outcome) float64 {
	want := float64(p.world.victim.late)
	d := (float64(o.late) - want) / want
	if p.world.victim.inFlight {
		return max(0, -d)
	}
	return math.Abs(d)
}

// distance returns the difference of a rebuilt run from the recorded lateness as a share of
// it, also of a packet in flight: what changes the records more than it needs makes that
// packet later, too.
func (p *prover) distance(o *outcome) float64 {
	want := float64(p.world.victim.late)
	return math.Abs(float64(o.late)-want) / want
}

// isNearer reports whether one run is nearer to the records than another.
func (p *prover) isNearer(a, b *outcome) bool {
	if x, y := p.deviation(a) <= tolerance, p.deviation(b) <= tolerance; x != y {
		return x
	}
	return p.distance(a) < p.distance(b)
}

// Speeds that are tried. Rates are means of an interval, in which a flow may have been
// faster or slower when the packet came.
const (
	slowest = 0.25
	fastest = 4
	steps   = 8
)

// fit returns a run that is as late as recorded, or the nearest. It prefers what changes
// records least: rates as counted; then, of a host that pauses its switch, how fast it
// takes packets; then other rates, first of flows that did not send steadily.
func (p *prover) fit(ctx context.Context) (best *outcome, f fitted, err error) {
	try := func(with fitted) (late time.Duration, done bool, err error) {
		o, err := p.run(ctx, setup{name: "rebuilt", about: "What records say of the incident.", fitted: with})
		if err != nil {
			return 0, false, err
		}
		if best == nil || p.isNearer(o, best) {
			best, f = o, with
		}
		return o.late, p.distance(o) < tolerance/4, nil
	}
	if _, _, err := try(fitted{speed: 1}); err != nil || p.deviation(best) < tolerance/4 {
		return best, f, err
	}
	if len(p.world.pauses) > 0 {
		// A host that takes packets slowly has some in its own buffer, of which no switch
		// has a record. The slower it is, the later is the packet.
		err = p.search(1, 64, func(s float64) (time.Duration, bool, error) { return try(fitted{speed: 1, drain: 1 / s}) })
		if err != nil || p.deviation(best) <= tolerance {
			return best, f, err
		}
	}
	// More speed delays the packet more.
	for _, with := range []fitted{{burst: true}, {}, {burst: true, steady: true}, {steady: true}} {
		low := slowest
		if with.burst {
			low = 1
		}
		err = p.search(low, fastest, func(s float64) (time.Duration, bool, error) {
			with.speed = s
			return try(with)
		})
		if err != nil || p.deviation(best) <= tolerance {
			break
		}
	}
	return best, f, err
}

// search looks for a value between two others at which try is as late as recorded, or
// says that it is done. Lateness grows with the value.
func (p *prover) search(low, high float64, try func(float64) (late time.Duration, done bool, err error)) error {
	for range steps {
		value := math.Sqrt(low * high)
		late, done, err := try(value)
		if err != nil || done {
			return err
		}
		if late < p.world.victim.late {
			low = value
		} else {
			high = value
		}
	}
	return nil
}

// other returns something that records have and the verdict does not name: the flow
// that sent most of those that do not pass the port that the verdict is about.
func (p *prover) other() (c Culprits, ok bool) {
	var at model.Port
	if d := p.c.Diagnosis; d.Initial != nil {
		at, _ = p.world.port(*d.Initial)
	}
	sum := map[model.FlowKey]model.Bytes{}
	for i := range p.world.senders {
		s := &p.world.senders[i]
		if s.flow == p.world.victim.flow || slices.Contains(p.c.Named.Flows, s.flow) || slices.Contains(s.outs, at) {
			continue
		}
		sum[s.flow] += s.payload
	}
	var best model.FlowKey
	for k, n := range sum {
		if !ok || n > sum[best] || n == sum[best] && k.Compare(best) < 0 {
			best, ok = k, true
		}
	}
	return Culprits{Flows: []model.FlowKey{best}}, ok
}

// together returns the verdict's culprits with those of all else that the account names.
// It reports whether there are more.
func (p *prover) together() (all Culprits, more bool) {
	all = Culprits{Flows: slices.Clone(p.c.Named.Flows), Hosts: slices.Clone(p.c.Named.Hosts)}
	for i := range p.c.Diagnosis.Account.Terms {
		for _, c := range p.c.Diagnosis.Account.Terms[i].Culprits {
			switch {
			case c.Flow != nil && !slices.Contains(all.Flows, c.Flow.Flow):
				all.Flows, more = append(all.Flows, c.Flow.Flow), true
			case c.Host != "" && !slices.Contains(all.Hosts, c.Host):
				all.Hosts, more = append(all.Hosts, c.Host), true
			}
		}
	}
	return all, more
}

// maxNamed is how many culprits a sentence names.
const maxNamed = 3

// describe names flows by their hosts.
func (p *prover) describe(c Culprits) string {
	var names []string
	for _, h := range c.Hosts {
		names = append(names, "the pause frames of "+h)
	}
	for _, k := range c.Flows {
		name := k.String()
		for i := range p.c.Diagnosis.Account.Timeline.Senders {
			if s := &p.c.Diagnosis.Account.Timeline.Senders[i]; s.Flow == k {
				name = s.Src + " → " + s.Dst
			}
		}
		names = append(names, name)
	}
	if len(names) > maxNamed {
		return fmt.Sprintf("%s and %s", strings.Join(names[:maxNamed-1], ", "), plural.Count(len(names)-maxNamed+1, "other flow"))
	}
	return strings.Join(names, ", ")
}

// noSettings is a note of proofs in a fabric whose settings are not known.
const noSettings = "buffers and thresholds of the switches are not known: Weft's defaults are used; --fabric names a file with yours"

// notes says what the rebuilt run does not have.
func (p *prover) notes() []string {
	notes := []string{}
	if p.c.DefaultSettings {
		notes = append(notes, noSettings)
	}
	if n := p.c.Diagnosis.Account.Timeline.OmittedSenders; n > 0 {
		notes = append(notes, fmt.Sprintf("%s in these queues are not in the record", plural.Count(n, "smaller flow")))
	}
	var silent []string
	for i := range p.c.Diagnosis.Account.Timeline.Rows {
		if r := &p.c.Diagnosis.Account.Timeline.Rows[i]; !r.Reported && !slices.Contains(silent, r.Port.Node) {
			silent = append(silent, r.Port.Node)
		}
	}
	if len(silent) > 0 {
		notes = append(notes, "no report of "+strings.Join(silent, ", "))
	}
	return notes
}

// IsMissing reports whether an error says that records do not suffice.
func IsMissing(err error) bool {
	var m *MissingError
	return errors.As(err, &m)
}
