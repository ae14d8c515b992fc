package flowset

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
)

// PeekScope returns the scope of an encoded chunk without checking it, and false if
// b is too short for one.
func PeekScope(b []byte) (scope model.PortID, ok bool) {
	if len(b) < HeaderSize {
		return 0, false
	}
	return model.PortID(binary.BigEndian.Uint16(b[8:])), true
}
