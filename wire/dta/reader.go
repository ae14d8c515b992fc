package dta

import "encoding/binary"

// Reader reads the reports of one datagram after the other. It keeps a
// reference to the datagram, copies nothing and allocates nothing. It does not
// verify the MAC of version 2: see MAC.Verify.
//
//	for r.Reset(datagram); r.Next(&report); {
//		…
//	}
//	if err := r.Err(); err != nil {
//		…
//	}
type Reader struct {
	head Header
	rest []byte
	read int // reports that Next has returned
	err  error
}

// Reset begins a datagram. It returns what Err returns: nil, or what is wrong
// with the header.
func (r *Reader) Reset(datagram []byte) error {
	n, err := r.head.Parse(datagram)
	end := len(datagram)
	if r.head.Signed {
		if end -= MACSize; end < n {
			n, end, err = 0, 0, ErrShort
		}
	}
	r.rest, r.read, r.err = datagram[n:end], 0, err
	return err
}

// Header returns the datagram's header.
func (r *Reader) Header() Header { return r.head }

// Next sets rep to the next report and returns whether there was one. The
// report's Key and Data alias the datagram. Returning the report by value would
// more than double the time: it is nine words long.
func (r *Reader) Next(rep *Report) bool {
	if r.err != nil {
		return false
	}
	if r.read == int(r.head.Count) {
		if len(r.rest) != 0 {
			r.err = ErrTrailing
		}
		return false
	}
	n, err := rep.Parse(r.rest)
	if err != nil {
		r.err = err
		return false
	}
	r.rest = r.rest[n:]
	r.read++
	return true
}

// NextRun reads reports for as long as they have the shape of the next one: the
// same primitive, flags, redundancy and lengths, and the same list. It sets rep
// to the first, and returns the bytes of all of them, side by side, and how many
// they are: 0 where Next would return false.
func (r *Reader) NextRun(rep *Report) (run []byte, count int) {
	start := r.rest
	if !r.Next(rep) {
		return nil, 0
	}
	size := len(start) - len(r.rest)
	// Only locals in the loop: a slice in memory is a store with a barrier.
	shape, most := binary.BigEndian.Uint32(start), min(len(start)/size, 1+int(r.head.Count)-r.read)
	listed, end := rep.Primitive == Append, size
	for count = 1; count < most && binary.BigEndian.Uint32(start[end:]) == shape; count++ {
		if listed && ListID(binary.BigEndian.Uint32(start[end+headSize:])) != rep.List {
			break
		}
		end += size
	}
	r.rest, r.read = start[end:], r.read+count-1
	return start[:end:end], count
}

// Seq returns the sequence number of the report that the next call of Next
// returns. After an error it is the first number that was not read.
func (r *Reader) Seq() Seq { return r.head.Seq + Seq(r.read) }

// Err returns what made Next stop before the end, or nil. The count of reports
// and the bytes of a datagram must agree: ErrShort and ErrTrailing say that
// they do not.
func (r *Reader) Err() error { return r.err }
