package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Evidence is what the fabric says about a job's hosts and links over the same range.
type Evidence struct {
	Pauses []HostPause
	Losses []LinkLoss
	// HostRate is the rate of the hosts' links; 0: unknown.
	HostRate model.Rate
}

// HostPause is how long a host paused the port that leads to it.
type HostPause struct {
	Host, Switch string
	Share        float64 // of the range
}

// LinkLoss is what flows of the job lost between two switches, or a switch and a host.
type LinkLoss struct {
	From, To      string
	Packets, Sent uint64
}

// Cause is what a job waits for.
type Cause string

// Causes.
const (
	None       Cause = "none"
	Compute    Cause = "compute"    // one rank is late to send
	SlowHost   Cause = "host"       // one host takes packets slower than they come
	SlowLink   Cause = "link"       // packets are lost on a link
	Congestion Cause = "congestion" // the exchange is slow, and nothing of the above is wrong
)

// Network reports whether a cause is outside of the computation.
func (c Cause) Network() bool { return c == SlowHost || c == SlowLink || c == Congestion }

// Finding is one thing that slows a job.
type Finding struct {
	Cause    Cause
	Host     string // of compute and host
	From, To string // of link
	// Cost is the time of a step that it takes, as far as it is known.
	Cost time.Duration
	Text string
}

const (
	// lateShare is how late a rank must be, as a share of the step, to be named.
	lateShare = 0.1
	// pausedShare is how much of the range a host must pause its switch to be named, and
	// pausedTimes how many times as long as the host in the middle.
	pausedShare = 0.02
	pausedTimes = 3
	// lossShare is the loss that slows go-back-N visibly.
	lossShare = 1e-4
	// slowExchange is how many times as long as its hosts' links allow an exchange must
	// take to be called slow.
	slowExchange = 2
)

// isLate reports whether a rank computes longer than the others: by more than slots can
// hide, and by a part of the step that matters. Ranks of other patterns wait for each other
// by design.
func (j *Job) isLate(r *Rank) bool {
	return (j.Pattern == Ring || j.Pattern == AllToAll) && r.Late >= 2*j.Resolution && float64(r.Late) >= lateShare*float64(j.Period)
}

// Assess returns what slows a job, the costliest first. Without any, the first is None.
func (j *Job) Assess(e *Evidence) []Finding {
	list := j.paused(e)
	list = append(list, j.losses(e)...)
	if j.rhythm == nil && len(list) == 0 {
		return []Finding{{Cause: None, Text: fmt.Sprintf("no steps are visible in slots of %v, no host pauses, no link loses packets", j.Resolution)}}
	}
	list = append(list, j.late()...)
	if len(list) == 0 {
		list = j.stalled()
	}
	if ideal := j.ideal(e.HostRate); len(list) == 0 && ideal > 0 && j.Exchange > slowExchange*ideal+2*j.Resolution {
		text := fmt.Sprintf("the exchange takes %v, %.1f times what the hosts' links allow", j.Exchange, float64(j.Exchange)/float64(ideal))
		if c := j.slowest(); c != nil {
			text += fmt.Sprintf("; the slowest path is %s > %s (%s)", c.Src, c.Dst, strings.Join(c.Path, " > "))
		}
		list = append(list, Finding{Cause: Congestion, Cost: j.Exchange - ideal, Text: text + ": no loss, no host that pauses, no rank that is late"})
	}
	if len(list) > 0 && list[0].Cause == SlowHost { // its pauses fill the queues of paths to it, which then lose packets
		for _, f := range list {
			if f.Cause == SlowLink {
				list[0].Cost = max(list[0].Cost, f.Cost)
			}
		}
	}
	slices.SortStableFunc(list, func(x, y Finding) int { return cmp.Compare(y.Cost, x.Cost) })
	if len(list) == 0 {
		return []Finding{{Cause: None, Text: "no rank, host or link stands out"}}
	}
	return list
}

// ideal is how long the exchange takes at the rate of the hosts' links; 0: unknown.
func (j *Job) ideal(rate model.Rate) time.Duration {
	if rate <= 0 {
		return 0
	}
	var most uint64
	received := map[string]uint64{}
	for _, c := range j.Cells {
		received[c.Dst] += c.Bytes
	}
	for i := range j.Ranks {
		most = max(most, j.Ranks[i].Sent, received[j.Ranks[i].Host])
	}
	return time.Duration(float64(most) * 8e9 / float64(rate))
}

// excess is how much longer the exchange takes than it could.
func (j *Job) excess(e *Evidence) time.Duration { return max(j.Exchange-j.ideal(e.HostRate), 0) }

// late are the ranks that compute longer than others.
func (j *Job) late() (list []Finding) {
	for i := range j.Ranks {
		r := &j.Ranks[i]
		if j.isLate(r) {
			list = append(list, Finding{
				Cause: Compute, Host: r.Host, Cost: r.Late,
				Text: fmt.Sprintf("%s sends %v after its last exchange, the other ranks after %v: it computes longer, or waits for its own data; its flows are not slow",
					r.Host, r.Think, r.Think-r.Late),
			})
		}
	}
	return list
}

// paused are the hosts that pause their switches.
func (j *Job) paused(e *Evidence) (list []Finding) {
	share := map[string]float64{}
	at := map[string]string{}
	for _, p := range e.Pauses {
		if _, member := j.members[p.Host]; member && p.Share >= share[p.Host] {
			share[p.Host], at[p.Host] = p.Share, p.Switch
		}
	}
	var all []float64
	for _, h := range j.Hosts {
		all = append(all, share[h])
	}
	usual := median(all)
	for _, h := range j.Hosts {
		if s := share[h]; s >= pausedShare && s > pausedTimes*usual {
			list = append(list, Finding{
				Cause: SlowHost, Host: h, Cost: max(min(time.Duration(s*float64(j.Period)), j.Exchange), 1),
				Text: fmt.Sprintf("%s pauses %s for %.0f %% of the time: it takes packets slower than they come", h, at[h], 100*s),
			})
		}
	}
	return list
}

// losses are the links on which flows of the job lose packets, the worst first.
func (j *Job) losses(e *Evidence) (list []Finding) {
	for _, l := range e.Losses {
		if l.Sent == 0 || float64(l.Packets) < lossShare*float64(l.Sent) || l.Packets < 2 {
			continue
		}
		list = append(list, Finding{
			Cause: SlowLink, From: l.From, To: l.To, Cost: max(j.excess(e), 1),
			Text: fmt.Sprintf("%s > %s loses %.2f %% of the job's packets there", l.From, l.To, 100*float64(l.Packets)/float64(l.Sent)),
		})
	}
	return list
}

// slowest is the cell with the lowest rate of those that carry as much as most.
func (j *Job) slowest() (worst *Cell) {
	for i := range j.Cells {
		if c := &j.Cells[i]; c.Rate > 0 && (worst == nil || c.Rate < worst.Rate) {
			worst = c
		}
	}
	return worst
}
