package dcqcn

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Variant is one of the two known forms of DCQCN.
type Variant uint8

// Variants.
const (
	// Mellanox is the form of NICs and of the HPCC simulator: CNPs set flags,
	// which timers that run since the first CNP look at.
	Mellanox Variant = iota
	// Published is the form of the paper: each CNP acts at once, and rates
	// recover by a timer and by bytes sent.
	Published
)

// Params are the constants of rate control.
type Params struct {
	Variant Variant

	Gain float64 // g, the weight of the newest observation in alpha

	// AlphaInterval is Mellanox's time between updates of alpha, and
	// Published's time without a CNP after which alpha decays.
	AlphaInterval time.Duration

	// DecreaseInterval is the time between looks at whether a CNP has come.
	// Mellanox only.
	DecreaseInterval time.Duration

	// IncreaseInterval is the time between steps up since the last cut.
	IncreaseInterval time.Duration

	// ByteCounter is how many bytes sent make a step up too; 0: none.
	// Published only.
	ByteCounter model.Bytes

	// FastRecovery is how many steps go halfway to the target before steps
	// raise the target too.
	FastRecovery int

	AI, HAI model.Rate // additive and hyper increase of the target
	MinRate model.Rate // no cut goes below

	// ClampTarget makes every cut lower the target to the rate before it.
	// Without it a cut that follows another before any step up leaves the
	// target, so that a burst of CNPs does not lower it more than once.
	// Mellanox only; Published always clamps.
	ClampTarget bool

	FirstRate float64 // what the first CNP multiplies the rate by; Mellanox only
}

// HPCC returns what the HPCC simulator's example configuration says.
func HPCC() Params {
	return Params{
		Variant: Mellanox, Gain: 1. / 256,
		AlphaInterval: time.Microsecond, DecreaseInterval: 4 * time.Microsecond, IncreaseInterval: 900 * time.Microsecond,
		FastRecovery: 1, AI: 50 * model.Mbps, HAI: 100 * model.Mbps, MinRate: 100 * model.Mbps,
		FirstRate: 1,
	}
}

// PaperCNPInterval is the paper's least time between two CNPs of a flow.
const PaperCNPInterval = 50 * time.Microsecond

// Paper returns the constants of the DCQCN paper. It names no lowest rate; ours
// is that of the HPCC simulator. It leaves hyper increase open; so do we.
func Paper() Params {
	return Params{
		Variant: Published, Gain: 1. / 256,
		AlphaInterval: 55 * time.Microsecond, IncreaseInterval: 55 * time.Microsecond, ByteCounter: 10 * model.MB,
		FastRecovery: 5, AI: 40 * model.Mbps, MinRate: 100 * model.Mbps,
	}
}

// maxInterval keeps the sum of a time and an interval a time.
const maxInterval = time.Hour

func usable(interval time.Duration) bool { return interval > 0 && interval <= maxInterval }

// Check complains about constants that cannot work.
func (p *Params) Check() error {
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
		return fmt.Errorf("dcqcn: %d steps of fast recovery, want at least 0", p.FastRecovery)
	case p.AI < 0 || p.HAI < 0:
		return fmt.Errorf("dcqcn: increases %v and %v, want at least 0b/s", p.AI, p.HAI)
	case p.MinRate < 1:
		return fmt.Errorf("dcqcn: lowest rate %v, want at least 1b/s", p.MinRate)
	case p.Variant == Published && p.ByteCounter < 0:
		return fmt.Errorf("dcqcn: byte counter %v, want at least 0B", p.ByteCounter)
	case p.Variant == Mellanox && !usable(p.DecreaseInterval):
		return fmt.Errorf("dcqcn: decrease interval %v, want above 0 and at most %v", p.DecreaseInterval, maxInterval)
	case p.Variant == Mellanox && !(p.FirstRate > 0 && p.FirstRate <= 1):
		return fmt.Errorf("dcqcn: rate after the first CNP %v, want above 0 and at most 1", p.FirstRate)
	}
	return nil
}
