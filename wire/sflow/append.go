package sflow

import "encoding/binary"

// AppendTo appends a sample of a kind but Other, with the records that Has names:
// flow and counter samples in the expanded form, which holds every value.
func (s *Sample) AppendTo(b []byte) []byte {
	format := [lastOf + 1]uint32{Flow: formatFlowExpanded, Count: formatCountExpanded, Drop: formatDrop}[s.Kind]
	b = binary.BigEndian.AppendUint32(b, format)
	start := len(b)
	b = append(b, 0, 0, 0, 0)
	u32 := func(list ...uint32) {
		for _, v := range list {
			b = binary.BigEndian.AppendUint32(b, v)
		}
	}
	u32(s.Seq, s.Source.Class, s.Source.Index)
	switch s.Kind {
	case Flow:
		u32(s.Rate, s.Pool, s.Lost, s.In.Format, s.In.Value, s.Out.Format, s.Out.Value)
	case Drop:
		u32(s.Lost, s.In.Value, s.Out.Value, uint32(s.Reason))
	}
	count := len(b)
	u32(0)
	b, n := s.appendRecords(b)
	binary.BigEndian.PutUint32(b[count:], n)
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

// appendRecords appends the records of the sample's kind and returns their number.
func (s *Sample) appendRecords(b []byte) (_ []byte, n uint32) {
	add := func(has Records, format uint32, data func(b []byte) []byte) {
		if !s.Has.All(has) {
			return
		}
		b = append(binary.BigEndian.AppendUint32(b, format), 0, 0, 0, 0)
		start := len(b)
		b = data(b)
		binary.BigEndian.PutUint32(b[start-4:], uint32(len(b)-start))
		n++
	}
	words := func(list ...uint32) func(b []byte) []byte {
		return func(b []byte) []byte {
			for _, v := range list {
				b = binary.BigEndian.AppendUint32(b, v)
			}
			return b
		}
	}
	if s.Kind == Count {
		add(HasPort, recordPort, s.Port.appendTo)
		add(HasEthernet, recordEthernet, s.Ethernet.appendTo)
		add(HasName, recordName, func(b []byte) []byte { return appendString(b, s.Name) })
		return b, n
	}
	add(HasPacket, recordPacket, func(b []byte) []byte {
		p := &s.Packet
		return appendString(words(p.Protocol, p.Length, p.Stripped)(b), p.Header)
	})
	add(HasSwitched, recordSwitched, words(s.Switched.InVLAN, s.Switched.InPriority, s.Switched.OutVLAN, s.Switched.OutPriority))
	add(HasQueue, recordQueue, words(s.Queue))
	add(HasDelay, recordDelay, words(uint32(min(max(s.Delay, 0), MaxDelay))))
	add(HasDepth, recordDepth, words(s.Depth))
	add(HasTrap, recordTrap, func(b []byte) []byte { return appendString(appendString(b, s.Group), s.Trap) })
	return b, n
}
