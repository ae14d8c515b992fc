// Package jobs measures what flow records alone show of jobs: their hosts, and
// whether a rank, a host or a link makes them slow. It is not the claim of a paper: the
// figures are Weft's own. Manual: docs/jobs.md.
package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/repro/claim"
)

// Claims lists them.
func Claims() []claim.Claim { return []claim.Claim{inferred, causes} }

var (
	shortSlots = claim.Mutation{Name: "short slots", Removes: "flows are counted in slots as long as several steps"}
	flowsets   = claim.Mutation{Name: "flowsets", Removes: "one switch alone counts flows"}
)

var inferred = claim.Claim{
	ID: "jobs-inferred", Where: "docs/jobs.md",
	Says:      "the hosts of four jobs that run at once are found in flow records, beside other traffic",
	Published: "no paper; goal: 95 % of host sets exact, and as few others",
	Mutations: []claim.Mutation{shortSlots},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		t := claim.Table{Title: "jobs", Header: []string{"pattern", "jobs", "exact", "pattern named"}}
		runs := o.Pick(25, 2)
		all, exact, extra := map[string]int{}, map[string]int{}, 0
		named := map[string]int{}
		var notes []string
		for i := range runs {
			o.Report(float64(i)/float64(runs), fmt.Sprintf("run %d", i))
			l := newLab(claim.Rand(o.Seed, uint64(i)).Uint64(), []string{"all-reduce", "all-to-all", "tree"}, 4, 4, 4, 3)
			if o.Without(shortSlots) {
				l.slot = 400 * time.Millisecond
			}
			s, err := l.scenario(lasts, "")
			if err != nil {
				return claim.Result{}, err
			}
			list, err := find(ctx, s)
			if err != nil {
				return claim.Result{}, fmt.Errorf("run %d: %w", i, err)
			}
			for _, j := range l.jobs {
				all[j.pattern]++
				k := slices.IndexFunc(list, func(f api.Job) bool { return sameHosts(f.Hosts, j.hosts) })
				if k < 0 {
					if o.Broken() {
						return claim.Result{Measured: "a job was not found"}, nil
					}
					notes = append(notes, fmt.Sprintf("run %d: %s of %s not found", i, j.pattern, strings.Join(j.hosts, " ")))
					continue
				}
				exact[j.pattern]++
				if list[k].Pattern == patterns[j.pattern] {
					named[j.pattern]++
				}
				list = slices.Delete(list, k, k+1)
			}
			for _, f := range list {
				extra++
				notes = append(notes, fmt.Sprintf("run %d: %s %s is none", i, f.Pattern, strings.Join(f.Hosts, " ")))
			}
		}
		total, right := 0, 0
		for _, p := range []string{"all-reduce", "all-to-all", "tree"} {
			total, right = total+all[p], right+exact[p]
			t.Row(p, fmt.Sprint(all[p]), fmt.Sprint(exact[p]), fmt.Sprint(named[p]))
		}
		return claim.Result{
			Measured: fmt.Sprintf("%d of %d exact, %d others", right, total, extra),
			Pass:     float64(right) >= 0.95*float64(total) && float64(extra) <= 0.05*float64(total),
			Notes: append([]string{
				"fat-tree with k=4, links scaled to 1 Gb/s, four jobs on 15 of 16 hosts, with Poisson, request and storage traffic between all hosts",
			}, notes...),
			Tables: []claim.Table{t},
		}, nil
	},
}

// patterns are the names of what runs.
var patterns = map[string]string{"all-reduce": "ring", "all-to-all": "all-to-all", "tree": "tree"}

// kind is what slows a job.
type kind int

const (
	healthy kind = iota
	slowRank
	slowHost
	slowLink
	numKinds
)

func (k kind) String() string {
	return [...]string{"nothing", "slow rank", "slow host", "slow link"}[k]
}

var causes = claim.Claim{
	ID: "jobs-causes", Where: "docs/jobs.md",
	Says:      "a rank that computes slowly, a host that receives slowly and a link that loses packets are distinguished, and named",
	Published: "no paper; goal: 95 % right, and none of them named where nothing is wrong",
	Mutations: []claim.Mutation{flowsets},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		t := claim.Table{Title: "first finding of the job", Header: []string{"injected", "runs", "kind right", "place right"}}
		runs := o.Pick(20, 1)
		var notes []string
		total, right := 0, 0
		for k := range numKinds {
			kinds, places := 0, 0
			for i := range runs {
				o.Report(float64(int(k)*runs+i)/float64(int(numKinds)*runs), k.String())
				out, err := judge(ctx, k, claim.Rand(o.Seed, uint64(k)<<32|uint64(i)).Uint64(), o.Without(flowsets))
				if err != nil {
					return claim.Result{}, fmt.Errorf("%v, run %d: %w", k, i, err)
				}
				total++
				if out.kind {
					kinds++
				}
				if out.place {
					places++
					right++
				} else {
					if o.Broken() {
						return claim.Result{Measured: "a cause was not found"}, nil
					}
					notes = append(notes, fmt.Sprintf("%v, run %d: %s; found %s", k, i, out.injected, out.found))
				}
			}
			t.Row(k.String(), fmt.Sprint(runs), fmt.Sprint(kinds), fmt.Sprint(places))
		}
		return claim.Result{
			Measured: fmt.Sprintf("%d of %d right, kind and place", right, total),
			Pass:     float64(right) >= 0.95*float64(total),
			Notes: append([]string{
				"fat-tree with k=4, links scaled to 1 Gb/s, a job of 4 to 7 hosts beside another one and other traffic; the job is inferred",
			}, notes...),
			Tables: []claim.Table{t},
		}, nil
	},
}
