package adapter

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Congestion is an event of an INT sink: 4 bytes, such as a queue's depth.
type Congestion uint32

// Report puts the event on a list.
func (c Congestion) Report(s *Scratch, list dta.ListID) dta.Report {
	return appendTo(list, s.word(uint32(c)))
}

// LossyFlow is a connection that Marple found to lose more than a threshold.
type LossyFlow struct {
	Flow model.FlowKey
	Rate float64 // share of packets lost
}

// Report puts the flow on the list of its range: the first of the lists is for
// rates below the first bound, and there is one more list than bounds.
func (l LossyFlow) Report(s *Scratch, first dta.ListID, bounds []float64) dta.Report {
	at := first
	for _, b := range bounds {
		if l.Rate >= b {
			at++
		}
	}
	return appendTo(at, s.flow(l.Flow))
}

// ParseFlow reads an entry that is a flow.
func ParseFlow(entry []byte) (f model.FlowKey, err error) { return f, f.Parse(entry) }

// Flowlet is a flow's latest flowlet, as Marple counts it.
type Flowlet struct {
	Flow    model.FlowKey
	Packets uint32
}

// Report puts flow and size on a list: 4 bytes and the flow.
func (f Flowlet) Report(s *Scratch, list dta.ListID) dta.Report {
	return appendTo(list, f.Flow.AppendTo(s.word(f.Packets)))
}

// ParseFlowlet reads an entry.
func ParseFlowlet(entry []byte) (f Flowlet, err error) {
	if len(entry) < 4 {
		return f, ErrSize
	}
	f.Packets = binary.BigEndian.Uint32(entry)
	return f, f.Flow.Parse(entry[4:])
}

// Drop is a loss that NetSeer's switches noticed: 18 bytes for an IPv4 flow.
type Drop struct {
	Flow   model.FlowKey
	Switch uint16
	Port   uint8
	Count  uint8
	Reason uint8
}

// Report puts the event on the network's list of losses.
func (d Drop) Report(s *Scratch, list dta.ListID) dta.Report {
	b := binary.BigEndian.AppendUint16(s.data[:0], d.Switch)
	return appendTo(list, d.Flow.AppendTo(append(b, d.Port, d.Count, d.Reason)))
}

// ParseDrop reads an entry.
func ParseDrop(entry []byte) (d Drop, err error) {
	if len(entry) < 5 {
		return d, ErrSize
	}
	d.Switch, d.Port, d.Count, d.Reason = binary.BigEndian.Uint16(entry), entry[2], entry[3], entry[4]
	return d, d.Flow.Parse(entry[5:])
}

// Pipeline is where PacketScope saw a packet end inside a switch: 14 bytes for
// an IPv4 flow.
type Pipeline struct {
	Flow  model.FlowKey
	Stage uint8
}

// Report puts the loss on a list.
func (p Pipeline) Report(s *Scratch, list dta.ListID) dta.Report {
	return appendTo(list, p.Flow.AppendTo(append(s.data[:0], p.Stage)))
}

// ParsePipeline reads an entry.
func ParsePipeline(entry []byte) (p Pipeline, err error) {
	if len(entry) < 1 {
		return p, ErrSize
	}
	p.Stage = entry[0]
	return p, p.Flow.Parse(entry[1:])
}

// Tuple is what one of Sonata's queries wants of a packet, for a stream
// processor that has a list of its own.
type Tuple struct {
	Query uint32
	Data  []byte
}

// Report puts the tuple on the list of one of the processors: all tuples of a
// query go to one.
func (t Tuple) Report(first dta.ListID, processors int) dta.Report {
	return appendTo(first+dta.ListID(t.Query%uint32(processors)), t.Data)
}

// Summary is what a dShark parser keeps of a packet.
type Summary struct {
	Flow model.FlowKey
	Data []byte
}

// Report puts the summary on the list of one of the groupers: all of a flow,
// in both directions, goes to one.
func (d Summary) Report(first dta.ListID, groupers int) dta.Report {
	back := d.Flow.Reverse()
	h := d.Flow.Hash(0) ^ back.Hash(0)
	return appendTo(first+dta.ListID(h%uint64(groupers)), d.Data)
}
