package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/scenario/live"
)

// outcome is what was injected into a run, and what was found.
type outcome struct {
	injected, found string
	kind, place     bool // is right
}

// judge runs a job that something slows, and compares what is found first.
func judge(ctx context.Context, k kind, seed uint64, noFlowsets bool) (out outcome, err error) {
	l := newLab(seed, []string{"all-reduce", "all-to-all"}, 4+int(seed%4), 4)
	for i := range l.jobs { // shorter steps: a fault makes them several times as long
		l.jobs[i].bytes /= 2
	}
	j := &l.jobs[0]
	faults, host, from, to := "", j.hosts[l.rng.IntN(len(j.hosts))], "", ""
	switch k {
	case slowRank:
		faults = fmt.Sprintf("faults: [{kind: straggler, host: %s, factor: %.1f}]\n", host, 1.6+l.rng.Float64())
	case slowHost:
		faults = fmt.Sprintf("faults: [{kind: slow-receiver, host: %s, rate: %dMb/s}]\n", host, 350+l.rng.IntN(250))
	case slowLink:
		if from, to, err = l.usedLink(ctx); err != nil {
			return out, err
		}
		faults = fmt.Sprintf("faults: [{kind: corruption, port: %s>%s, share: %.1f%%}]\n", from, to, 1+4*l.rng.Float64())
	}
	if noFlowsets {
		l.alone = "spine0"
	}
	s, err := l.scenario(slowLasts, faults)
	if err != nil {
		return out, err
	}
	list, err := find(ctx, s)
	if err != nil {
		return out, err
	}
	out.injected, out.found = fmt.Sprintf("%s of %v %s", j.pattern, j.hosts, faults), "no such job"
	i := slices.IndexFunc(list, func(f api.Job) bool { return sameHosts(f.Hosts, j.hosts) })
	if i < 0 {
		return out, nil
	}
	first := list[i].Findings[0]
	out.found = first.Text
	switch k {
	case healthy:
		out.kind = first.Cause == "none" || first.Cause == "congestion"
		out.place = out.kind
	case slowRank:
		out.kind = first.Cause == "compute"
		out.place = out.kind && first.Host == host
	case slowHost:
		out.kind = first.Cause == "host"
		out.place = out.kind && first.Host == host
	case slowLink:
		out.kind = first.Cause == "link"
		out.place = out.kind && first.From == from && first.To == to
	}
	return out, nil
}

// usedLink draws a link between two switches that flows of the first job cross.
func (l *lab) usedLink(ctx context.Context) (from, to string, err error) {
	s, err := l.scenario(300*time.Millisecond, "")
	if err != nil {
		return "", "", err
	}
	var links [][2]string
	err = watch(ctx, s, func(run *live.Running, r api.Range) error {
		page, err := run.Client().Flows(ctx, api.FlowsQuery{Range: r, Paging: api.Paging{Limit: 1000}})
		seen := map[[2]string]bool{}
		for i := range page.Items { // the largest first
			f := &page.Items[i]
			// The job sends from the start; what others send once comes later.
			if pair := [2]string{f.Src, f.Dst}; l.jobs[0].sends(pair) && !seen[pair] && f.First.Sub(r.From) < 60*time.Millisecond {
				seen[pair] = true
				for h := 1; h < len(f.Path); h++ {
					links = append(links, [2]string{f.Path[h-1], f.Path[h]})
				}
			}
		}
		return err
	})
	if err != nil || len(links) == 0 {
		return "", "", fmt.Errorf("no flow of the job crosses two switches: %w", err)
	}
	slices.SortFunc(links, func(x, y [2]string) int { return slices.Compare(x[:], y[:]) })
	links = slices.Compact(links)
	at := links[l.rng.IntN(len(links))]
	return at[0], at[1], nil
}

// sends reports whether a host of the job sends to another in every step.
func (j *job) sends(pair [2]string) bool {
	src, dst := slices.Index(j.hosts, pair[0]), slices.Index(j.hosts, pair[1])
	return src >= 0 && dst >= 0 && src != dst && (j.pattern != "all-reduce" || dst == (src+1)%len(j.hosts))
}
