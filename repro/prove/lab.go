package prove

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/proof"
)

// kind is a cause that is injected.
type kind int

const (
	storm kind = iota
	slowReceiver
	incast
	contention
	kinds
)

func (k kind) String() string {
	return [...]string{"PFC storm", "slow receiver", "incast", "contention"}[k]
}

// injected is what was done to a fabric, and what is true of it.
type injected struct {
	scenario *scenario.Scenario
	host     string   // that pauses its switch
	receiver string   // of the flows below
	senders  []string // hosts whose flows to the receiver are the cause
}

// inject draws a scenario with one cause. Hosts of a pod of a fat-tree with k=4 have
// consecutive numbers, and so do the two of a rack.
func inject(k kind, seed uint64) (*injected, error) {
	r := rand.New(rand.NewPCG(seed, uint64(k)))
	const hosts = 16
	at := r.IntN(hosts)
	neighbour := at ^ 1 // in the same rack
	var others []int
	for _, h := range r.Perm(hosts) {
		if h/2 != at/2 {
			others = append(others, h)
		}
	}
	name := func(h int) string { return fmt.Sprintf("h%d", h) }
	in := &injected{receiver: name(at)}
	var b strings.Builder
	fmt.Fprintf(&b, "name: prove\nseed: %d\nduration: 4ms\ntopology: {generate: {kind: fat-tree, k: 4}}\n", seed)
	fmt.Fprintf(&b, "fabric: {buffer: %dMB}\nagents: {}\n", 2+2*r.IntN(3))
	fmt.Fprintf(&b, "traffic:\n  - {kind: poisson, name: background, sizes: websearch, load: %d%%}\n", 2+r.IntN(6))
	pairs := func(list []int, to int) string {
		var out []string
		for _, h := range list {
			out = append(out, name(h)+">"+name(to))
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	fmt.Fprintf(&b, "  - {kind: persistent, name: victims, pairs: %s, rate: %dGb/s, start: 10us}\n", pairs(others[:4], neighbour), 4+r.IntN(5))
	switch k {
	case storm, slowReceiver:
		in.host = name(at)
		fmt.Fprintf(&b, "  - {kind: persistent, name: to-the-host, pairs: %s, rate: %dGb/s, start: 10us}\n", pairs(others[2:6], at), 8+r.IntN(8))
		if k == storm {
			fmt.Fprintf(&b, "faults:\n  - {kind: storm, host: %s, at: %dus, for: %dus}\n", in.host, 900+r.IntN(200), 400+r.IntN(600))
		} else {
			fmt.Fprintf(&b, "faults:\n  - {kind: slow-receiver, host: %s, rate: %dGb/s, at: %dus}\n", in.host, 4+r.IntN(8), 900+r.IntN(200))
		}
	case incast, contention:
		n, bytes := 7+r.IntN(5), 300+100*r.IntN(3)
		if k == contention {
			n, bytes = 2+r.IntN(2), 600+200*r.IntN(3)
		}
		for _, h := range others[:n] {
			in.senders = append(in.senders, name(h))
		}
		fmt.Fprintf(&b, "  - {kind: incast, name: burst, receivers: %s, senders: [%s], fanin: %d, bytes: %dKB, start: %dus}\n",
			name(at), strings.Join(in.senders, ", "), n, bytes, 900+r.IntN(200))
		fmt.Fprintf(&b, "  - {kind: persistent, name: at-the-receiver, pairs: %s, rate: %dGb/s, start: 10us}\n", pairs(others[n:n+1], at), 2+r.IntN(6))
	}
	var err error
	in.scenario, err = scenario.Parse("prove.yaml", []byte(b.String()))
	return in, err
}

// diagnosed is what a controller keeps of a run.
type diagnosed struct {
	topology  api.Topology
	diagnoses []api.DiagnosisDetail
}

// observe runs a scenario under a controller.
func observe(ctx context.Context, s *scenario.Scenario) (rec diagnosed, err error) {
	rec.topology, err = records(ctx, s, func(c *client.Client, since time.Time) error {
		page, err := c.Diagnoses(ctx, api.DiagnosesQuery{Range: api.Range{From: since}})
		for i := 0; err == nil && i < len(page.Items); i++ {
			var d api.DiagnosisDetail
			d, err = c.Diagnosis(ctx, page.Items[i].ID)
			rec.diagnoses = append(rec.diagnoses, d)
		}
		return err
	})
	return rec, err
}

// about returns the diagnoses whose cause is the injected one: right ones.
func (in *injected) about(list []api.DiagnosisDetail) (out []api.DiagnosisDetail) {
	for _, d := range list {
		if d.Account == nil || d.Initial == nil || d.Initial.Peer != in.receiver {
			continue
		}
		if host := d.RootCause == "host-pfc-injection"; host != (in.host != "") {
			continue
		}
		if in.host == "" && !slices.ContainsFunc(d.Culprits, func(p api.Participant) bool {
			return p.Flow != nil && p.Flow.Dst == in.receiver && slices.Contains(in.senders, p.Flow.Src)
		}) {
			continue // an earlier contention of other flows
		}
		out = append(out, d)
	}
	return out
}

// culprits returns what was injected.
func (in *injected) culprits(d *api.DiagnosisDetail) (c proof.Culprits) {
	if in.host != "" {
		return proof.Culprits{Hosts: []string{in.host}}
	}
	for i := range d.Account.Timeline.Senders {
		if s := &d.Account.Timeline.Senders[i]; s.Dst == in.receiver && slices.Contains(in.senders, s.Src) {
			c.Flows = append(c.Flows, s.Flow)
		}
	}
	return c
}

// wrong returns a verdict of the same kind that is not true: another host, or as many
// other flows. Flows to the receiver are a part of the cause and not wrong.
func (in *injected) wrong(r *rand.Rand, d *api.DiagnosisDetail, culprits int) (c proof.Culprits) {
	senders := d.Account.Timeline.Senders
	if in.host != "" {
		for {
			if h := fmt.Sprintf("h%d", r.IntN(16)); h != in.host {
				return proof.Culprits{Hosts: []string{h}}
			}
		}
	}
	for _, i := range r.Perm(len(senders)) {
		if s := &senders[i]; s.Dst != in.receiver && s.Flow != d.Victim.Flow && len(c.Flows) < culprits {
			c.Flows = append(c.Flows, s.Flow)
		}
	}
	if len(c.Flows) == 0 {
		// The record has no other flow: one that was not there is wrong, too.
		k := d.Victim.Flow
		k.SrcPort++
		c.Flows = []model.FlowKey{k}
	}
	return c
}
