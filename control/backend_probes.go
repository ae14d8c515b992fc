package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/probe"
	"github.com/weft-telemetry/weft/model"
)

// commandError maps an error of a device command to the API's: devices take no
// commands, or this one is invalid.
func commandError(err error) error {
	if errors.Is(err, api.ErrUnsupported) {
		return err
	}
	return fmt.Errorf("%w: %w", err, api.ErrInvalid)
}

// StartProbe is part of api.Prober.
func (f *Backend) StartProbe(ctx context.Context, r api.ProbeRequest) (out api.Probe, err error) {
	failed := f.do(ctx, func() {
		var q probe.Question
		var finish func(p *api.Probe)
		if q, finish, err = f.probeQuestion(&r); err != nil {
			err = commandError(err)
			return
		}
		var takes time.Duration
		interval := f.c.cfg.Probes.Interval
		if r.IntervalUs > 0 {
			interval = time.Duration(r.IntervalUs) * time.Microsecond
		}
		if takes, err = f.c.prober.StartEvery(q, interval); err != nil {
			err = commandError(err)
			return
		}
		f.mu.Lock()
		f.next++
		one := &api.Probe{
			ID: "p" + strconv.Itoa(f.next), State: "running", Request: r, Begin: f.c.wallTime(f.c.now),
			Hops: []api.ProbeHop{}, Patterns: []api.ProbePattern{}, Traces: []string{},
		}
		f.probes = pushNewest(f.probes, one)
		out = *one
		f.mu.Unlock()
		f.c.awaitTraces(q, takes, func(unheard int) {
			f.c.prober.Close(q)
			f.mu.Lock()
			finish(one)
			one.Unheard = unheard
			end := f.c.wallTime(f.c.now)
			one.State, one.End = "done", &end
			result := *one
			f.mu.Unlock()
			f.hub.Publish(result)
		})
		f.hub.Publish(out)
	})
	if failed != nil {
		return out, failed
	}
	return out, err
}

// stragglers is how often awaitTraces waits for traces that have not come when
// they should have: probes may wait in paused queues.
const stragglers = 4

// awaitTraces calls done when every probe of a question has had its trace, or
// should have had it for some time, with the number of those that have not.
func (c *Controller) awaitTraces(q probe.Question, takes time.Duration, done func(unheard int)) {
	left := stragglers
	sent := c.prober.Sent(q)
	var look func()
	look = func() {
		unheard := int(sent) - int(min(q.Heard(), sent))
		if left--; unheard > 0 && left >= 0 {
			c.scheduleAfter(c.cfg.Traces.Trace.CloseAfter, look)
			return
		}
		done(unheard)
	}
	c.scheduleAfter(takes+2*c.cfg.Traces.Trace.CloseAfter, look)
}

// probeQuestion returns the question of a request, and the function that fills its
// result in.
func (f *Backend) probeQuestion(r *api.ProbeRequest) (probe.Question, func(*api.Probe), error) {
	count := uint32(max(r.Count, 1))
	now := f.c.now
	switch r.Kind {
	case "link":
		near, ok := f.node(r.Link.Node)
		if !ok {
			return nil, nil, fmt.Errorf("unknown node %q", r.Link.Node)
		}
		port := f.c.fabric.Port(model.Port{Node: near, Port: r.Link.Port})
		if port == nil {
			return nil, nil, fmt.Errorf("%s has no port %d", r.Link.Node, r.Link.Port)
		}
		q, err := f.c.prober.Latency(now, near, port.Peer.Node, true, count)
		return q, func(p *api.Probe) { f.fillLatency(p, q) }, err
	case "pattern":
		at, err := f.injectionPoint(r.At)
		if err != nil {
			return nil, nil, err
		}
		q, err := f.c.prober.Drops(now, r.Flow, at, count)
		return q, func(p *api.Probe) { f.fillDrops(p, q) }, err
	case "format":
		q, err := f.c.prober.Series(now, r.Format, count)
		return q, func(p *api.Probe) { f.fillSeries(p, q) }, err
	default:
		q, err := f.c.prober.Replay(now, r.Flow, count)
		return q, func(p *api.Probe) { f.fillReplay(p, q, int(count)) }, err
	}
}

// injectionPoint returns the switch at which probes are injected; nil means the
// first of the flow's path.
func (f *Backend) injectionPoint(name string) (*model.NodeID, error) {
	if name == "" {
		return nil, nil
	}
	id, ok := f.node(name)
	if !ok || !f.c.fabric.Node(id).Role.IsSwitch() {
		return nil, fmt.Errorf("injection at %q, want a switch", name)
	}
	return &id, nil
}

