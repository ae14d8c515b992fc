package flowfindings

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
)

// Config bounds a Log.
type Config struct {
	// MaxRows is how many rows the log keeps of each kind of finding. Beyond it the
	// row that ended first is evicted.
	MaxRows int
	// MaxFlows is how many flows the log keeps of one finding.
	MaxFlows int
	// MaxSpan is how long a finding extends its row; after that it begins a new one.
	// It is the resolution of ranges, and lets the past of a lasting fault be evicted.
	MaxSpan time.Duration
}

// DefaultConfig takes up to about 50 MB, if every finding affects a thousand flows.
func DefaultConfig() Config {
	return Config{MaxRows: 256, MaxFlows: 1024, MaxSpan: time.Minute}
}

// Log keeps findings. It is safe for concurrent use.
type Log struct {
	cfg        Config
	mu         sync.Mutex
	paths      rows[api.PathFinding]
	losses     rows[api.LinkLoss]
	imbalances rows[api.ECMPImbalance]
	bursts     rows[api.MicroburstFinding]
	periodic   rows[api.PeriodicSender]
}

// New makes an empty log.
func New(cfg Config) (*Log, error) {
	if cfg.MaxRows < 1 || cfg.MaxFlows < 1 || cfg.MaxSpan <= 0 {
		return nil, fmt.Errorf("flowfindings: %d rows of %d flows, up to %v long; want at least 1, at least 1, and above 0",
			cfg.MaxRows, cfg.MaxFlows, cfg.MaxSpan)
	}
	l := &Log{cfg: cfg}
	l.paths = rows[api.PathFinding]{
		cfg: &l.cfg, key: pathKey, merge: mergePaths,
		time:  func(f *api.PathFinding) *api.FindingTime { return &f.FindingTime },
		flows: func(f *api.PathFinding) *api.AffectedFlows { return &f.AffectedFlows },
	}
	l.losses = rows[api.LinkLoss]{
		cfg: &l.cfg, key: lossKey, merge: mergeLosses,
		time:  func(f *api.LinkLoss) *api.FindingTime { return &f.FindingTime },
		flows: func(f *api.LinkLoss) *api.AffectedFlows { return &f.AffectedFlows },
	}
	l.imbalances = rows[api.ECMPImbalance]{
		cfg: &l.cfg, key: imbalanceKey, merge: mergeImbalances,
		time: func(f *api.ECMPImbalance) *api.FindingTime { return &f.FindingTime },
	}
	l.bursts = rows[api.MicroburstFinding]{
		cfg: &l.cfg, key: burstKey,
		time:  func(f *api.MicroburstFinding) *api.FindingTime { return &f.FindingTime },
		flows: func(f *api.MicroburstFinding) *api.AffectedFlows { return &f.AffectedFlows },
	}
	l.periodic = rows[api.PeriodicSender]{
		cfg: &l.cfg, key: periodicKey, merge: mergePeriodic,
		time: func(f *api.PeriodicSender) *api.FindingTime { return &f.FindingTime },
	}
	return l, nil
}

// AddPath adds a forwarding fault of one slot. The log copies lists of flows.
func (l *Log) AddPath(f api.PathFinding) { add(l, &l.paths, f) }

// AddLoss adds the losses of a link in one window.
func (l *Log) AddLoss(f api.LinkLoss) { add(l, &l.losses, f) }

// AddImbalance adds an ECMP imbalance of one window.
func (l *Log) AddImbalance(f api.ECMPImbalance) {
	f.Heavy = slices.Clone(f.Heavy[:min(len(f.Heavy), l.cfg.MaxFlows)])
	add(l, &l.imbalances, f)
}

// AddBurst adds a microburst that has ended.
func (l *Log) AddBurst(f api.MicroburstFinding) { add(l, &l.bursts, f) }

// AddPeriodicSender adds a periodic sender. It replaces the sender's last finding.
func (l *Log) AddPeriodicSender(f api.PeriodicSender) { add(l, &l.periodic, f) }

