package epoch

// Reader iterates over the records of a chunk that Parse has accepted:
//
//	for r := chunk.Reader(); r.Next(); {
//		switch r.Kind() {
//		case epoch.KindMeter:
//			_, err = meter.Parse(r.Record())
//		…
//		}
//	}
type Reader struct {
	record, rest []byte
}

// Reader returns a Reader of the chunk's records. It reads c.Records in place
// and allocates nothing.
func (c *Chunk) Reader() Reader { return Reader{rest: c.Records} }

// Next advances to the next record and reports whether there is one.
func (r *Reader) Next() bool {
	n, err := recordLen(r.rest)
	if err != nil { // after Parse, only the end
		r.record, r.rest = nil, nil
		return false
	}
	r.record, r.rest = r.rest[:n:n], r.rest[n:]
	return true
}

// Kind returns the kind of the current record; it may be unknown.
func (r *Reader) Kind() Kind { return Kind(r.record[0]) }

// Record returns the current record, head included. It aliases the chunk.
func (r *Reader) Record() []byte { return r.record }
