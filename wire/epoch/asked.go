package epoch

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
)

// Asked is when the poll came that a chunk with Elsewhere answers. The snapshot
// it names is older: times before the poll and before the snapshot differ by
// that much.
type Asked struct {
	At model.Time // on the switch's clock
}

// AppendTo appends the record.
func (a Asked) AppendTo(b []byte) []byte {
	b = append(b, byte(KindAsked), AskedSize)
	return binary.BigEndian.AppendUint64(b, uint64(a.At))
}

// Parse decodes the record at the start of b and returns the bytes it used. It
// overwrites every field of a and keeps no reference to b.
func (a *Asked) Parse(b []byte) (int, error) {
	*a = Asked{}
	if err := open(b, KindAsked); err != nil {
		return 0, err
	}
	a.At = model.Time(binary.BigEndian.Uint64(b[recordHead:]))
	return AskedSize, nil
}
