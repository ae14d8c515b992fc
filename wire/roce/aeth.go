package roce

import (
	"encoding/binary"
	"time"
)

// AETH is the ACK extended transport header: the requests up to the packet's PSN
// are completed, or the one at that PSN is refused.
type AETH struct {
	Syndrome Syndrome
	MSN      uint32 // messages completed, 24 bits
}

// AppendTo appends the encoded header. An MSN wider than 24 bits is cut to its
// low bits.
func (h AETH) AppendTo(b []byte) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(h.Syndrome)<<24|h.MSN&mask24)
}

// Parse decodes the header at the start of b and returns the bytes it used.
func (h *AETH) Parse(b []byte) (int, error) {
	if len(b) < AETHSize {
		*h = AETH{}
		return 0, ErrShort
	}
	v := binary.BigEndian.Uint32(b)
	*h = AETH{Syndrome: Syndrome(v >> 24), MSN: v & mask24}
	return AETHSize, nil
}

// Syndrome distinguishes an ACK from a NAK and an RNR NAK: bits 6 and 5 are the
// kind, the low five its value.
type Syndrome uint8

// Kinds of a syndrome.
const (
	kindMask Syndrome = 0xe0
	kindAck  Syndrome = 0x00
	kindRNR  Syndrome = 0x20
	kindNak  Syndrome = 0x60
)

// Syndromes with a fixed value.
const (
	AckNoCredit Syndrome = kindAck | 0x1f // acknowledged; the responder counts no credits
	NakSequence Syndrome = kindNak        // a gap in the PSNs: send again from the answer's PSN
	NakRequest  Syndrome = kindNak | 1    // malformed or unsupported request
	NakAccess   Syndrome = kindNak | 2    // wrong key, range or permission
	NakRemote   Syndrome = kindNak | 3    // the responder failed
)

// Ack returns the acknowledgement that grants a credit code, 0 to 31 (cut to 5
// bits). Code 31 is AckNoCredit.
func Ack(credit uint8) Syndrome { return kindAck | Syndrome(credit&31) }

// RNR returns the refusal of a responder that is not ready, with the code of
// the time to wait, 0 to 31 (cut to 5 bits).
func RNR(timer uint8) Syndrome { return kindRNR | Syndrome(timer&31) }

// IsAck reports whether s is an acknowledgement.
func (s Syndrome) IsAck() bool { return s&kindMask == kindAck }

// IsRNR reports whether s is an RNR NAK: wait and retry.
func (s Syndrome) IsRNR() bool { return s&kindMask == kindRNR }

// IsNak reports whether s refuses a request permanently or reports a PSN gap.
func (s Syndrome) IsNak() bool { return s&kindMask == kindNak }

// Value returns the low five bits: a credit code, a timer code or a NAK code.
func (s Syndrome) Value() uint8 { return uint8(s & 31) }

// rnrDelays is the standard's table of timer codes, in steps of 10 µs. Code 0
// is the longest.
var rnrDelays = [32]uint32{
	65536, 1, 2, 3, 4, 6, 8, 12,
	16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072,
	4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
}

// Delay returns how long a sender must wait after an RNR before it tries
// again, and 0 for every other syndrome.
func (s Syndrome) Delay() time.Duration {
	if !s.IsRNR() {
		return 0
	}
	return time.Duration(rnrDelays[s.Value()]) * 10 * time.Microsecond
}
