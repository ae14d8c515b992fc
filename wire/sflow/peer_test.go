package sflow

import (
	"bytes"
	"fmt"
	"testing"

	goflow "github.com/netsampler/goflow2/v2/decoders/sflow"
	"pgregory.net/rapid"
)

// TestGoflow2ReadsTheSame: an independent decoder finds the same values in what
// AppendTo writes. It keeps the records raw that it does not know.
func TestGoflow2ReadsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, samples, b := anyDatagram(t)
		var p goflow.Packet
		if err := goflow.DecodeMessageVersion(bytes.NewBuffer(b), &p); err != nil {
			t.Fatalf("goflow2: %v", err)
		}
		if p.SequenceNumber != h.Seq || p.SubAgentId != h.SubAgent || p.Uptime != uint32(h.Uptime.Milliseconds()) || len(p.Samples) != len(samples) {
			t.Fatalf("goflow2 reads %+v; want %+v", p, h)
		}
		for i := range samples {
			if got, want := theirs(p.Samples[i]), ours(&samples[i]); got != want {
				t.Fatalf("sample %d: goflow2 reads\n%s\nwant\n%s", i, got, want)
			}
		}
	})
}

// ours prints what both decoders know of a sample.
func ours(s *Sample) string {
	text := fmt.Sprintf("seq %d source %d:%d", s.Seq, s.Source.Class, s.Source.Index)
	switch s.Kind {
	case Flow:
		text += fmt.Sprintf(" rate %d pool %d lost %d in %v out %v", s.Rate, s.Pool, s.Lost, s.In, s.Out)
	case Drop:
		text += fmt.Sprintf(" lost %d in %d out %d reason %d", s.Lost, s.In.Value, s.Out.Value, s.Reason)
	}
	if s.Has.All(HasPacket) {
		padded := appendString(nil, s.Packet.Header)[4:] // goflow2 does not cut the padding off
		text += fmt.Sprintf(" packet %d %d %d %x", s.Packet.Protocol, s.Packet.Length, s.Packet.Stripped, padded)
	}
	if s.Has.All(HasSwitched) {
		text += fmt.Sprintf(" switched %v", s.Switched)
	}
	if s.Has.All(HasQueue) {
		text += fmt.Sprintf(" queue %d", s.Queue)
	}
	if s.Has.All(HasPort) {
		text += fmt.Sprintf(" port %v", s.Port)
	}
	if s.Has.All(HasEthernet) {
		text += fmt.Sprintf(" ethernet %v", s.Ethernet)
	}
	return text
}

func theirs(sample any) (text string) {
	var flows []goflow.FlowRecord
	head := func(h goflow.SampleHeader) string {
		return fmt.Sprintf("seq %d source %d:%d", h.SampleSequenceNumber, h.SourceIdType, h.SourceIdValue)
	}
	switch s := sample.(type) {
	case goflow.ExpandedFlowSample:
		text = head(s.Header) + fmt.Sprintf(" rate %d pool %d lost %d in %v out %v", s.SamplingRate, s.SamplePool, s.Drops,
			Interface{s.InputIfFormat, s.InputIfValue}, Interface{s.OutputIfFormat, s.OutputIfValue})
		flows = s.Records
	case goflow.DropSample:
		text = head(s.Header) + fmt.Sprintf(" lost %d in %d out %d reason %d", s.Drops, s.Input, s.Output, s.Reason)
		flows = s.Records
	case goflow.CounterSample:
		text = head(s.Header)
		for _, r := range s.Records {
			switch c := r.Data.(type) {
			case goflow.IfCounters:
				text += fmt.Sprintf(" port %v", c)
			case goflow.EthernetCounters:
				text += fmt.Sprintf(" ethernet %v", EthernetCounters{
					c.Dot3StatsAlignmentErrors, c.Dot3StatsFCSErrors, c.Dot3StatsFrameTooLongs, c.Dot3StatsInternalMacReceiveErrors, c.Dot3StatsSymbolErrors,
				})
			}
		}
	}
	for _, r := range flows {
		switch v := r.Data.(type) {
		case goflow.SampledHeader:
			text += fmt.Sprintf(" packet %d %d %d %x", v.Protocol, v.FrameLength, v.Stripped, v.HeaderData)
		case goflow.ExtendedSwitch:
			text += fmt.Sprintf(" switched %v", v)
		case goflow.EgressQueue:
			text += fmt.Sprintf(" queue %d", v.Queue)
		}
	}
	return text
}
