package audit

import (
	"cmp"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
)

// Kind is what a source counts.
type Kind uint8

// Kinds of sources.
const (
	Flowset   Kind = iota // packets of flows through a switch
	TxPackets             // that a port sent
	TxBytes
	RxPackets // that a port received
	RxBytes
	Pool // that a port received, by its sampler
)

// String returns the kind's name.
func (k Kind) String() string {
	return [...]string{"flowset", "packets sent", "bytes sent", "packets received", "bytes received", "packets to sample"}[k]
}

// Source is one counter of one port, or the flowset of a switch.
type Source struct {
	Port     model.Port // of a flowset: port 0 of the switch
	Kind     Kind
	Protocol portstat.Source // that a counter comes by; unknown: Weft's own port states
}

// Compare orders sources by place and kind.
func (s Source) Compare(o Source) int {
	return cmp.Or(s.Port.Compare(o.Port), cmp.Compare(s.Kind, o.Kind), cmp.Compare(s.Protocol, o.Protocol))
}

// State is what is wrong with a source.
type State uint8

// States.
const (
	Lying     State = iota // counts too much or too little, by a share
	Resetting              // its total fell
	Silent                 // counts nothing, or is not reported any more, while packets pass
)

// String returns the state's name.
func (s State) String() string { return [...]string{"lying", "resetting", "silent"}[s] }

// Finding is a source that cannot be right.
type Finding struct {
	Source
	State State
	// Share is by how much it is wrong, of what was to be counted: -0.01 is 1 % too little.
	// It is of Lying alone.
	Share float64
	At    model.Port // of a flowset: the port at which it was found; else that of the source
	// Witnesses are how many other counts of the same packets agree with each other.
	Witnesses   int
	First, Last model.Time // ends of the first and last windows that show it
}
