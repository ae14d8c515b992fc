package commodity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/load"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
)

// strengths of evidence that is not all measured.
const (
	bounded   = 0.7 // pause frames without their time
	ambiguous = 0.8 // another explanation is less likely, and possible
)

// newFinding returns a finding of a switch's round.
func (a *Analyzer) newFinding(k kind, at model.Port, class model.Priority) finding {
	s := &a.nodes[at.Node]
	return finding{
		episodeID: episodeID{k, at, class}, at: at, from: s.from, to: s.to, interval: s.interval, weight: 1, strength: 1,
	}
}

// findHostPauses finds hosts that pause their switch.
func (a *Analyzer) findHostPauses(id model.NodeID) (list []finding) {
	for i := range a.nodes[id].ports {
		at := model.Port{Node: id, Port: model.PortID(i + 1)}
		j := a.judged(at)
		if j == nil || !a.isHost(a.peer(at).Node) {
			continue
		}
		for c := range model.Priority(portstat.NumClasses) {
			share, measured := a.paused(queueID{at, c})
			k := &j.class[c]
			if share < a.cfg.MinPaused && !k.stormed {
				continue
			}
			f := a.newFinding(hostPauses, at, c)
			f.share, f.tx = share, j.tx
			// Control traffic of other classes still reaches the host in a storm.
			f.storm = k.stormed || measured && share >= a.cfg.StormPaused && (!j.hasBytes || j.tx <= 1-a.cfg.StormPaused)
			if k.stormed {
				f.weight = 3 // the watchdog has seen it for its detection time
			} else if !measured {
				f.strength = bounded
			}
			f.path, f.extent = a.waitingFor(queueID{at, c})
			list = append(list, f)
		}
	}
	return list
}

// aftermath is how many rounds after a pause a queue's congestion is due to the
// backlog of the pause, not to new flows.
const aftermath = 2

// plainlyPaused is the share of time from which on pauses are more than the bursts of
// a busy fabric.
const plainlyPaused = 0.25

// releases reports whether a queue is congested by packets that waited for another
// one before: half of those that wait for it did so in the last rounds.
func (a *Analyzer) releases(q queueID, b *holder) bool {
	n := 0
	for _, in := range b.by {
		w, known := a.waited[queueID{a.peer(model.Port{Node: q.port.Node, Port: in}), q.class}]
		if known && w.root != q && a.round-w.round <= aftermath {
			n++
		}
	}
	return 2*n >= len(b.by)
}

// rememberWaits notes which queue every other one waits for in the end.
func (a *Analyzer) rememberWaits() {
	for q := range a.next {
		root := q
		for range maxChain {
			to, ok := a.next[root]
			if !ok {
				break
			}
			root = to
		}
		if was, known := a.waited[q]; !known || was.root == root || a.round-was.round > aftermath {
			a.waited[q] = wait{root, a.round}
		}
	}
}

// maxChain is longer than any chain of pauses that does not end in a cycle.
const maxChain = 64

// findCongestion finds queues that flows congest: others wait for them, and they
// wait for no other.
func (a *Analyzer) findCongestion(id model.NodeID, holders map[queueID]*holder) (list []finding) {
	for _, q := range slices.SortedFunc(maps.Keys(holders), compareQueues) {
		b := holders[q]
		share, _ := a.paused(q)
		k := &a.judged(q.port).class[q.class]
		if share >= max(a.cfg.MinPaused, b.paused/4) {
			continue
		}
		if k.pausedIn > 0 && a.round-k.pausedIn <= aftermath || a.releases(q, b) {
			continue
		}
		f := a.newFinding(congested, q.port, q.class)
		f.share, f.tx = b.paused, a.judged(q.port).tx
		f.strength = min(1, b.paused/plainlyPaused)
		if !b.measured {
			f.strength *= bounded
		}
		if !k.hasDepth {
			f.strength *= ambiguous // which queue it is was not measured
		}
		if f.culprits = a.culpritsAt(q); len(f.culprits) == 0 {
			f.strength *= ambiguous
		}
		f.path, f.extent = a.waitingFor(q)
		list = append(list, f)
	}
	return append(list, a.findFull(id, holders)...)
}

// findFull finds links that are full with flows of several senders, without PFC.
func (a *Analyzer) findFull(id model.NodeID, holders map[queueID]*holder) (list []finding) {
	for i := range a.nodes[id].ports {
		at := model.Port{Node: id, Port: model.PortID(i + 1)}
		j := a.judged(at)
		if j == nil || !j.hasBytes || j.tx < busy {
			continue
		}
		for c := range model.Priority(portstat.NumClasses) {
			q := queueID{at, c}
			k := &j.class[c]
			if share, _ := a.paused(q); k.marked == 0 || share >= a.cfg.MinPaused || holders[q] != nil ||
				k.pausedIn > 0 && a.round-k.pausedIn <= aftermath {
				continue
			}
			f := a.newFinding(full, at, c)
			f.tx, f.strength = j.tx, ambiguous
			if f.culprits = a.culpritsAt(q); senders(f.culprits) > 1 {
				list = append(list, f)
			}
		}
	}
	return list
}

func compareQueues(x, y queueID) int {
	return cmp.Or(x.port.Compare(y.port), cmp.Compare(x.class, y.class))
}

