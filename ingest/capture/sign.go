package capture

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// signer signs recorded DTA datagrams as their reporters would if they sent them
// now.
type signer struct {
	key   func(reporter model.NodeID) *dta.MAC
	start model.Time // of every reporter's sequence numbers
	sent  model.Time // the latest send time
	buf   []byte
}

func newSigner(key func(reporter model.NodeID) *dta.MAC, start model.Time) *signer {
	return &signer{key: key, start: start}
}

// sign returns the datagram in version 2, valid until the next call, or the
// datagram itself if its reporter has no key.
func (s *signer) sign(datagram []byte, now model.Time) []byte {
	var h dta.Header
	if s.key == nil {
		return datagram
	}
	if _, err := h.Parse(datagram); err != nil {
		return datagram // of the prototype, or malformed: the receiver counts it
	}
	mac := s.key(h.Reporter)
	if mac == nil {
		return datagram
	}
	s.sent = max(now, s.sent+1) // no two datagrams of a reporter have the same
	signed, err := mac.AppendSigned(s.buf[:0], datagram, s.start, s.sent)
	if err != nil {
		return datagram
	}
	s.buf = signed
	return signed
}
