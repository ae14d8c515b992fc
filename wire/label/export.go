package label

import (
	"encoding/binary"
	"errors"

	"github.com/weft-telemetry/weft/model"
)

// ExportVersion opens every export.
const ExportVersion = 1

// exportHead is what comes before an export's key.
const exportHead = 16

// Errors of Export.Parse, beside those of Block.Parse.
var (
	ErrExport = errors.New("label: not an export of version 1")
	ErrKey    = errors.New("label: flow key of an export is neither 13 nor 37 bytes, or not a key")
)

// Export is what the last switch on a packet's path reports: the packet's labels
// and its flow. It is the data of an Append report.
type Export struct {
	Switch model.NodeID // that took the labels off
	Time   model.Time   // when it did, on its own clock
	Key    model.FlowKey
	Labels Block // aliases the input of Parse
}

// AppendTo appends the encoded export.
func (e *Export) AppendTo(b []byte) []byte {
	return e.Labels.AppendTo(e.appendHead(b))
}

// AppendWithLabel appends the export with one more label on top: that of the last
// switch itself, which the packet need not carry any more. Labels must have
// fewer than its MaxHop; a packet without labels takes its option from first.
func (e *Export) AppendWithLabel(b []byte, own Item, first Option) []byte {
	o := e.Labels.Option
	if e.Labels.Len() == 0 {
		o = first
		o.Num = 0
	}
	o.Num++
	b = o.AppendTo(e.appendHead(b))
	return append(own.AppendTo(b), e.Labels.items...)
}

func (e *Export) appendHead(b []byte) []byte {
	b = append(b, ExportVersion, byte(e.Key.Len()), 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(e.Switch))
	b = binary.BigEndian.AppendUint64(b, uint64(e.Time))
	return e.Key.AppendTo(b)
}

// Parse decodes the export at the start of b and returns the bytes it used. It
// overwrites every field of e.
func (e *Export) Parse(b []byte) (int, error) {
	*e = Export{}
	if len(b) < exportHead {
		return 0, ErrShort
	}
	if b[0] != ExportVersion || b[2] != 0 || b[3] != 0 {
		return 0, ErrExport
	}
	n := int(b[1])
	if n != model.KeyLen4 && n != model.KeyLen6 {
		return 0, ErrKey
	}
	if len(b) < exportHead+n {
		return 0, ErrShort
	}
	var x Export
	if x.Key.Parse(b[exportHead:exportHead+n]) != nil {
		return 0, ErrKey
	}
	x.Switch = model.NodeID(binary.BigEndian.Uint32(b[4:]))
	x.Time = model.Time(binary.BigEndian.Uint64(b[8:]))
	used, err := x.Labels.Parse(b[exportHead+n:])
	if err != nil {
		return 0, err
	}
	*e = x
	return exportHead + n + used, nil
}

// PeekExport returns the switch and the time of an encoded export without checking
// it, and false if b is too short for one.
func PeekExport(b []byte) (sw model.NodeID, at model.Time, ok bool) {
	if len(b) < exportHead {
		return 0, 0, false
	}
	be := binary.BigEndian
	return model.NodeID(be.Uint32(b[4:])), model.Time(be.Uint64(b[8:])), true
}
