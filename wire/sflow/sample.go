package sflow

import (
	"encoding/binary"
	"time"
)

// Kind is what a sample is.
type Kind uint8

// Kinds.
const (
	Other  Kind = iota // of a format that Weft does not use
	Flow               // one packet of several
	Count              // counters of a data source
	Drop               // a dropped packet, which the agent notifies of
	lastOf = Drop
)

// Formats of samples, of the enterprise 0.
const (
	formatFlow          = 1
	formatCount         = 2
	formatFlowExpanded  = 3
	formatCountExpanded = 4
	formatDrop          = 5
)

// Source is a data source: for class 0 an interface, by its ifIndex.
type Source struct{ Class, Index uint32 }

// Interface is where a packet entered or left the agent. Format 0: Value is an
// ifIndex, 0 if unknown. Format 1: the packet was dropped, for the reason Value.
// Format 2: it left by Value interfaces.
type Interface struct{ Format, Value uint32 }

// Formats of interfaces.
const (
	Index    = 0
	Dropped  = 1
	Multiple = 2
)

// internal is the ifIndex of the agent itself.
const internal = 0x3fffffff

// Known returns the ifIndex, if there is one.
func (i Interface) Known() (uint32, bool) {
	return i.Value, i.Format == Index && i.Value != 0 && i.Value != internal
}

// Sample is one sample of any kind. Slices lie in the datagram.
type Sample struct {
	Kind   Kind
	Seq    uint32 // of samples of Source
	Source Source

	Rate    uint32 // of flow samples: one of Rate packets
	Pool    uint32 // packets that could have been sampled, in total
	Lost    uint32 // samples or notifications that the agent dropped itself, in total
	In, Out Interface
	Reason  Reason // of drop notifications

	Has      Records
	Ignored  int // records of other formats
	Packet   Packet
	Switched Switched
	Queue    uint32        // egress queue
	Depth    uint32        // of that queue, in bytes
	Delay    time.Duration // from ingress to egress; MaxDelay if longer
	Group    []byte        // of the devlink trap
	Trap     []byte
	Port     IfCounters
	Ethernet EthernetCounters
	Name     []byte // of the interface
}

// MaxDelay is the longest delay that a record holds.
const MaxDelay = time.Duration(0xffffffff)

// Records is a set of the records of a sample.
type Records uint16

// Records.
const (
	HasPacket Records = 1 << iota
	HasSwitched
	HasQueue
	HasDelay
	HasDepth
	HasTrap
	HasPort
	HasEthernet
	HasName
)

// All reports whether all of want are present.
func (r Records) All(want Records) bool { return r&want == want }

// Formats of records in flow samples and drop notifications.
const (
	recordPacket   = 1
	recordSwitched = 1001
	recordQueue    = 1036
	recordDelay    = 1039
	recordDepth    = 1040
	recordTrap     = 1041
)

// Packet is the start of a sampled packet.
type Packet struct {
	Protocol uint32 // of its first header: HeaderEthernet …
	Length   uint32 // of the frame on the wire
	Stripped uint32 // bytes of it that Header has not, at its end
	Header   []byte
}

// Protocols of sampled headers.
const (
	HeaderEthernet = 1
	HeaderIPv4     = 11
	HeaderIPv6     = 12
)

// Switched is what a switch did with the VLAN tag.
type Switched struct{ InVLAN, InPriority, OutVLAN, OutPriority uint32 }

// parse reads a sample. It overwrites every field.
func (s *Sample) parse(format uint32, b []byte) error {
	*s = Sample{}
	words, kind := 0, Other
	switch format {
	case formatFlow:
		words, kind = 8, Flow
	case formatFlowExpanded:
		words, kind = 11, Flow
	case formatCount:
		words, kind = 3, Count
	case formatCountExpanded:
		words, kind = 4, Count
	case formatDrop:
		words, kind = 8, Drop
	default:
		return nil
	}
	if len(b) < 4*words {
		return ErrShort
	}
	at := func(i int) uint32 { return binary.BigEndian.Uint32(b[4*i:]) }
	s.Kind, s.Seq, s.Source = kind, at(0), Source{at(1), at(2)}
	switch format {
	case formatFlow:
		s.Source = compactSource(at(1))
		s.Rate, s.Pool, s.Lost, s.In, s.Out = at(2), at(3), at(4), compactInterface(at(5)), compactInterface(at(6))
	case formatFlowExpanded:
		s.Rate, s.Pool, s.Lost, s.In, s.Out = at(3), at(4), at(5), Interface{at(6), at(7)}, Interface{at(8), at(9)}
	case formatCount:
		s.Source = compactSource(at(1))
	case formatDrop:
		s.Lost, s.In, s.Out, s.Reason = at(3), Interface{Value: at(4)}, Interface{Value: at(5)}, Reason(at(6))
	}
	return s.parseRecords(at(words-1), b[4*words:])
}

func compactSource(v uint32) Source { return Source{v >> 24, v & 0xffffff} }

func compactInterface(v uint32) Interface { return Interface{v >> 30, v & 0x3fffffff} }

// parseRecords reads n records. A record that is too short for its format spoils the
// sample: its other fields could be as wrong.
func (s *Sample) parseRecords(n uint32, b []byte) error {
	for ; n > 0; n-- {
		format, data, rest, err := cutTagged(b)
		if err != nil {
			return err
		}
		b = rest
		if s.Kind == Count {
			err = s.parseCounters(format, data)
		} else {
			err = s.parseFlowRecord(format, data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Sample) parseFlowRecord(format uint32, b []byte) (err error) {
	words := func(n int) bool { return len(b) >= 4*n }
	at := func(i int) uint32 { return binary.BigEndian.Uint32(b[4*i:]) }
	switch format {
	case recordPacket:
		if !words(4) {
			return ErrShort
		}
		p := Packet{Protocol: at(0), Length: at(1), Stripped: at(2)}
		if p.Header, _, err = cutString(b[12:]); err != nil {
			return err
		}
		s.Packet = p
		s.Has |= HasPacket
	case recordSwitched:
		if !words(4) {
			return ErrShort
		}
		s.Switched = Switched{at(0), at(1), at(2), at(3)}
		s.Has |= HasSwitched
	case recordQueue, recordDelay, recordDepth:
		if !words(1) {
			return ErrShort
		}
		switch format {
		case recordQueue:
			s.Queue, s.Has = at(0), s.Has|HasQueue
		case recordDelay:
			s.Delay, s.Has = time.Duration(at(0)), s.Has|HasDelay
		default:
			s.Depth, s.Has = at(0), s.Has|HasDepth
		}
	case recordTrap:
		if s.Group, b, err = cutString(b); err != nil {
			return err
		}
		if s.Trap, _, err = cutString(b); err != nil {
			return err
		}
		s.Has |= HasTrap
	default:
		s.Ignored++
	}
	return nil
}