func add[T any](l *Log, r *rows[T], f T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.add(f)
}

// Find returns the findings that overlap a range, each once.
func (l *Log) Find(from, to time.Time) api.FlowFindings {
	// The controller adds findings meanwhile: it must not wait while they are merged.
	l.mu.Lock()
	paths, losses, imbalances := l.paths.snapshot(), l.losses.snapshot(), l.imbalances.snapshot()
	bursts, periodic := l.bursts.snapshot(), l.periodic.snapshot()
	l.mu.Unlock()
	f := api.FlowFindings{
		From: from, To: to,
		Paths: paths.find(from, to), Losses: losses.find(from, to), Imbalances: imbalances.find(from, to),
		Bursts: bursts.find(from, to), PeriodicSenders: periodic.find(from, to),
		Omitted: paths.omitted(from) + losses.omitted(from) + imbalances.omitted(from) + bursts.omitted(from) + periodic.omitted(from),
	}
	slices.SortStableFunc(f.Losses, func(a, b api.LinkLoss) int { return cmp.Compare(b.LostPackets, a.LostPackets) })
	slices.SortStableFunc(f.Imbalances, func(a, b api.ECMPImbalance) int { return cmp.Compare(b.Ratio, a.Ratio) })
	return f
}

func pathKey(f *api.PathFinding) string { return fmt.Sprint(f.Kind, f.Stalled, f.At, f.Switches) }

// mergePaths adds a later finding. Flows that passed are those of the first slot.
func mergePaths(f, more *api.PathFinding) {
	f.Confirmed = f.Confirmed || more.Confirmed
	if f.Next == nil {
		f.Next = more.Next
	}
}

func lossKey(f *api.LinkLoss) string {
	return fmt.Sprint(f.From, f.To, f.Pattern == loss.WholePath.String())
}

// mergeLosses adds a later window. Losses are selective if they are in every window.
func mergeLosses(f, more *api.LinkLoss) {
	f.LostPackets += more.LostPackets
	f.SentPackets += more.SentPackets
	if f.Pattern == loss.Selective.String() {
		f.Pattern = more.Pattern
	}
}

func imbalanceKey(f *api.ECMPImbalance) string {
	key := f.Switch
	for i := range f.Ports {
		key += fmt.Sprint(" ", f.Ports[i].Port)
	}
	return key
}

// mergeImbalances keeps the window with the highest ratio.
func mergeImbalances(f, more *api.ECMPImbalance) {
	if more.Ratio > f.Ratio {
		f.Ratio, f.Cause, f.Ports, f.Heavy = more.Ratio, more.Cause, more.Ports, more.Heavy
	}
}

func burstKey(f *api.MicroburstFinding) string { return fmt.Sprint(f.Port, f.First.UnixNano()) }

func periodicKey(f *api.PeriodicSender) string { return fmt.Sprint(f.Port, f.Source) }

// mergePeriodic keeps the newer finding, which includes the older one's bursts.
func mergePeriodic(f, more *api.PeriodicSender) {
	t := f.FindingTime
	*f = *more
	f.FindingTime = t
}

// mergeFlows adds flows, each once, up to a limit. It never changes a list of flows
// in place: snapshots share them.
func mergeFlows(f *api.AffectedFlows, more *api.AffectedFlows, limit int) {
	f.Truncated = f.Truncated || more.Truncated
	fresh := slices.Clone(more.Flows)
	slices.SortFunc(fresh, model.FlowKey.Compare)
	fresh = slices.DeleteFunc(slices.Compact(fresh), func(k model.FlowKey) bool {
		_, found := slices.BinarySearchFunc(f.Flows, k, model.FlowKey.Compare)
		return found
	})
	if free := limit - len(f.Flows); len(fresh) > free {
		fresh, f.Truncated = fresh[:max(free, 0)], true
	}
	if len(fresh) > 0 {
		f.Flows = slices.Concat(f.Flows, fresh)
		slices.SortFunc(f.Flows, model.FlowKey.Compare)
	}
}
