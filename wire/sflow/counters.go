package sflow

import "encoding/binary"

// Formats of records in counter samples.
const (
	recordPort     = 1
	recordEthernet = 2
	recordName     = 1005
)

// Unknown is the value of a counter that an agent does not count.
const Unknown = 0xffffffff

// Unknown64 is Unknown of the counters with 64 bits.
const Unknown64 = 1<<64 - 1

// IfCounters are the generic counters of an interface, with the names of the
// interfaces MIB. All but octets wrap at 32 bits.
type IfCounters struct {
	IfIndex, Type                            uint32
	Speed                                    uint64 // bits a second
	Direction, Status                        uint32
	InOctets                                 uint64
	InUnicast, InMulticast, InBroadcast      uint32
	InDiscards, InErrors, InUnknownProtocols uint32
	OutOctets                                uint64
	OutUnicast, OutMulticast, OutBroadcast   uint32
	OutDiscards, OutErrors, Promiscuous      uint32
}

const sizeIfCounters = 88

// EthernetCounters are those of dot3Stats that broken links raise.
type EthernetCounters struct {
	AlignmentErrors, FCSErrors, FrameTooLongs, MACReceiveErrors, SymbolErrors uint32
}

const sizeEthernetCounters = 52

func (c *IfCounters) parse(b []byte) error {
	if len(b) < sizeIfCounters {
		return ErrShort
	}
	u32 := func(i int) uint32 { return binary.BigEndian.Uint32(b[i:]) }
	u64 := func(i int) uint64 { return binary.BigEndian.Uint64(b[i:]) }
	*c = IfCounters{
		IfIndex: u32(0), Type: u32(4), Speed: u64(8), Direction: u32(16), Status: u32(20),
		InOctets: u64(24), InUnicast: u32(32), InMulticast: u32(36), InBroadcast: u32(40),
		InDiscards: u32(44), InErrors: u32(48), InUnknownProtocols: u32(52),
		OutOctets: u64(56), OutUnicast: u32(64), OutMulticast: u32(68), OutBroadcast: u32(72),
		OutDiscards: u32(76), OutErrors: u32(80), Promiscuous: u32(84),
	}
	return nil
}

func (c *IfCounters) appendTo(b []byte) []byte {
	u32 := func(list ...uint32) {
		for _, v := range list {
			b = binary.BigEndian.AppendUint32(b, v)
		}
	}
	u32(c.IfIndex, c.Type)
	b = binary.BigEndian.AppendUint64(b, c.Speed)
	u32(c.Direction, c.Status)
	b = binary.BigEndian.AppendUint64(b, c.InOctets)
	u32(c.InUnicast, c.InMulticast, c.InBroadcast, c.InDiscards, c.InErrors, c.InUnknownProtocols)
	b = binary.BigEndian.AppendUint64(b, c.OutOctets)
	u32(c.OutUnicast, c.OutMulticast, c.OutBroadcast, c.OutDiscards, c.OutErrors, c.Promiscuous)
	return b
}

// The places of EthernetCounters among the 13 words of dot3Stats.
const (
	wordAlignment  = 0
	wordFCS        = 1
	wordTooLong    = 10
	wordMACReceive = 11
	wordSymbol     = 12
)

func (c *EthernetCounters) parse(b []byte) error {
	if len(b) < sizeEthernetCounters {
		return ErrShort
	}
	at := func(word int) uint32 { return binary.BigEndian.Uint32(b[4*word:]) }
	*c = EthernetCounters{at(wordAlignment), at(wordFCS), at(wordTooLong), at(wordMACReceive), at(wordSymbol)}
	return nil
}

// appendTo appends counters; those that EthernetCounters has not are unknown.
func (c *EthernetCounters) appendTo(b []byte) []byte {
	words := [13]uint32{}
	for i := range words {
		words[i] = Unknown
	}
	words[wordAlignment], words[wordFCS], words[wordTooLong] = c.AlignmentErrors, c.FCSErrors, c.FrameTooLongs
	words[wordMACReceive], words[wordSymbol] = c.MACReceiveErrors, c.SymbolErrors
	for _, v := range words {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func (s *Sample) parseCounters(format uint32, b []byte) error {
	switch format {
	case recordPort:
		s.Has |= HasPort
		return s.Port.parse(b)
	case recordEthernet:
		s.Has |= HasEthernet
		return s.Ethernet.parse(b)
	case recordName:
		name, _, err := cutString(b)
		if err != nil {
			return err
		}
		s.Name, s.Has = name, s.Has|HasName
	default:
		s.Ignored++
	}
	return nil
}
