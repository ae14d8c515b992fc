package commodity

import (
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
)

// kind is what an episode is about.
type kind uint8

const (
	hostPauses kind = iota
	congested
	full // congested without PFC
	unbalanced
	deadlocked
	discarding
	discardingUnexplained // by no reason that the switch exports
	overflowing
	looping
	corrupting
	leaking // a link that delivers less than was sent
)

// episodeID names an episode.
type episodeID struct {
	kind  kind
	port  model.Port
	class model.Priority
}

// finding is what one round shows.
type finding struct {
	episodeID
	at       model.Port // where it is
	from, to model.Time
	interval time.Duration
	// weight is how many intervals it rests on: more than one where an interval
	// alone rules out harmless explanations.
	weight   int
	strength float64 // 1: everything was measured; less: bounded, or one of several explanations

	share, tx float64 // of time paused; of the link's rate
	storm     bool    // the interval shows a storm
	packets   uint64  // lost in this round; of a leaking link, in all
	sent      uint64  // of a leaking link
	reason    string
	culprits  []Culprit
	flows     []model.FlowKey
	extent    []model.NodeID
	path      []model.Port
	text      string
}

// toOne is the share of the culprits' bytes that must go to one host in an incast.
const toOne = 0.8

// episode is findings of successive rounds.
type episode struct {
	finding // of the newest round
	first   model.Time
	weights int
	longest time.Duration // of the intervals
	peak    float64       // share of time paused
	storms  int           // intervals that show a storm
	lost    uint64        // packets, in all
	newLost uint64        // in the newest round
	named   []Culprit     // of the window with the most senders
	window  []Culprit     // of rounds since windowFrom
	round   int

	windowFrom model.Time
}

// intervals of counters that may miss a finding before the episode is forgotten.
const forgetAfter = 64

// note adds a round's finding to its episode.
func (a *Analyzer) note(f *finding) *episode {
	e := a.episodes[f.episodeID]
	if e == nil {
		if len(a.episodes) >= maxEpisodes {
			return nil
		}
		e = &episode{first: f.from}
		a.episodes[f.episodeID] = e
	}
	e.finding = *f
	e.weights += f.weight
	e.longest, e.peak = max(e.longest, f.interval), max(e.peak, f.share)
	total := e.lost + f.packets
	if f.kind == leaking {
		total = max(f.packets, e.lost)
	}
	e.lost, e.newLost = total, total-e.lost
	if f.storm {
		e.storms++
	}
	a.addCulprits(e, f)
	e.round = a.round
	return e
}

// addCulprits adds the flows of a round. Those of short intervals are joined: few
// samples show few flows. Those of a longer time are not: they did not meet.
func (a *Analyzer) addCulprits(e *episode, f *finding) {
	if len(e.window) == 0 || f.to.Sub(e.windowFrom) > a.cfg.MinDuration {
		e.window, e.windowFrom = e.window[:0], f.from
	}
	for _, c := range f.culprits {
		i := slices.IndexFunc(e.window, func(k Culprit) bool { return k.Flow == c.Flow })
		if i < 0 {
			e.window = append(e.window, c)
			continue
		}
		e.window[i].Bytes, e.window[i].Samples = e.window[i].Bytes+c.Bytes, e.window[i].Samples+c.Samples
	}
	slices.SortFunc(e.window, compareCulprits)
	e.window = e.window[:min(len(e.window), maxCulprits)]
	if senders(e.window) >= senders(e.named) {
		e.named = slices.Clone(e.window)
	}
}

// maxEpisodes bounds episodes of all kinds: more than any fabric has at once.
const maxEpisodes = 1 << 16

// endEpisodes forgets episodes that the readings of this round do not show any more.
func (a *Analyzer) endEpisodes() {
	for id, e := range a.episodes {
		reported := id.kind != unbalanced && a.nodes[id.port.Node].fresh
		if e.round != a.round && (reported || a.round-e.round > forgetAfter) {
			delete(a.episodes, id)
		}
	}
}

// confidence falls with the length of the intervals: an episode of the same duration
// has fewer of them, and each has more explanations.
func (e *episode) confidence() float64 {
	return e.strength * float64(e.weights) / float64(e.weights+1)
}

// together is the share of confidence that senders act together: the fewer they are, the
// more likely they met by chance, and the longer that must last.
func together(list []Culprit) float64 { return 1 - 1/float64(max(senders(list), 1)) }

// lasted returns how long PFC has been seen; what switches drop counts at once.
func (e *episode) lasted() time.Duration {
	if e.kind == hostPauses || e.kind == congested || e.kind == full {
		return e.to.Sub(e.first)
	}
	return math.MaxInt64
}

// cause returns what an episode is evidence of.
func (a *Analyzer) cause(e *episode) anomaly.Cause {
	switch e.kind {
	case hostPauses:
		if e.storms > 0 {
			return anomaly.Storm
		}
		return anomaly.SlowReceiver
	case congested:
		// On a link between switches the same flows have met by chance of their paths.
		if !a.isHost(a.peer(e.at).Node) || senders(e.named) < a.cfg.MinSenders || shareOfOne(e.named) < toOne ||
			e.confidence()*together(e.named) < a.cfg.MinConfidence {
			return anomaly.Contention
		}
		return anomaly.Incast
	case full, overflowing:
		return anomaly.Contention
	case unbalanced:
		return anomaly.Imbalance
	case deadlocked:
		return anomaly.Deadlock
	case discarding:
		return anomaly.Blackhole
	case looping:
		return anomaly.Loop
	default:
		return anomaly.Loss
	}
}
