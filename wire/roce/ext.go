package roce

import "encoding/binary"

// RETH is the address in the responder's memory of a write or read.
type RETH struct {
	VA     uint64 // virtual address in the registered region
	RKey   uint32 // remote key of the region
	Length uint32 // bytes of the whole message, over all its packets
}

// AppendTo appends the encoded header.
func (h RETH) AppendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, h.VA)
	b = binary.BigEndian.AppendUint32(b, h.RKey)
	return binary.BigEndian.AppendUint32(b, h.Length)
}

// Parse decodes the header at the start of b and returns the bytes it used.
func (h *RETH) Parse(b []byte) (int, error) {
	if len(b) < RETHSize {
		*h = RETH{}
		return 0, ErrShort
	}
	*h = RETH{
		VA:     binary.BigEndian.Uint64(b),
		RKey:   binary.BigEndian.Uint32(b[8:]),
		Length: binary.BigEndian.Uint32(b[12:]),
	}
	return RETHSize, nil
}

// AtomicETH requests one atomic operation on a 64-bit word.
type AtomicETH struct {
	VA      uint64 // virtual address, a multiple of 8
	RKey    uint32 // remote key of the region
	SwapAdd uint64 // CmpSwap: the new value; FetchAdd: what to add
	Compare uint64 // CmpSwap: the value expected; FetchAdd: not used
}

// AppendTo appends the encoded header.
func (h AtomicETH) AppendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, h.VA)
	b = binary.BigEndian.AppendUint32(b, h.RKey)
	b = binary.BigEndian.AppendUint64(b, h.SwapAdd)
	return binary.BigEndian.AppendUint64(b, h.Compare)
}

// Parse decodes the header at the start of b and returns the bytes it used.
func (h *AtomicETH) Parse(b []byte) (int, error) {
	if len(b) < AtomicETHSize {
		*h = AtomicETH{}
		return 0, ErrShort
	}
	*h = AtomicETH{
		VA:      binary.BigEndian.Uint64(b),
		RKey:    binary.BigEndian.Uint32(b[8:]),
		SwapAdd: binary.BigEndian.Uint64(b[12:]),
		Compare: binary.BigEndian.Uint64(b[20:]),
	}
	return AtomicETHSize, nil
}

// AtomicAckETH answers an atomic operation with the word's value before it.
type AtomicAckETH uint64

// AppendTo appends the encoded header.
func (h AtomicAckETH) AppendTo(b []byte) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(h))
}

// Parse decodes the header at the start of b and returns the bytes it used.
func (h *AtomicAckETH) Parse(b []byte) (int, error) {
	if len(b) < AtomicAckETHSize {
		*h = 0
		return 0, ErrShort
	}
	*h = AtomicAckETH(binary.BigEndian.Uint64(b))
	return AtomicAckETHSize, nil
}

// ImmDt is immediate data: it reaches the responder's program in the
// completion of the message, not through memory.
type ImmDt uint32

// AppendTo appends the encoded header.
func (h ImmDt) AppendTo(b []byte) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(h))
}

// Parse decodes the header at the start of b and returns the bytes it used.
func (h *ImmDt) Parse(b []byte) (int, error) {
	if len(b) < ImmDtSize {
		*h = 0
		return 0, ErrShort
	}
	*h = ImmDt(binary.BigEndian.Uint32(b))
	return ImmDtSize, nil
}

// DETH is the datagram header of a packet between queue pairs that have no
// connection, such as those of connection management.
type DETH struct {
	QKey  uint32
	Resv8 uint8 // reserved, preserved
	SrcQP QPN   // 24 bits
}

// AppendTo appends the encoded header. A queue pair wider than 24 bits is cut to
// its low bits.
func (h DETH) AppendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, h.QKey)
	return binary.BigEndian.AppendUint32(b, uint32(h.Resv8)<<24|uint32(h.SrcQP)&mask24)
}

// Parse decodes the header at the start of b and returns the bytes it used.
func (h *DETH) Parse(b []byte) (int, error) {
	if len(b) < DETHSize {
		*h = DETH{}
		return 0, ErrShort
	}
	*h = DETH{QKey: binary.BigEndian.Uint32(b), Resv8: b[4], SrcQP: QPN(binary.BigEndian.Uint32(b[4:]) & mask24)}
	return DETHSize, nil
}
