package evidence

import (
	"maps"
	"slices"
)

// dropRules are reasons of the kernel (enum skb_drop_reason) that make flows slow, or stop
// them. Others are usual: ports without a socket, packets that arrive twice.
var dropRules = map[string]rule{
	"cpu backlog":         {where: Host, text: "the kernel dropped %d packets as a CPU's backlog was full"},
	"socket rcvbuff":      {where: Host, text: "the kernel dropped %d packets as a socket's receive buffer was full: its program reads too slowly"},
	"socket backlog":      {where: Host, text: "the kernel dropped %d packets as a socket's backlog was full: its program reads too slowly"},
	"qdisc drop":          {where: Host, text: "the queueing discipline dropped %d packets"},
	"full ring":           {where: Host, text: "the kernel dropped %d packets as a ring was full"},
	"nomem":               {where: Host, text: "the kernel dropped %d packets for want of memory"},
	"netfilter drop":      {where: Host, text: "a firewall of this host dropped %d packets"},
	"socket filter":       {where: Host, text: "filters of sockets dropped %d packets"},
	"tc ingress":          {where: Host, text: "programs or filters at the ingress dropped %d packets"},
	"tc egress":           {where: Host, text: "programs or filters at the egress dropped %d packets"},
	"xdp":                 {where: Host, text: "XDP programs dropped %d packets"},
	"ip innoroutes":       {where: Host, text: "there was no route for %d packets"},
	"ip outnoroutes":      {where: Host, text: "there was no route for %d packets that were to be sent"},
	"ip rpfilter":         {where: Host, text: "the reverse path filter dropped %d packets"},
	"pkt too big":         {where: Host, text: "%d packets were larger than the MTU"},
	"neigh failed":        {where: Peer, text: "%d packets waited for a neighbour that did not answer"},
	"neigh queuefull":     {where: Peer, text: "%d packets waited for a neighbour, and the queue was full"},
	"skb csum":            {where: Cable, text: "%d packets arrived with a wrong checksum"},
	"ip csum":             {where: Cable, text: "%d packets arrived with a wrong IP checksum"},
	"tcp csum":            {where: Cable, text: "%d packets arrived with a wrong TCP checksum"},
	"udp csum":            {where: Cable, text: "%d packets arrived with a wrong UDP checksum"},
	"tcp listen overflow": {where: Host, text: "%d connections found a listen queue full"},
}

// ofDrops is what the reasons of drops show.
func ofDrops(before, after *Snapshot) []Verdict {
	if before.Drops == nil {
		return nil // they were not counted then
	}
	var rules []rule
	for _, reason := range slices.Sorted(maps.Keys(after.Drops)) {
		if r, ok := dropRules[reason]; ok {
			r.n = grown(before.Drops[reason], after.Drops[reason])
			rules = append(rules, r)
		}
	}
	return verdicts("kernel", rules)
}
