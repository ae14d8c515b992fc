package why

import (
	"context"
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// maxFlows bounds the flows of a host that are summed up.
const maxFlows = 1000

// Host answers why the flows of a host are slow.
func (q *Asker) Host(ctx context.Context, host string) (a Answer, err error) {
	a = Answer{Subject: host, Causes: []Cause{}, Facts: []string{}}
	list, complete, err := q.details(ctx)
	if err != nil {
		return a, err
	}
	if !complete {
		a.Unknown = append(a.Unknown, fmt.Sprintf("there are more than %d incidents; a shorter range shows all", maxIncidents))
	}
	for i := range list {
		if how := hostInvolved(&list[i], host); how != "" {
			a.Causes = append(a.Causes, q.incidentCause(&list[i], Involved, how))
		}
	}
	for _, side := range []struct{ field, verb string }{{"ip.src", "sent"}, {"ip.dst", "received"}} {
		page, err := q.Source.Flows(ctx, api.FlowsQuery{
			Range: q.Range, Filter: side.field + " == " + host, Sort: "lost", Paging: api.Paging{Limit: maxFlows},
		})
		if err != nil {
			return a, err
		}
		a.addFlows(page.Items, side.verb, page.Next == "")
	}
	return a, nil
}

// hostInvolved says what an incident has to do with a host; "": nothing.
func hostInvolved(in *api.IncidentDetail, host string) string {
	is := func(p api.Participant) bool {
		return p.Host == host || p.Flow != nil && (p.Flow.Src == host || p.Flow.Dst == host)
	}
	switch {
	case slices.ContainsFunc(in.Culprits, is):
		return "it takes part in " + named(in)
	case slices.ContainsFunc(in.Victims, is):
		return "its flows are affected by " + named(in)
	case slices.Contains(in.Nodes, host), in.Location == host:
		return "it is affected by " + named(in)
	}
	return ""
}

// addFlows adds up the flows of one direction, the most lossy first.
func (a *Answer) addFlows(list []api.Flow, verb string, all bool) {
	var packets, lost uint64
	worst := []string{}
	for i := range list {
		f := &list[i]
		packets += f.Packets
		lost += f.LostPackets
		if f.LostPackets > 0 && len(worst) < 5 {
			worst = append(worst, fmt.Sprintf("%v lost %d of %d packets", f.Flow, f.LostPackets, f.Packets))
		}
	}
	count := plural.Count(len(list), "flow")
	if !all {
		count = "the " + fmt.Sprint(len(list)) + " flows with most losses"
		a.Unknown = append(a.Unknown, "it has more flows than were read")
	}
	if lost > 0 {
		a.Causes = append(a.Causes, Cause{
			Kind: Lost, Text: fmt.Sprintf("%d of %d packets that it %s were lost in the fabric (%s)", lost, packets, verb, model.FormatShare(float64(lost)/float64(max(packets, 1)))),
			Evidence: worst,
		})
	}
	if len(list) == 0 {
		a.Unknown = append(a.Unknown, "no switch counted a flow that it "+verb+" in this time")
		return
	}
	a.Facts = append(a.Facts, fmt.Sprintf("%s: %s %s", count, verb, plural.Count(packets, "packet")))
}
