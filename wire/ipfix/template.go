package ipfix

import "encoding/binary"

// Bounds of templates: no exporter needs as many, and each costs memory.
const (
	maxTemplates = 128 // of a domain
	maxFields    = 128 // of a template
)

// Templates are those of one observation domain of one exporter, and what its options
// say about the times of all records. The zero value has none.
type Templates struct {
	byID map[uint16]*template
	init uint64 // systemInitTime, which the uptimes of records count from; 0: not known
}

// template is the layout of data records.
type template struct {
	options bool
	fields  []field
	least   int // bytes of the shortest record
}

// field is one value of a record.
type field struct {
	id     element
	length uint16 // variableLength: it comes before the value
}

const variableLength = 0xffff

// learn keeps the templates of a set.
func (t *Templates) learn(version uint16, options bool, b []byte) error {
	for len(b) >= 4 {
		id, count := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
		b = b[4:]
		if id == 0 && count == 0 {
			return nil // padding
		}
		if version == IPFIX && count == 0 { // a withdrawal; by the set's own number, of all
			if id < firstData {
				clear(t.byID)
			}
			delete(t.byID, id)
			continue
		}
		if options {
			if len(b) < 2 {
				return ErrShort
			}
			n := int(binary.BigEndian.Uint16(b))
			if version == NetFlow9 { // lengths of both parts in bytes, each field 4
				count = (count + n) / 4
			}
			b = b[2:]
		}
		one, rest, err := parseFields(version, count, b)
		if err != nil {
			return err
		}
		if b = rest; id < firstData || one.least == 0 {
			return ErrTemplate
		}
		one.options = options
		if t.byID == nil {
			t.byID = map[uint16]*template{}
		}
		if _, known := t.byID[id]; !known && len(t.byID) >= maxTemplates {
			return ErrFull
		}
		t.byID[id] = one
	}
	return nil
}

// parseFields reads a number of field specifiers.
func parseFields(version uint16, count int, b []byte) (t *template, rest []byte, err error) {
	if count > maxFields {
		return nil, nil, ErrFull
	}
	t = &template{fields: make([]field, 0, count)}
	for range count {
		if len(b) < 4 {
			return nil, nil, ErrShort
		}
		f := field{element(binary.BigEndian.Uint16(b)), binary.BigEndian.Uint16(b[2:])}
		b = b[4:]
		if version == IPFIX && f.id&enterprise != 0 {
			if len(b) < 4 {
				return nil, nil, ErrShort
			}
			b, f.id = b[4:], unused
		}
		if f.length == variableLength && version == IPFIX {
			t.least++
		} else {
			t.least += int(f.length)
		}
		t.fields = append(t.fields, f)
	}
	return t, b, nil
}

// read decodes one record, and returns what follows it. b has the least length.
func (t *template) read(h *Header, init uint64, b []byte, rec *Record) (rest []byte, err error) {
	*rec = Record{Options: t.options, init: init}
	for _, f := range t.fields {
		length := int(f.length)
		if f.length == variableLength && h.Version == IPFIX {
			if len(b) < 1 {
				return nil, ErrShort
			}
			length, b = int(b[0]), b[1:]
			if length == 255 {
				if len(b) < 2 {
					return nil, ErrShort
				}
				length, b = int(binary.BigEndian.Uint16(b)), b[2:]
			}
		}
		if length > len(b) {
			return nil, ErrShort
		}
		rec.set(h, f.id, b[:length])
		b = b[length:]
	}
	rec.finish(h)
	return b, nil
}
