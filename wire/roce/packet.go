package roce

// Packet is a UDP payload up to its invariant CRC: the base header, the
// extension headers of its opcode, and the payload. Other extension headers are
// zero after Parse and ignored by AppendTo.
type Packet struct {
	BTH       BTH
	DETH      DETH         // UDSendOnly, UDSendOnlyImm
	RETH      RETH         // WriteFirst, WriteOnly, WriteOnlyImm, ReadRequest
	Atomic    AtomicETH    // CmpSwap, FetchAdd
	AETH      AETH         // Acknowledge, AtomicAcknowledge, read responses but the middle
	AtomicAck AtomicAckETH // AtomicAcknowledge
	Imm       ImmDt        // every opcode named Imm

	// Payload is the data followed by BTH.PadCount bytes of padding, so that
	// it keeps what the sender padded with. After Parse it aliases the input.
	Payload []byte
}

// extension names the headers between base header and payload, in wire order.
type extension uint8

const (
	hasDETH extension = 1 << iota
	hasRETH
	hasAtomic
	hasAETH
	hasAtomicAck
	hasImm
)

// extensions is indexed by opcode. One that is not listed has a base header
// only: what follows is left in the payload.
var extensions = [256]extension{
	SendLastImm:       hasImm,
	SendOnlyImm:       hasImm,
	WriteFirst:        hasRETH,
	WriteLastImm:      hasImm,
	WriteOnly:         hasRETH,
	WriteOnlyImm:      hasRETH | hasImm,
	ReadRequest:       hasRETH,
	ReadResponseFirst: hasAETH,
	ReadResponseLast:  hasAETH,
	ReadResponseOnly:  hasAETH,
	Acknowledge:       hasAETH,
	AtomicAcknowledge: hasAETH | hasAtomicAck,
	CmpSwap:           hasAtomic,
	FetchAdd:          hasAtomic,
	UDSendOnly:        hasDETH,
	UDSendOnlyImm:     hasDETH | hasImm,
}

// AppendTo appends the packet without an invariant CRC, which also covers the
// IP and UDP headers: see AppendICRC. It adds no padding: the length of Payload
// must be a multiple of 4.
func (p *Packet) AppendTo(b []byte) []byte {
	b = p.BTH.AppendTo(b)
	ext := extensions[p.BTH.Opcode]
	if ext&hasDETH != 0 {
		b = p.DETH.AppendTo(b)
	}
	if ext&hasRETH != 0 {
		b = p.RETH.AppendTo(b)
	}
	if ext&hasAtomic != 0 {
		b = p.Atomic.AppendTo(b)
	}
	if ext&hasAETH != 0 {
		b = p.AETH.AppendTo(b)
	}
	if ext&hasAtomicAck != 0 {
		b = p.AtomicAck.AppendTo(b)
	}
	if ext&hasImm != 0 {
		b = p.Imm.AppendTo(b)
	}
	return append(b, p.Payload...)
}

// Parse decodes a whole UDP payload without its invariant CRC, and returns the
// bytes it used: all of b. Payload aliases b.
func (p *Packet) Parse(b []byte) (int, error) {
	*p = Packet{}
	at, err := p.BTH.Parse(b)
	if err != nil {
		return 0, err
	}
	// Every step below parses the rest, so a short packet is found by the
	// header that does not fit; all return the same error.
	step := func(n int, e error) {
		at += n
		if e != nil {
			err = e
		}
	}
	ext := extensions[p.BTH.Opcode]
	if ext&hasDETH != 0 {
		step(p.DETH.Parse(b[at:]))
	}
	if ext&hasRETH != 0 {
		step(p.RETH.Parse(b[at:]))
	}
	if ext&hasAtomic != 0 {
		step(p.Atomic.Parse(b[at:]))
	}
	if ext&hasAETH != 0 {
		step(p.AETH.Parse(b[at:]))
	}
	if ext&hasAtomicAck != 0 {
		step(p.AtomicAck.Parse(b[at:]))
	}
	if ext&hasImm != 0 {
		step(p.Imm.Parse(b[at:]))
	}
	if err != nil {
		return 0, err
	}
	p.Payload = b[at:]
	if int(p.BTH.PadCount) > len(p.Payload) {
		return 0, ErrPad
	}
	return len(b), nil
}

// Data returns the payload without its padding. It is empty if BTH.PadCount is
// more than the payload, which Parse rejects.
func (p *Packet) Data() []byte {
	return p.Payload[:max(0, len(p.Payload)-int(p.BTH.PadCount))]
}
