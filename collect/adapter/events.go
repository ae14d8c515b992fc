package adapter

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Congestion is an event of an INT sink: 4 bytes, such as a queue's depth.
type Congestion uint32

// Report appends the event to a list.
func (c Congestion) Report(s *Scratch, list dta.ListID) dta.Report {
	return appendTo(list, s.word(uint32(c)))
}

// LossyFlow is a connection that Marple found to lose more than a threshold.
type LossyFlow struct {
	Flow model.FlowKey
	Rate float64 // share of packets lost
}

// Report appends the flow to the list of its range: the first of the lists is for
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

// ParseFlow parses an entry that is a flow.
func ParseFlow(entry []byte) (f model.FlowKey, err error) { return f, f.Parse(entry) }

// Flowlet is a flow's latest flowlet, as Marple counts it.
type Flowlet struct {
	Flow    model.FlowKey
	Packets uint32
}

// Report appends size and flow to a list: 4 bytes and the flow.
func (f Flowlet) Report(s *Scratch, list dta.ListID) dta.Report {
	return appendTo(list, f.Flow.AppendTo(s.word(f.Packets)))
}

// ParseFlowlet parses an entry.
func ParseFlowlet(entry []byte) (f Flowlet, err error) {
	if len(entry) < 4 {
		return f, ErrSize
	}
	f.Packets = binary.BigEndian.Uint32(entry)
	return f, f.Flow.Parse(entry[4:])
}

// Drop is a drop that NetSeer's switches detected: 18 bytes for an IPv4 flow.
type Drop struct {
	Flow   model.FlowKey
	Switch uint16
	Port   uint8
	Count  uint8
	Reason uint8
}

// Report appends the event to the network's list of drops.
func (d Drop) Report(s *Scratch, list dta.ListID) dta.Report {
	b := binary.BigEndian.AppendUint16(s.data[:0], d.Switch)
	return appendTo(list, d.Flow.AppendTo(append(b, d.Port, d.Count, d.Reason)))
}

// ParseDrop parses an entry.
func ParseDrop(entry []byte) (d Drop, err error) {
	if len(entry) < 5 {
		return d, ErrSize
	}
	d.Switch, d.Port, d.Count, d.Reason = binary.BigEndian.Uint16(entry), entry[2], entry[3], entry[4]
	return d, d.Flow.Parse(entry[5:])
}

// Pipeline is the pipeline stage where PacketScope detected the drop of a packet:
// 14 bytes for an IPv4 flow.
type Pipeline struct {
	Flow  model.FlowKey
	Stage uint8
}

// Report appends the drop to a list.
func (p Pipeline) Report(s *Scratch, list dta.ListID) dta.Report {
	return appendTo(list, p.Flow.AppendTo(append(s.data[:0], p.Stage)))
}

// ParsePipeline parses an entry.
func ParsePipeline(entry []byte) (p Pipeline, err error) {
	if len(entry) < 1 {
		return p, ErrSize
	}
	p.Stage = entry[0]
	return p, p.Flow.Parse(entry[1:])
}

// Tuple is the packet data that one of Sonata's queries selects, for a stream
// engine that has a separate list.
type Tuple struct {
	Query uint32
	Data  []byte
}

// Report appends the tuple to the list of one of the stream engines: all tuples
// of a query go to one.
func (t Tuple) Report(first dta.ListID, engines int) dta.Report {
	return appendTo(first+dta.ListID(t.Query%uint32(engines)), t.Data)
}

// Summary is the packet summary of a dShark parser.
type Summary struct {
	Flow model.FlowKey
	Data []byte
}

// Report appends the summary to the list of one of the groupers: all summaries of
// a flow, in both directions, go to one.
func (d Summary) Report(first dta.ListID, groupers int) dta.Report {
	back := d.Flow.Reverse()
	h := d.Flow.Hash(0) ^ back.Hash(0)
	return appendTo(first+dta.ListID(h%uint64(groupers)), d.Data)
}
