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
	buf      []byte // the unfinished datagram
	limit    int    // how long it may be, without its MAC
	count    int
	mac      *MAC // nil: version 1
	start    model.Time
}

// NewWriter returns a Writer for one reporter and one collector that numbers
// its first report first. Call Begin before AddReport.
func NewWriter(reporter model.NodeID, first Seq) Writer {
	return Writer{reporter: reporter, next: first}
}

// NewSignedWriter returns a Writer of version 2, whose datagrams carry a MAC.
// start is when the reporter began to number: later than at any earlier start.
func NewSignedWriter(reporter model.NodeID, first Seq, mac *MAC, start model.Time) Writer {
	return Writer{reporter: reporter, next: first, mac: mac, start: start}
}

// Begin starts a datagram in buf, which the Writer holds until Finish. The
// length of buf is the most a datagram may have: the MTU less the IP and UDP
// headers. Begin panics if it cannot hold a Header and, in version 2, a MAC.
func (w *Writer) Begin(buf []byte) {
	head, limit := HeaderSize, len(buf)
	if w.mac != nil {
		head, limit = SignedHeaderSize, len(buf)-MACSize
	}
	_ = buf[head:limit] // panics where there is no space
	w.buf, w.limit, w.count = buf[:head:len(buf)], limit, 0
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
	if len(w.buf)+size > w.limit || w.count == 1<<16-1 {
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

// Finish is FinishAt for version 1, where a datagram has no time.
func (w *Writer) Finish() []byte { return w.FinishAt(0) }

// FinishAt completes the datagram and returns it, a part of the buffer that Begin
// was given. A datagram without reports is legal: see Header. sent is its send
// time in version 2; no two datagrams of a reporter have the same. FinishAt panics
// without a Begin since the last.
func (w *Writer) FinishAt(sent model.Time) []byte {
	h := Header{Count: uint16(w.count), Reporter: w.reporter, Seq: w.next}
	if w.mac != nil {
		h.Signed, h.KeyID, h.Start, h.Sent = true, w.mac.id, w.start, sent
	}
	h.AppendTo(w.buf[:0:h.Size()])
	out := w.buf
	if w.mac != nil {
		out = w.mac.AppendMAC(out, out)
	}
	w.next = w.Seq()
	w.buf, w.limit, w.count = nil, 0, 0
	return out
}
