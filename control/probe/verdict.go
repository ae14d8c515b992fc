package probe

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
)

// Kind is the kind of a drop.
type Kind uint8

// Kinds.
const (
	// Passed: lost mirrors explain what is missing. An earlier loss is over, or was
	// none.
	Passed     Kind = iota
	Persistent      // every packet is lost, of all patterns
	Random          // some packets are lost, of all patterns equally
	Blackhole       // every packet of certain patterns is lost, and none of others
	Selective       // some packets of certain patterns are lost, and fewer or none of others
	Looping         // packets loop
	Unreached       // too few probes reached the injection point
)

// String prints the kind's name.
func (k Kind) String() string {
	return [...]string{"passed", "persistent", "random", "blackhole", "selective", "loop", "unreached"}[k]
}

// MarshalText is for JSON.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Pattern is probes of one 5-tuple.
type Pattern struct {
	Flow    model.FlowKey `json:"flow"`
	Varied  Field         `json:"varied"`  // what differs from the flow in question
	Sent    uint64        `json:"sent"`    // as far as known
	Reached uint64        `json:"reached"` // the switch into which they were injected
	Lost    uint64        `json:"lost"`    // not seen where they should have arrived
	Looped  uint64        `json:"looped,omitempty"`
	Loss    Interval      `json:"loss"`
	// Probability that lost mirrors make this number look lost.
	Chance float64 `json:"chance"`
}

// Field is what a pattern varies.
type Field uint8

// Fields.
const (
	Nothing Field = iota // the flow itself
	SrcPort
	DstPort
	Protocol
	Source
	Destination
)

// String prints the field's name.
func (f Field) String() string {
	return [...]string{"-", "source port", "destination port", "protocol", "source", "destination"}[f]
}

// MarshalText is for JSON.
func (f Field) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// Verdict is the kind of a drop, and how certain it is.
type Verdict struct {
	Kind     Kind      `json:"kind"`
	Scope    string    `json:"scope"` // what is affected, in words
	Patterns []Pattern `json:"patterns"`
	Reached  uint64    `json:"reached"` // probes, of all patterns
	Lost     uint64    `json:"lost"`
	Loss     Interval  `json:"loss"`
	Excused  float64   `json:"excused"` // share that lost mirrors may make look lost
	Chance   float64   `json:"chance"`  // probability that lost mirrors alone explain it
	Alike    float64   `json:"alike"`   // probability of these differences if all patterns have the same loss rate
}

// Levels are the probabilities below which an explanation is rejected.
type Levels struct {
	Mirrors     float64 // lost mirrors alone
	Homogeneity float64 // all patterns have the same loss rate
	MinProbes   uint64  // probes that must have reached the injection point
}

// DefaultLevels are wrong once in ten thousand questions. Eight lost of eight beside
// none of eight distinguish a blackhole from random loss.
func DefaultLevels() Levels { return Levels{Mirrors: 1e-4, Homogeneity: 1e-4, MinProbes: 8} }

// Decide evaluates counts of patterns, the first of which is the flow in question.
// Excused is the largest share of probes that lost mirrors make look lost.
func Decide(patterns []Pattern, excused float64, at Levels) Verdict {
	v := Verdict{Patterns: patterns, Excused: excused}
	looped := uint64(0)
	for i := range patterns {
		p := &patterns[i]
		p.Loss, p.Chance = intervalOf(p.Lost, p.Reached), atLeast(p.Lost, p.Reached, excused)
		v.Reached += p.Reached
		v.Lost += p.Lost
		looped += p.Looped
	}
	v.Loss, v.Chance, v.Alike = intervalOf(v.Lost, v.Reached), atLeast(v.Lost, v.Reached, excused), homogeneity(patterns)
	hit := v.split(at)
	switch {
	case v.Reached < at.MinProbes:
		v.Kind, v.Scope = Unreached, fmt.Sprintf("%d probes reached the injection point", v.Reached)
	case looped > 0:
		v.Kind, v.Scope = Looping, v.scope(func(p *Pattern) bool { return p.Looped > 0 })
	case len(hit) == 0 && v.Chance > at.Mirrors:
		v.Kind, v.Scope = Passed, fmt.Sprintf("at most %.2g of packets are lost", v.Loss.High)
	case v.Alike >= at.Homogeneity && v.Lost == v.Reached:
		v.Kind, v.Scope = Persistent, "all packets"
	case v.Alike >= at.Homogeneity:
		v.Kind, v.Scope = Random, "packets of all patterns"
	default:
		v.Kind = Blackhole
		for _, p := range hit {
			if p.Lost < p.Reached {
				v.Kind = Selective
			}
		}
		v.Scope = v.scope(func(p *Pattern) bool { return p.Chance <= at.Mirrors })
	}
	return v
}

// split returns the patterns that lose more than lost mirrors explain.
func (v *Verdict) split(at Levels) (hit []*Pattern) {
	for i := range v.Patterns {
		if p := &v.Patterns[i]; p.Reached > 0 && p.Lost > 0 && p.Chance <= at.Mirrors {
			hit = append(hit, p)
		}
	}
	return hit
}

// scope describes what the affected patterns have in common and others have not.
func (v *Verdict) scope(hit func(p *Pattern) bool) string {
	flow := v.Patterns[0].Flow
	for _, is := range []struct {
		of    func(k *model.FlowKey) bool
		named string
	}{
		{func(k *model.FlowKey) bool { return k.Dst == flow.Dst }, fmt.Sprintf("packets to %v", flow.Dst)},
		{func(k *model.FlowKey) bool { return k.Src == flow.Src }, fmt.Sprintf("packets from %v", flow.Src)},
		{func(k *model.FlowKey) bool { return k.Proto == flow.Proto }, fmt.Sprintf("packets of protocol %v", flow.Proto)},
		{func(k *model.FlowKey) bool { return k.DstPort == flow.DstPort }, fmt.Sprintf("packets to port %d", flow.DstPort)},
	} {
		same, others := true, 0
		for i := range v.Patterns {
			p := &v.Patterns[i]
			if p.Reached == 0 {
				continue
			}
			same = same && hit(p) == is.of(&p.Flow)
			if !is.of(&p.Flow) {
				others++
			}
		}
		if same && others > 0 {
			return is.named
		}
	}
	n, all := 0, 0
	for i := range v.Patterns {
		if v.Patterns[i].Reached > 0 {
			all++
			if hit(&v.Patterns[i]) {
				n++
			}
		}
	}
	if n == all {
		return "packets of all patterns"
	}
	return fmt.Sprintf("certain 5-tuples: %d of %d tried", n, all)
}