func (f *Backend) fillLatency(p *api.Probe, q *probe.Latency) {
	a, ok := q.Answer()
	p.Sent, p.Arrived, p.Lost = int(a.Sent), a.Returned, a.Lost
	if !ok {
		p.Verdict = "no probe returned: the link drops them, or their mirrors are lost"
		return
	}
	p.RTT = &api.ProbeRTT{
		MinNs: int64(a.Min), MedianNs: int64(a.Median), MeanNs: int64(a.Mean), ErrorNs: int64(a.Error), P90Ns: int64(a.P90),
	}
	p.Verdict = fmt.Sprintf("round trip: minimum %s, mean %s", model.FormatDuration(a.Min), model.FormatDuration(a.Mean))
}

func (f *Backend) fillDrops(p *api.Probe, q *probe.Drops) {
	a := q.Answer()
	for _, k := range a.Patterns {
		p.Patterns = append(p.Patterns, api.ProbePattern{
			Flow: k.Flow, Varied: k.Varied.String(), Sent: int(k.Sent), Arrived: int(k.Sent - k.Lost), Reached: int(k.Reached),
			Loss: api.ShareInterval(k.Loss),
		})
		p.Sent += int(k.Sent)
		p.Arrived += int(k.Sent - k.Lost)
		p.Lost += int(k.Lost)
	}
	if a.Lost > 0 {
		p.LostAt = &api.PortRef{Node: f.c.nodeName(a.At.Switch)}
		if a.At.Known {
			p.LostAt.Peer = f.c.nodeName(a.At.Next)
			if ports := f.c.fabric.Node(a.At.Switch).PortsTo(a.At.Next); len(ports) > 0 {
				*p.LostAt = f.c.portRef(model.Port{Node: a.At.Switch, Port: ports[0]})
			}
		}
	}
	loss, mirrors := api.ShareInterval(a.Loss), api.ShareInterval(a.Mirrors)
	p.Outcome, p.InjectedAt, p.Loss, p.MirrorLoss = a.Kind.String(), f.c.nodeName(a.Begin), &loss, &mirrors
	for _, id := range a.Loop {
		p.Loop = append(p.Loop, f.c.nodeName(id))
	}
	p.Verdict = fmt.Sprintf("%s: %d of %d probes lost; %s", a.Kind, a.Lost, a.Reached, a.Scope)
}

// fillSeries describes the fate of custom packets, and the path of the first.
func (f *Backend) fillSeries(p *api.Probe, q *probe.Series) {
	a := q.Answer()
	p.Sent, p.Arrived, p.Lost, p.InjectedAt = int(a.Sent), int(a.Arrived), int(a.Lost+a.Looped), f.c.nodeName(a.Host)
	p.Verdict = fmt.Sprintf("%d of %d probes were seen: %d arrived, %d lost, %d looped, %d unknown", a.Seen, a.Sent, a.Arrived, a.Lost, a.Looped, a.Other)
	if len(a.Traces) > 0 {
		t := a.Traces[0]
		for i := range t.Hops {
			p.Hops = append(p.Hops, api.ProbeHop{
				Switch: f.c.nodeName(t.Hops[i].Switch), Packets: int(a.Seen), LatencyNs: int64(t.Hops[i].Time.Sub(t.Hops[0].Time)),
			})
		}
	}
	if a.Lost+a.Looped > 0 && len(a.Ends) > 0 {
		p.LostAt = &api.PortRef{Node: f.c.nodeName(a.Ends[0].Switch)}
	}
}

func (f *Backend) fillReplay(p *api.Probe, q *probe.Replay, count int) {
	t, n := q.Answer()
	p.Sent = count
	if t == nil {
		p.Verdict = "no switch saw a probe"
		return
	}
	for i := range t.Hops {
		p.Hops = append(p.Hops, api.ProbeHop{
			Switch: f.c.nodeName(t.Hops[i].Switch), Packets: n, LatencyNs: int64(t.Hops[i].Time.Sub(t.Hops[0].Time)),
		})
	}
	p.Traces = append(p.Traces, strconv.FormatUint(t.RecordID(f.c.wallTime(t.Hops[0].Time)), 10))
	last := f.c.nodeName(t.Hops[len(t.Hops)-1].Switch)
	if t.End == trace.Arrived {
		p.Arrived = n
		p.Verdict = fmt.Sprintf("%d of %d probes were seen; they arrive after %s", n, count, last)
		return
	}
	p.LostAt, p.Lost = &api.PortRef{Node: last}, n
	p.Verdict = fmt.Sprintf("%d of %d probes were seen, last at %s", n, count, last)
}

// Probe is part of api.Prober.
func (f *Backend) Probe(id string) (api.Probe, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.probes, func(p *api.Probe) bool { return p.ID == id })
	if i < 0 {
		return api.Probe{}, fmt.Errorf("probe %q: %w", id, api.ErrNotFound)
	}
	return *f.probes[i], nil
}

// Probes is part of api.Prober.
func (f *Backend) Probes() []api.Probe { return newestFirst(f, &f.probes) }
