// Package frame encodes messages of a stream one after another, for buffers and for
// brokers. docs/stream.md draws the layout.
package frame

import (
	"encoding/binary"
	"errors"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/stream"
)

// HeaderSize is the length of time, ID, kind and length.
const HeaderSize = 8 + 8 + 4 + 4

// ErrShort is returned when the input ends inside a message.
var ErrShort = errors.New("frame: short message")

// Size returns the encoded length of a message.
func Size(m *stream.Message) int { return HeaderSize + len(m.Data) }

// AppendTo appends a message to b. Its position is not part of it.
func AppendTo(b []byte, m *stream.Message) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(m.At))
	b = binary.LittleEndian.AppendUint64(b, m.ID)
	b = binary.LittleEndian.AppendUint32(b, m.Kind)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.Data)))
	return append(b, m.Data...)
}

// Parse decodes the message at the start of b and returns the bytes it used. Its data
// is a part of b.
func Parse(m *stream.Message, b []byte) (int, error) {
	*m = stream.Message{}
	if len(b) < HeaderSize {
		return 0, ErrShort
	}
	size := uint64(binary.LittleEndian.Uint32(b[20:]))
	if size > uint64(len(b)-HeaderSize) {
		return 0, ErrShort
	}
	end := HeaderSize + int(size)
	m.At = model.Time(binary.LittleEndian.Uint64(b))
	m.ID = binary.LittleEndian.Uint64(b[8:])
	m.Kind = binary.LittleEndian.Uint32(b[16:])
	m.Data = b[HeaderSize:end:end]
	return end, nil
}