// culpritsAt returns the flows that make up four fifths of a queue's traffic, the
// largest first, scaled so that all samples meet the port's byte counter.
func (a *Analyzer) culpritsAt(q queueID) (list []Culprit) {
	s := &a.nodes[q.port.Node]
	total, all := uint64(0), uint64(0)
	for at, f := range s.flows {
		if at.out != q.port.Port {
			continue
		}
		all += f.bytes
		if f.class == q.class || f.class == unknownClass {
			total += f.bytes
			list = append(list, Culprit{Flow: at.flow, Bytes: f.bytes, Samples: f.samples})
		}
	}
	slices.SortFunc(list, compareCulprits)
	sum, n := uint64(0), 0
	for n < len(list) && n < maxCulprits && 5*sum < 4*total {
		sum += list[n].Bytes
		n++
	}
	list = list[:n]
	if p := &s.ports[q.port.Port-1]; p.bytes.span > 0 && all > 0 {
		scale := float64(p.bytes.tx) / float64(all)
		for i := range list {
			list[i].Bytes = uint64(float64(list[i].Bytes) * scale)
		}
	}
	return list
}

const maxCulprits = 64

func compareCulprits(x, y Culprit) int {
	return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), x.Flow.Compare(y.Flow))
}

// shareOfOne returns the share of the culprits' bytes that go to the host that gets
// most of them.
func shareOfOne(list []Culprit) float64 {
	to := map[model.Addr]uint64{}
	all, most := uint64(0), uint64(0)
	for i := range list {
		to[list[i].Flow.Dst] += list[i].Bytes
		all, most = all+list[i].Bytes, max(most, to[list[i].Flow.Dst])
	}
	return float64(most) / float64(max(all, 1))
}

func senders(list []Culprit) int {
	seen := map[model.Addr]bool{}
	for i := range list {
		seen[list[i].Flow.Src] = true
	}
	return len(seen)
}

// findDrops finds packets that a switch dropped, by the reason that it counts.
func (a *Analyzer) findDrops(id model.NodeID) (list []finding) {
	s := &a.nodes[id]
	var drops [portstat.NumReasons]uint64
	unexplained, counted := uint64(0), portstat.ReasonSet(0)
	for i := range s.ports {
		p := &s.ports[i]
		for r, n := range p.drops {
			drops[r] += n
		}
		unexplained += p.discards
		counted |= p.reasons
	}
	if counted == 0 {
		// Agents limit the rate of notifications: there were at least as many drops.
		drops = s.notified
		for _, n := range drops[1:] {
			unexplained -= min(unexplained, n)
		}
	} else {
		unexplained = 0
	}
	add := func(k kind, weight int, strength float64, packets uint64, reasons ...portstat.Reason) {
		if packets == 0 {
			return
		}
		f := a.newFinding(k, model.Port{Node: id}, 0)
		f.weight, f.strength, f.packets, f.flows = weight, strength, packets, s.droppedFlows(reasons...)
		for _, r := range reasons {
			if drops[r] > 0 {
				f.reason = r.String()
			}
		}
		list = append(list, f)
	}
	// The switch itself says that it had no route.
	add(discarding, 3, 1, drops[portstat.NoRoute]+drops[portstat.BlackholeRoute], portstat.NoRoute, portstat.BlackholeRoute)
	add(looping, 1, ambiguous, drops[portstat.TTLExpired], portstat.TTLExpired) // traceroute does it, too
	add(overflowing, 1, 1, drops[portstat.NoBuffer], portstat.NoBuffer)
	add(discardingUnexplained, 1, ambiguous, unexplained)
	return list
}

// droppedFlows returns the flows of drop notifications.
func (s *switchState) droppedFlows(reasons ...portstat.Reason) (list []model.FlowKey) {
	for k, r := range s.dropped {
		if slices.Contains(reasons, r) {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, model.FlowKey.Compare)
	return list[:min(len(list), maxCulprits)]
}

// findErrors finds links whose receiving end counts broken frames.
func (a *Analyzer) findErrors(id model.NodeID) (list []finding) {
	for i := range a.nodes[id].ports {
		p := &a.nodes[id].ports[i]
		if p.fcs+p.fecBroken == 0 {
			continue
		}
		at := model.Port{Node: id, Port: model.PortID(i + 1)}
		f := a.newFinding(corrupting, at, 0)
		f.packets, f.weight = p.fcs, 3
		f.reason = fmt.Sprintf("%d frames with a wrong CRC, %d code words that FEC could not repair", p.fcs, p.fecBroken)
		list = append(list, f)
	}
	return list
}

// findImbalance judges the samples of the last window, each half a window.
func (a *Analyzer) findImbalance() (list []finding) {
	var now model.Time
	var interval time.Duration
	for _, id := range a.fabric.Switches() {
		if s := &a.nodes[id]; s.fresh {
			now, interval = max(now, s.to), max(interval, s.interval)
		}
	}
	if a.round-a.windowRound < balanceRounds/2 || now.Sub(a.windowEnd) < a.cfg.BalanceWindow/2 {
		return nil
	}
	a.windowRound, a.windowEnd = a.round, now
	a.windows++
	var worst *load.Imbalance
	var extent []model.NodeID
	found := a.balance[a.windows%2].TakeImbalances()
	for i := range found {
		if im := &found[i]; im.Cause == load.Hash {
			extent = append(extent, im.Switch)
			if worst == nil || im.Ratio > worst.Ratio {
				worst = im
			}
		}
	}
	if worst == nil {
		delete(a.episodes, episodeID{kind: unbalanced})
		return nil
	}
	// Among hundreds of groups and windows one is uneven by chance: a single switch
	// needs two windows.
	weight := balanceRounds / 2
	if len(extent) == 1 {
		weight = 1
	}
	// One episode for the fabric: its switches are configured alike.
	return []finding{{
		episodeID: episodeID{kind: unbalanced}, at: model.Port{Node: worst.Switch}, strength: 1, weight: weight,
		from: now.Add(-max(a.cfg.BalanceWindow, balanceRounds*interval)), to: now, interval: interval,
		extent: extent, text: worst.Describe(a.fabric),
	}}
}

// balanceRounds is the least number of rounds in a window.
const balanceRounds = 4
