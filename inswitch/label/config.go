package label

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/label"
)

// Config says which packets a switch labels.
type Config struct {
	// Interval is T: a port whose last label is older labels the next packet.
	Interval time.Duration
	// MinInterval is T1: a port whose last label is younger labels no packet at
	// random. With MinInterval equal to Interval there are no random labels,
	// which is the paper's Base A; with MinInterval 0 its Base B.
	MinInterval time.Duration
	Probability Probability

	MaxHop uint8 // maximum labels per packet, 1 to 32
	MTU    int   // longest IP packet that the links carry; 0: that of the Device

	List dta.ListID // where exports go
	Seed uint64     // of the random labels; different in every switch
}

// DefaultConfig labels every 50 ms, as the paper's testbed did, and by F1 in
// between.
func DefaultConfig() Config {
	return Config{Interval: 50 * time.Millisecond, Probability: ProbabilityF1(), MaxHop: label.DefaultMaxHop}
}

// Check returns an error for the first invalid field.
func (c *Config) Check() error {
	switch {
	case c.Interval <= 0:
		return fmt.Errorf("label: interval %v, want more than 0", c.Interval)
	case c.MinInterval < 0 || c.MinInterval > c.Interval:
		return fmt.Errorf("label: minimum interval %v, want 0 to the interval, %v", c.MinInterval, c.Interval)
	case c.MaxHop < 1 || c.MaxHop > label.MaxMaxHop:
		return fmt.Errorf("label: %d labels on a packet, want 1 to %d", c.MaxHop, label.MaxMaxHop)
	case c.MTU < 0:
		return fmt.Errorf("label: MTU %d, want 0 or more", c.MTU)
	}
	return nil
}

// Probability is the probability that a packet gets a label before the interval
// is over, by the number of labels that it carries. Packets with labels get
// more: labels gather in fewer packets, and fewer reports are sent.
type Probability struct {
	table         [label.MaxMaxHop + 1]uint32 // in 1/2^32; the largest value means 1
	growsWithTime bool
}

const certain = 1<<32 - 1

// ProbabilityTable returns the given probabilities for 0, 1, 2 … labels. The
// last one holds for all higher numbers. A packet without labels normally has
// 0.
func ProbabilityTable(p ...float64) (o Probability, err error) {
	if len(p) == 0 || len(p) > len(o.table) {
		return o, fmt.Errorf("label: %d probabilities, want 1 to %d", len(p), len(o.table))
	}
	for i := range o.table {
		v := p[min(i, len(p)-1)]
		if !(v >= 0 && v <= 1) {
			return o, fmt.Errorf("label: probability %v after %d labels, want 0 to 1", v, i)
		}
		o.table[i] = uint32(v * certain)
	}
	return o, nil
}

// ProbabilityF1 is the paper's F1: every packet that has a label gets another.
func ProbabilityF1() Probability {
	o, _ := ProbabilityTable(0, 1)
	return o
}

// ProbabilityF2 is the paper's F2: proportional to the packet's labels, 1 from
// n on. The paper's text has n = MAX_hop - 1, its code and Fig. 15 n = MAX_hop.
func ProbabilityF2(n int) Probability {
	p := make([]float64, min(max(n, 1), label.MaxMaxHop)+1)
	for i := range p {
		p[i] = float64(i) / float64(len(p)-1)
	}
	o, _ := ProbabilityTable(p...)
	return o
}

// GrowWithTime scales a probability by the time since the last label, reaching
// 1 times it at the end of the interval: GrowWithTime(ProbabilityF2(n)) is the
// paper's F3.
func GrowWithTime(o Probability) Probability {
	o.growsWithTime = true
	return o
}

// FlowSample requests the whole path of a flow: one in OneIn of its packets is
// labelled by every switch, beginning with the first one of the fabric.
type FlowSample struct {
	Key   model.FlowKey
	OneIn uint32 // at least 1
}
