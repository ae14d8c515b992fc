package ipfix

import (
	"encoding/binary"
	"errors"
	"time"
)

// Port is the UDP port of IPFIX collectors. NetFlow has none of its own; 2055 and 9995
// are customary.
const Port = 4739

// Versions of messages.
const (
	NetFlow9 = 9
	IPFIX    = 10
)

// Errors of this package.
var (
	ErrShort      = errors.New("ipfix: ends inside a field")
	ErrVersion    = errors.New("ipfix: neither NetFlow version 9 nor IPFIX")
	ErrLength     = errors.New("ipfix: a length does not fit what contains it")
	ErrTemplate   = errors.New("ipfix: a template of no record")
	ErrFull       = errors.New("ipfix: too many templates, or fields of one")
	ErrNoTemplate = errors.New("ipfix: the template of the data has not come")
)

const (
	headerLen9  = 20
	headerLen10 = 16
)

// Header is the start of a message.
type Header struct {
	Version uint16
	Seq     uint32 // of messages in NetFlow, of data records in IPFIX
	Domain  uint32 // observation domain, or source id in NetFlow
	Export  uint32 // seconds since 1970, by the exporter's clock
	Uptime  uint32 // milliseconds; NetFlow alone
}

// Parse decodes a header, and returns the sets behind it.
func (h *Header) Parse(b []byte) (sets []byte, err error) {
	*h = Header{}
	if len(b) < headerLen10 {
		return nil, ErrShort
	}
	switch h.Version = binary.BigEndian.Uint16(b); h.Version {
	case NetFlow9:
		if len(b) < headerLen9 {
			return nil, ErrShort
		}
		h.Uptime, h.Export = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
		h.Seq, h.Domain = binary.BigEndian.Uint32(b[12:]), binary.BigEndian.Uint32(b[16:])
		return b[headerLen9:], nil
	case IPFIX:
		h.Export, h.Seq, h.Domain = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])
		length := int(binary.BigEndian.Uint16(b[2:]))
		if length < headerLen10 || length > len(b) {
			return nil, ErrLength
		}
		return b[headerLen10:length], nil
	}
	return nil, ErrVersion
}

// Reader reads the records of one message after the other.
type Reader struct {
	Header Header
	sets   []byte // after the present one
	data   []byte // rest of the present data set
	layout *template
}

// Reset begins a message.
func (r *Reader) Reset(b []byte) (err error) {
	r.data, r.layout = nil, nil
	r.sets, err = r.Header.Parse(b)
	return err
}

// Next reads the next data record and reports whether there was one. Templates before
// it are kept in t, which must be that of the exporter's domain. After an
// error Next continues with the next set; an error of a set's length ends the
// message.
func (r *Reader) Next(t *Templates, rec *Record) (bool, error) {
	for {
		if r.layout != nil && len(r.data) >= r.layout.least {
			rest, err := r.layout.read(&r.Header, t.init, r.data, rec)
			if err != nil {
				r.data, r.layout = nil, nil
				return true, err
			}
			if r.data = rest; rec.Options {
				t.init = rec.init
			}
			return true, nil
		}
		r.layout = nil // what remains is padding
		if len(r.sets) < 4 {
			return false, nil
		}
		id, length := binary.BigEndian.Uint16(r.sets), int(binary.BigEndian.Uint16(r.sets[2:]))
		if length < 4 || length > len(r.sets) {
			r.sets = nil
			return false, ErrLength
		}
		body := r.sets[4:length]
		r.sets = r.sets[length:]
		if err := r.openSet(t, id, body); err != nil {
			*rec = Record{}
			return true, err
		}
	}
}

// The least number of a data set, and those of templates.
const firstData = 256

// openSet learns templates, or prepares a data set for reading.
func (r *Reader) openSet(t *Templates, id uint16, body []byte) error {
	options := id == 3 && r.Header.Version == IPFIX || id == 1 && r.Header.Version == NetFlow9
	switch {
	case options || id == 2 && r.Header.Version == IPFIX || id == 0 && r.Header.Version == NetFlow9:
		return t.learn(r.Header.Version, options, body)
	case id < firstData:
		return nil // reserved
	}
	layout := t.byID[id]
	if layout == nil {
		return ErrNoTemplate
	}
	r.layout, r.data = layout, body
	return nil
}

// ago is how long before the export an instant was, both in milliseconds of an uptime that
// may have wrapped. Instants after the export, within what clocks round, are the
// export.
func ago(uptime, at uint32) time.Duration {
	return time.Duration(max(int32(uptime-at), 0)) * time.Millisecond
}
