package dta

import (
	"errors"

	"github.com/weft-telemetry/weft/model"
)

// What Writer.AddReport returns, beside what Check does.
var (
	// ErrFull: the report fits the next datagram.
	ErrFull = errors.New("dta: datagram is full")
	// ErrTooLarge: the report does not even fit an empty datagram.
	ErrTooLarge = errors.New("dta: report is larger than a datagram")
)

// Writer packs reports into datagrams and numbers them. It writes into the
// caller's buffers and allocates nothing.
type Writer struct {
	reporter model.NodeID
	next     Seq
	buf      []byte // the unfinished datagram; its capacity is the size limit
	count    int
}

// NewWriter returns a Writer for one reporter and one collector that numbers
// its first report first. Call Begin before AddReport.
func NewWriter(reporter model.NodeID, first Seq) Writer {
	return Writer{reporter: reporter, next: first}
}

// Begin starts a datagram in buf, which the Writer holds until Finish. The
// length of buf is the most a datagram may have: the MTU less the IP and UDP
// headers. Begin panics if it cannot hold a Header.
func (w *Writer) Begin(buf []byte) {
	w.buf, w.count = buf[:HeaderSize:len(buf)], 0
}

// AddReport packs a copy of r into the datagram. It returns nil, or ErrFull if
// the datagram must be finished first, ErrTooLarge, or what Check returns; then
// the datagram is unchanged. Without a Begin since the last Finish it returns
// ErrFull.
func (w *Writer) AddReport(r *Report) error {
	if err := r.Check(); err != nil {
		return err
	}
	head := r.head()
	size, _ := sizeOf(head) // Check has passed
	if len(w.buf)+size > cap(w.buf) || w.count == 1<<16-1 {
		if w.count == 0 && w.buf != nil {
			return ErrTooLarge
		}
		return ErrFull
	}
	w.buf = r.appendTo(w.buf, head)
	w.count++
	return nil
}

// Count returns how many reports the datagram holds.
func (w *Writer) Count() int { return w.count }

// Seq returns the number of the next report that Add takes.
func (w *Writer) Seq() Seq { return w.next + Seq(w.count) }

// Finish completes the datagram and returns it, a part of the buffer that
// Begin was given. A datagram without reports is legal: see Header. Finish
// panics without a Begin since the last Finish.
func (w *Writer) Finish() []byte {
	h := Header{Count: uint16(w.count), Reporter: w.reporter, Seq: w.next}
	h.AppendTo(w.buf[:0:HeaderSize])
	out := w.buf
	w.next = w.Seq()
	w.buf, w.count = nil, 0
	return out
}
