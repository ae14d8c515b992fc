package source

import (
	"net/netip"

	"github.com/weft-telemetry/weft/model"
)

// Protect returns a decoder that takes Output.Now for the time of datagrams, and whose
// panics cost no more than the datagram. Without Now and Panic it returns d itself.
func Protect(d Decoder, out *Output) Decoder {
	if out.Now == nil && out.Panic == nil {
		return d
	}
	return &protectedDecoder{d, out.Now, out.Panic}
}

// Unprotected returns the decoder that Protect was given.
func Unprotected(d Decoder) Decoder {
	if p, ok := d.(*protectedDecoder); ok {
		return p.Decoder
	}
	return d
}

type protectedDecoder struct {
	Decoder
	now     func() model.Time
	onPanic func(v any, data []byte)
}

// Decode is part of Decoder.
func (d *protectedDecoder) Decode(at model.Time, from netip.AddrPort, data []byte) bool {
	if d.now != nil {
		at = d.now()
	}
	if d.onPanic != nil {
		defer func() {
			if v := recover(); v != nil {
				d.onPanic(v, data)
			}
		}()
	}
	return d.Decoder.Decode(at, from, data)
}
