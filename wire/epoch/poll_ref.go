package epoch

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
)

// PollRef is the arrival time of the poll that a chunk with the flag ByReference
// answers. The referenced snapshot is older: ages relative to the poll and to
// the snapshot differ by that time.
type PollRef struct {
	ReceivedAt model.Time // on the switch's clock
}

// AppendTo appends the record.
func (a PollRef) AppendTo(b []byte) []byte {
	b = append(b, byte(KindPollRef), PollRefSize)
	return binary.BigEndian.AppendUint64(b, uint64(a.ReceivedAt))
}

// Parse decodes the record at the start of b and returns the bytes it used. It
// overwrites every field of a and keeps no reference to b.
func (a *PollRef) Parse(b []byte) (int, error) {
	*a = PollRef{}
	if err := checkHead(b, KindPollRef); err != nil {
		return 0, err
	}
	a.ReceivedAt = model.Time(binary.BigEndian.Uint64(b[recordHead:]))
	return PollRefSize, nil
}
