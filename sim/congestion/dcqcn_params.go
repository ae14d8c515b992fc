package congestion

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// DCQCNVariant is one of the two published forms of DCQCN.
type DCQCNVariant uint8

// Variants.
const (
	// Mellanox is the form of NICs and of the HPCC simulator: CNPs set flags,
	// which timers that run from the first CNP on read.
	Mellanox DCQCNVariant = iota
	// Published is the form of the paper: each CNP acts at once, and rates
	// recover by a timer and by bytes sent.
	Published
)

// DCQCNParams are the constants of DCQCN. They implement Params.
type DCQCNParams struct {
	Variant DCQCNVariant

	Gain float64 `yaml:"gain"` // g, the weight of the newest observation in alpha

	// AlphaInterval is Mellanox's time between updates of alpha, and
	// Published's time without a CNP after which alpha decays.
	AlphaInterval time.Duration `yaml:"alpha-interval"`

	// DecreaseInterval is the time between checks for a CNP. Mellanox only.
	DecreaseInterval time.Duration `yaml:"decrease-interval"`

	// IncreaseInterval is the time between rate increases since the last cut.
	IncreaseInterval time.Duration `yaml:"increase-interval"`

	// ByteCounter bytes sent cause a rate increase too; 0: never. Published only.
	ByteCounter model.Bytes `yaml:"byte-counter"`

	// FastRecovery is the number of increases that go halfway to the target
	// before increases raise the target too.
	FastRecovery int `yaml:"fast-recovery"`

	AI      model.Rate `yaml:"ai"`       // additive increase of the target
	HAI     model.Rate `yaml:"hai"`      // hyper increase of the target
	MinRate model.Rate `yaml:"min-rate"` // no cut goes below

	// ClampTarget makes every cut lower the target to the rate before it.
	// Without it a cut that follows another before any increase leaves the
	// target, so that a burst of CNPs does not lower it more than once.
	// Mellanox only; Published always clamps.
	ClampTarget bool `yaml:"clamp-target"`

	FirstRate float64 `yaml:"first-rate"` // the first CNP multiplies the rate by it; Mellanox only
}

// HPCCSimDCQCN returns the constants of the HPCC simulator's example configuration.
func HPCCSimDCQCN() *DCQCNParams {
	return &DCQCNParams{
		Variant: Mellanox, Gain: 1. / 256,
		AlphaInterval: time.Microsecond, DecreaseInterval: 4 * time.Microsecond, IncreaseInterval: 900 * time.Microsecond,
		FastRecovery: 1, AI: 50 * model.Mbps, HAI: 100 * model.Mbps, MinRate: 100 * model.Mbps,
		FirstRate: 1,
	}
}

// PaperCNPInterval is the paper's least time between two CNPs of a flow.
const PaperCNPInterval = 50 * time.Microsecond

// PaperDCQCN returns the constants of the DCQCN paper. It names no lowest rate; ours
// is that of the HPCC simulator. It leaves hyper increase open; so do we.
func PaperDCQCN() *DCQCNParams {
	return &DCQCNParams{
		Variant: Published, Gain: 1. / 256,
		AlphaInterval: 55 * time.Microsecond, IncreaseInterval: 55 * time.Microsecond, ByteCounter: 10 * model.MB,
		FastRecovery: 5, AI: 40 * model.Mbps, MinRate: 100 * model.Mbps,
	}
}

// maxInterval keeps the sum of a time and an interval a time.
const maxInterval = time.Hour

func usable(interval time.Duration) bool { return interval > 0 && interval <= maxInterval }

// Check reports constants that cannot work.
func (p *DCQCNParams) Check() error {
	switch {
	case p.Variant > Published:
		return fmt.Errorf("dcqcn: variant %d, want Mellanox (0) or Published (1)", p.Variant)
	case !(p.Gain > 0 && p.Gain <= 1):
		return fmt.Errorf("dcqcn: gain %v, want above 0 and at most 1", p.Gain)
	case !usable(p.AlphaInterval):
		return fmt.Errorf("dcqcn: alpha interval %v, want above 0 and at most %v", p.AlphaInterval, maxInterval)
	case !usable(p.IncreaseInterval):
		return fmt.Errorf("dcqcn: increase interval %v, want above 0 and at most %v", p.IncreaseInterval, maxInterval)
	case p.FastRecovery < 0:
		return fmt.Errorf("dcqcn: %d increases of fast recovery, want at least 0", p.FastRecovery)
	case p.AI < 0 || p.HAI < 0:
		return fmt.Errorf("dcqcn: increases %v and %v, want at least 0b/s", p.AI, p.HAI)
	case p.MinRate < 1:
		return fmt.Errorf("dcqcn: min rate %v, want at least 1b/s", p.MinRate)
	case p.Variant == Published && p.ByteCounter < 0:
		return fmt.Errorf("dcqcn: byte counter %v, want at least 0B", p.ByteCounter)
	case p.Variant == Mellanox && !usable(p.DecreaseInterval):
		return fmt.Errorf("dcqcn: decrease interval %v, want above 0 and at most %v", p.DecreaseInterval, maxInterval)
	case p.Variant == Mellanox && !(p.FirstRate > 0 && p.FirstRate <= 1):
		return fmt.Errorf("dcqcn: rate after the first CNP %v, want above 0 and at most 1", p.FirstRate)
	}
	return nil
}
