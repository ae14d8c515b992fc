package epoch

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// MaxIntervals is how many intervals a record holds at most.
const MaxIntervals = 16

// Age is how long before the snapshot an instant was, in ns. It saturates: the
// largest Age means 4.29 s or more.
type Age uint32

// MaxAge is the largest Age.
const MaxAge Age = math.MaxUint32

// AgeAt returns the age of an instant; that of one after the snapshot is 0.
func AgeAt(snapshot, at model.Time) Age {
	if at >= snapshot {
		return 0
	}
	return Age(min(uint64(snapshot)-uint64(at), uint64(MaxAge))) // unsigned: the difference of any two times fits
}

// Duration returns the age as a duration.
func (a Age) Duration() time.Duration { return time.Duration(a) }

// Interval is one time in which a queue was paused or congested.
type Interval struct {
	Start, End Age
	Bytes      uint32 // of a pause: in the queue at its start; of congestion: the largest queue length. Saturates.
}

// Earlier sums up the intervals before the first one in a record: those that the
// switch's memory no longer holds one by one.
type Earlier struct {
	Count      uint32        // saturates; 0: there is no summary
	Start, End Age           // of the first and of the last of them
	Total      time.Duration // their lengths, summed up: at most from Start to End
	Bytes      uint32        // of a pause: that of the first; of congestion: the largest
}

// Intervals are the last times in which one priority of one egress port was
// paused, or congested by its own traffic: ascending, without overlap. What each
// of them means: docs/formats/epoch.md.
type Intervals struct {
	Congestion bool // else pauses
	Port       model.PortID
	Priority   model.Priority // 0 to 7
	Open       bool           // the last interval had not ended at the snapshot; its End is 0
	Earlier    Earlier
	Count      uint8                  // of List in use, 1 to MaxIntervals
	List       [MaxIntervals]Interval // the rest is zero
}

// All returns the intervals in use.
func (v *Intervals) All() []Interval { return v.List[:min(v.Count, MaxIntervals)] }

// Add appends an interval unless the record is full.
func (v *Intervals) Add(i Interval) {
	if v.Count < MaxIntervals {
		v.List[v.Count] = i
		v.Count++
	}
}

// IsZero reports whether the record carries no information.
func (v *Intervals) IsZero() bool { return v.Count == 0 }

// Lengths of the parts of the record.
const (
	intervalsHead    = recordHead + 4
	earlierSize      = 20
	intervalSize     = 12
	MaxIntervalsSize = intervalsHead + earlierSize + MaxIntervals*intervalSize
)

// IntervalsSize returns the length of a record of n intervals with a summary: what
// a switch needs to keep them.
func IntervalsSize(n int) int { return intervalsHead + earlierSize + n*intervalSize }

// Flags of the record.
const (
	intervalOpen    = 1
	intervalEarlier = 2
)

// size returns the length of the encoded record.
func (v *Intervals) size() int {
	n := intervalsHead + len(v.All())*intervalSize
	if v.Earlier.Count > 0 {
		n += earlierSize
	}
	return n
}

// isIntervalsSize reports whether a record of intervals may have a length.
func isIntervalsSize(n int) bool {
	list := n - intervalsHead
	if list%intervalSize != 0 {
		list -= earlierSize
	}
	return list%intervalSize == 0 && list >= intervalSize && list <= MaxIntervals*intervalSize
}

// AppendTo appends the record; a record without an interval does not parse. The
// low three bits of Priority are written.
func (v Intervals) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	kind := KindPauseIntervals
	if v.Congestion {
		kind = KindCongestionIntervals
	}
	b = append(b, byte(kind), byte(v.size()))
	b = be.AppendUint16(b, uint16(v.Port))
	flags := boolByte(v.Open) * intervalOpen
	if v.Earlier.Count > 0 {
		flags |= intervalEarlier
	}
	b = append(b, byte(v.Priority&7), flags)
	if e := &v.Earlier; e.Count > 0 {
		b = be.AppendUint32(b, e.Count)
		b = be.AppendUint32(b, uint32(e.Start))
		b = be.AppendUint32(b, uint32(e.End))
		b = be.AppendUint32(b, uint32(min(max(e.Total, 0), math.MaxUint32)))
		b = be.AppendUint32(b, e.Bytes)
	}
	for _, i := range v.All() {
		b = be.AppendUint32(b, uint32(i.Start))
		b = be.AppendUint32(b, uint32(i.End))
		b = be.AppendUint32(b, i.Bytes)
	}
	return b
}

// Parse decodes the record at the start of b, of kind KindPauseIntervals or
// KindCongestionIntervals, and returns the bytes it used. It overwrites every
// field of v and keeps no reference to b.
func (v *Intervals) Parse(b []byte) (int, error) {
	*v = Intervals{}
	kind := KindPauseIntervals
	if len(b) > 0 && Kind(b[0]) == KindCongestionIntervals {
		kind = KindCongestionIntervals
	}
	if err := checkHead(b, kind); err != nil {
		return 0, err
	}
	n, flags := int(b[1]), b[5]
	if b[4] > 7 || flags > intervalOpen|intervalEarlier {
		return 0, ErrReserved
	}
	be := binary.BigEndian
	got := Intervals{
		Congestion: kind == KindCongestionIntervals, Port: model.PortID(be.Uint16(b[2:])), Priority: model.Priority(b[4]),
		Open: flags&intervalOpen != 0,
	}
	rest := b[intervalsHead:n]
	if hasEarlier := flags&intervalEarlier != 0; hasEarlier != (len(rest)%intervalSize != 0) {
		return 0, ErrRecord
	} else if hasEarlier {
		got.Earlier = Earlier{
			Count: be.Uint32(rest), Start: Age(be.Uint32(rest[4:])), End: Age(be.Uint32(rest[8:])),
			Total: time.Duration(be.Uint32(rest[12:])), Bytes: be.Uint32(rest[16:]),
		}
		rest = rest[earlierSize:]
		if got.Earlier.Count == 0 {
			return 0, ErrReserved
		}
	}
	for ; len(rest) > 0; rest = rest[intervalSize:] {
		got.Add(Interval{Start: Age(be.Uint32(rest)), End: Age(be.Uint32(rest[4:])), Bytes: be.Uint32(rest[8:])})
	}
	if !got.ordered() {
		return 0, ErrIntervals
	}
	*v = got
	return n, nil
}

// ordered reports whether the intervals ascend without overlap, none ends before
// it starts, and only the last one is open. Ages fall as time passes.
func (v *Intervals) ordered() bool {
	last := MaxAge
	if e := &v.Earlier; e.Count > 0 {
		if e.End > e.Start || e.Total > (e.Start-e.End).Duration() {
			return false
		}
		last = e.End
	}
	for _, i := range v.All() {
		if i.Start > last || i.End > i.Start {
			return false
		}
		last = i.End
	}
	return !v.Open || last == 0
}
