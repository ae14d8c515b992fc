package api

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/analyze/jobs"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// jobEvidence reads what the store has about the hosts and paths of jobs.
type jobEvidence struct {
	s      *Server
	q      record.Query // the range
	losses []record.Loss
	read   bool // losses were read
	hosts  map[string]hostLinks
}

// hostLinks is what the links of one host show.
type hostLinks struct {
	rate   model.Rate // of the slowest
	pauses []jobs.HostPause
}

// maxPausedHosts bounds the hosts of a job whose ports are read.
const maxPausedHosts = 256

// of returns the evidence about one job.
func (e *jobEvidence) of(ctx context.Context, j *jobs.Job) (*jobs.Evidence, error) {
	found := &jobs.Evidence{}
	for _, h := range j.Hosts[:min(len(j.Hosts), maxPausedHosts)] {
		if err := e.addHost(ctx, found, h); err != nil {
			return nil, err
		}
	}
	return found, e.addLosses(ctx, found, j)
}

// addHost adds the links of a host, which several jobs may have.
func (e *jobEvidence) addHost(ctx context.Context, found *jobs.Evidence, host string) error {
	l, known := e.hosts[host]
	if !known {
		var err error
		if l, err = e.linksOf(ctx, host); err != nil {
			return err
		}
		e.hosts[host] = l
	}
	if l.rate > 0 && (found.HostRate == 0 || l.rate < found.HostRate) {
		found.HostRate = l.rate
	}
	found.Pauses = append(found.Pauses, l.pauses...)
	return nil
}

// linksOf reads how long a host paused its switches.
func (e *jobEvidence) linksOf(ctx context.Context, host string) (l hostLinks, err error) {
	f := e.s.deps.Live.Fabric()
	id, ok := f.ByName(host)
	if !ok {
		return l, nil
	}
	for i := range f.Node(id).Ports {
		p := &f.Node(id).Ports[i]
		if l.rate == 0 || p.Rate < l.rate {
			l.rate = p.Rate
		}
		q := e.q
		q.Node, q.Port = f.Node(p.Peer.Node).Name, p.Peer.Port
		var sum float64
		n := 0
		if _, _, err := walkRecords(ctx, e.s, e.s.deps.Records.Ports, q, func(r *record.PortSample) bool {
			sum += r.Paused
			n++
			return true
		}); err != nil {
			return l, err
		}
		if sum > 0 {
			l.pauses = append(l.pauses, jobs.HostPause{Host: host, Switch: q.Node, Share: sum / float64(n)})
		}
	}
	return l, nil
}

// addLosses adds what the flows of a job lost, by link, the worst first.
func (e *jobEvidence) addLosses(ctx context.Context, found *jobs.Evidence, j *jobs.Job) error {
	if !e.read {
		e.read = true
		if _, _, err := walkRecords(ctx, e.s, e.s.deps.Records.Losses, e.q, func(r *record.Loss) bool {
			e.losses = append(e.losses, *r)
			return true
		}); err != nil {
			return err
		}
	}
	sent := map[model.FlowKey]uint64{}
	for i := range j.Flows {
		sent[j.Flows[i].Key] = j.Flows[i].Packets
	}
	type link struct{ from, to string }
	lost := map[link]map[model.FlowKey]uint64{}
	for i := range e.losses {
		l := &e.losses[i]
		if _, member := sent[l.Flow]; !member {
			continue
		}
		at := link{l.From, l.To}
		if lost[at] == nil {
			lost[at] = map[model.FlowKey]uint64{}
		}
		lost[at][l.Flow] += l.Packets
	}
	for at, flows := range lost {
		l := jobs.LinkLoss{From: at.from, To: at.to}
		for k, n := range flows {
			l.Packets, l.Sent = l.Packets+n, l.Sent+sent[k]
		}
		found.Losses = append(found.Losses, l)
	}
	slices.SortFunc(found.Losses, func(x, y jobs.LinkLoss) int {
		return cmp.Or(cmp.Compare(y.Packets, x.Packets), cmp.Compare(x.From, y.From), cmp.Compare(x.To, y.To))
	})
	return nil
}

// incidents returns the incidents of the range that are at a job's hosts, on its paths, or
// affect it.
func (e *jobEvidence) incidents(ctx context.Context, j *jobs.Job) (list []Incident, err error) {
	at := map[string]bool{}
	for _, h := range j.Hosts {
		at[h] = true
	}
	for i := range j.Flows {
		for _, sw := range j.Flows[i].Path {
			at[sw] = true
		}
	}
	list = []Incident{}
	_, _, err = walkRecords(ctx, e.s, e.s.deps.Records.Incidents, e.q, func(r *record.Incident) bool {
		node, _, _ := strings.Cut(r.Location, ":")
		var body IncidentBody
		_ = json.Unmarshal(r.Body, &body) // an incident without a body affects no job
		if at[node] || slices.Contains(body.Jobs, j.Name) {
			list = append(list, NewIncident(r))
		}
		return true
	})
	return list, err
}
