package epoch

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
)

// MaxBacklogPoints is how many points a BacklogHistory holds at most.
const MaxBacklogPoints = 24

// BacklogError returns how far a BacklogHistory may deviate, by the longest IP
// packet; 0: unknown. It is two packets: less waits in a queue that sends what
// arrives.
func BacklogError(mtu model.Bytes) model.Bytes {
	const ethernetMTU = 1500
	if mtu <= 0 {
		mtu = ethernetMTU
	}
	return 2 * mtu
}

// BacklogPoint is a backlog at an instant.
type BacklogPoint struct {
	At    Age
	Bytes uint32 // saturates
}

// BacklogHistory is how the backlog of PortPairBacklog changed before the
// snapshot: evenly between points, up to BacklogError, or three times that where it
// begins to count. After the last point it stayed as it was there.
type BacklogHistory struct {
	In, Out  model.PortID
	Priority model.Priority // 0 to 7
	// Cut: what was before the first point is lost. Else it was at most
	// BacklogError.
	Cut   bool
	Count uint8                          // of Points in use, 1 to MaxBacklogPoints
	List  [MaxBacklogPoints]BacklogPoint // ascending in time; the rest is zero
}

// All returns the points in use.
func (h *BacklogHistory) All() []BacklogPoint { return h.List[:min(h.Count, MaxBacklogPoints)] }

// Add appends a point unless the record is full.
func (h *BacklogHistory) Add(p BacklogPoint) {
	if h.Count < MaxBacklogPoints {
		h.List[h.Count] = p
		h.Count++
	}
}

// IsZero reports whether the record carries no information.
func (h *BacklogHistory) IsZero() bool { return h.Count == 0 }

// Lengths of the parts of the record.
const (
	backlogHistoryHead = recordHead + 6
	backlogPointSize   = 8
)

// BacklogHistorySize returns the length of a record of n points.
func BacklogHistorySize(n int) int { return backlogHistoryHead + n*backlogPointSize }

// isBacklogHistorySize reports whether a history may have a length.
func isBacklogHistorySize(n int) bool {
	list := n - backlogHistoryHead
	return list%backlogPointSize == 0 && list >= backlogPointSize && list <= MaxBacklogPoints*backlogPointSize
}

// AppendTo appends the record; one without a point does not parse. The low three
// bits of Priority are written.
func (h BacklogHistory) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	b = append(b, byte(KindBacklogHistory), byte(BacklogHistorySize(len(h.All()))))
	b = be.AppendUint16(b, uint16(h.In))
	b = be.AppendUint16(b, uint16(h.Out))
	b = append(b, byte(h.Priority&7), boolByte(h.Cut))
	for _, p := range h.All() {
		b = be.AppendUint32(b, uint32(p.At))
		b = be.AppendUint32(b, p.Bytes)
	}
	return b
}

// Parse decodes the record at the start of b and returns the bytes it used. It
// overwrites every field of h and keeps no reference to b.
func (h *BacklogHistory) Parse(b []byte) (int, error) {
	*h = BacklogHistory{}
	if err := checkHead(b, KindBacklogHistory); err != nil {
		return 0, err
	}
	n, be := int(b[1]), binary.BigEndian
	if b[6] > 7 || b[7] > 1 {
		return 0, ErrReserved
	}
	got := BacklogHistory{
		In: model.PortID(be.Uint16(b[2:])), Out: model.PortID(be.Uint16(b[4:])), Priority: model.Priority(b[6]), Cut: b[7] == 1,
	}
	last := MaxAge
	for rest := b[backlogHistoryHead:n]; len(rest) > 0; rest = rest[backlogPointSize:] {
		p := BacklogPoint{At: Age(be.Uint32(rest)), Bytes: be.Uint32(rest[4:])}
		if p.At > last {
			return 0, ErrBacklogHistory
		}
		last = p.At
		got.Add(p)
	}
	*h = got
	return n, nil
}
