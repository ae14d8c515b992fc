package commodity

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/analyze/load"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Config configures an Analyzer.
type Config struct {
	Intent *topo.Intent

	// MinPaused is the share of an interval that a port must be paused before it
	// counts: fabrics under load pause now and then.
	MinPaused float64
	// StormPaused is the share of an interval from which on a host that pauses its
	// switch is a storm, if next to nothing was sent to it.
	StormPaused float64
	// MinSenders is how many hosts must send to one before a congested queue is an
	// incast; with fewer it is contention, which every busy fabric has.
	MinSenders int
	// MinDuration is how long PFC must last before it is returned.
	MinDuration time.Duration
	// MinConfidence is the confidence from which on verdicts are returned.
	MinConfidence float64
	// BalanceWindow is the time whose samples are judged together for ECMP imbalance:
	// at least four intervals of the counters.
	BalanceWindow time.Duration
	// MaxFlows bounds the flows of a round at one switch; samples of others are
	// counted as refused.
	MaxFlows int
}

// DefaultConfig returns the settings that claims commodity-* were measured with.
func DefaultConfig(in *topo.Intent) Config {
	return Config{
		Intent: in, MinPaused: 0.05, StormPaused: 0.9, MinSenders: 4, MinDuration: 100 * time.Millisecond, MinConfidence: 0.6, BalanceWindow: 400 * time.Millisecond, MaxFlows: 1 << 14,
	}
}

func (c *Config) check() error {
	switch {
	case c.Intent == nil:
		return errors.New("commodity: no intended routes, want a topo.Intent")
	case !(c.MinPaused > 0 && c.MinPaused < c.StormPaused && c.StormPaused <= 1):
		return fmt.Errorf("commodity: paused shares %v and %v, want above 0, in ascending order, at most 1", c.MinPaused, c.StormPaused)
	case !(c.MinConfidence >= 0 && c.MinConfidence < 1):
		return fmt.Errorf("commodity: confidence %v, want from 0 to below 1", c.MinConfidence)
	case c.BalanceWindow <= 0:
		return fmt.Errorf("commodity: balance window %v, want above 0", c.BalanceWindow)
	case c.MinSenders < 2 || c.MinDuration < 0:
		return fmt.Errorf("commodity: %d senders for %v, want at least 2 senders and a duration of at least 0", c.MinSenders, c.MinDuration)
	case c.MaxFlows < 1:
		return fmt.Errorf("commodity: %d flows, want at least 1", c.MaxFlows)
	}
	return nil
}

// Counts are what an Analyzer took and refused.
type Counts struct {
	Readings, Samples uint64
	UnknownPort       uint64 // readings and samples of ports that the fabric does not have
	BadInterval       uint64 // readings that end before they start, or before the one before
	TooManyFlows      uint64 // samples beyond Config.MaxFlows
}

// Analyzer is the state machine. It is not safe for concurrent use.
type Analyzer struct {
	cfg     Config
	fabric  *topo.Fabric
	nodes   []switchState
	balance [2]*load.BalanceDetector // with windows that overlap by half
	// windows were judged; the newest ended in a round, at an instant.
	windows     int
	windowRound int
	windowEnd   model.Time
	round       int
	counts      Counts

	next     map[queueID]queueID   // who waits for whom, of all switches' newest readings
	waiters  map[queueID][]queueID // the reverse, of this round
	waited   map[queueID]wait      // what every queue waited for, by its newest wait
	episodes map[episodeID]*episode
	links    map[model.Port]*linkSums // by the sending end
}

// wait is what a queue waited for in a round.
type wait struct {
	root  queueID
	round int
}

// queueID is one class of one port.
type queueID struct {
	port  model.Port
	class model.Priority
}

// New returns an analyzer that has seen nothing.
func New(cfg Config) (*Analyzer, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	f := cfg.Intent.At(0).Fabric()
	a := &Analyzer{
		cfg: cfg, fabric: f, nodes: make([]switchState, len(f.Nodes())), next: map[queueID]queueID{},
		waited:   map[queueID]wait{},
		episodes: map[episodeID]*episode{}, links: map[model.Port]*linkSums{},
	}
	for i := range a.balance {
		b := load.DefaultBalanceConfig(cfg.Intent)
		b.MaxFlows = 1 << 18
		detector, err := load.NewBalanceDetector(b)
		if err != nil {
			return nil, err
		}
		a.balance[i] = detector
	}
	return a, nil
}

// Counts returns what was taken and refused.
func (a *Analyzer) Counts() Counts { return a.counts }
