package epoch

import (
	"bytes"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
)

var (
	samplePort = Port{
		Port: 1, Priority: 3, Paused: true, Remaining: 335539 * time.Nanosecond,
		PauseFrames: 7, Queued: 0x10000, Sent: 0x0102030405060708,
	}
	samplePortEpoch = PortEpoch{
		Epoch: 0x55, Port: 1, Priority: 3, Packets: 100, Paused: 40, PauseFrames: 2, Depth: 600, PausedDepth: 0x1000,
	}
	sampleFlow = Flow{
		Epoch: 0x55, Out: 2, In: 1, Priority: 3, Evicted: true,
		Key:     model.FlowKey{Src: model.Addr4(0x0a000002), Dst: model.Addr4(0x0a000103), SrcPort: 49152, DstPort: 4791, Proto: model.UDP},
		Packets: 100, Paused: 40, Bytes: 0x1000, Depth: 600, PausedDepth: 0x2000, First: 0x10, Last: 0x1234,
	}
	sampleFlow6 = Flow{
		Epoch: 0x55, Out: 2, In: 1, Priority: 7,
		Key: model.FlowKey{
			Src: model.Addr{Hi: 0x20010db800000000, Lo: 1}, Dst: model.Addr{Hi: 0x20010db800000000, Lo: 2},
			SrcPort: 49152, DstPort: 4791, Proto: model.UDP, V6: true,
		},
		Packets: 1, Bytes: 64,
	}
	samplePause = Pause{Port: 1, Priority: 3, LastStart: 0x1122, LastEnd: 0x1100, BurstStart: 0x1000, BytesAtBurstStart: 0x10000, Pauses: 7, PausedTime: 0x99}
	sampleWave  = CongestionEpisode{Port: 1, Priority: 3, First: 0x1000, Last: 0x1122, MaxBytes: 0x10000}
	sampleAsked = PollRef{ReceivedAt: 0x1122}
	sampleHeld  = PortPairBacklog{In: 1, Out: 2, Priority: 3, Packets: 100, Bytes: 0x1000}
	sampleMeter = Meter{Epoch: 0x55, In: 1, Out: 2, Priority: AnyPriority, Packets: 100, Bytes: 0x1000}
)

const (
	portHex      = "01 26 0001 03 01 0000000000051eb3 0000000000000007 0000000000010000 0102030405060708"
	portEpochHex = "02 26 00000055 0001 03 00 00000064 00000028 00000002 0000000000000258 0000000000001000"
	flow4Hex     = "03 41 00000055 0002 0001 03 01 00000064 00000028 0000000000001000 0000000000000258 0000000000002000" +
		"00000010 00001234 0a000002 0a000103 c000 12b7 11"
	flow6Hex = "04 59 00000055 0002 0001 07 00 00000001 00000000 0000000000000040 0000000000000000 0000000000000000" +
		"00000000 00000000 20010db8000000000000000000000001 20010db8000000000000000000000002 c000 12b7 11"
	pauseHex    = "06 36 0001 03 00 0000000000001122 0000000000001100 0000000000001000 0000000000010000 0000000000000007 0000000000000099"
	waiting4Hex = "07 21 0001 0002 03 00 00000064 0000000000001000 0a000002 0a000103 c000 12b7 11"
	waiting6Hex = "08 39 0001 0002 03 00 00000064 0000000000001000" +
		"20010db8000000000000000000000001 20010db8000000000000000000000002 c000 12b7 11"
	heldHex     = "09 14 0001 0002 03 00 00000064 0000000000001000"
	waveHex     = "0a 1e 0001 03 00 0000000000001000 0000000000001122 0000000000010000"
	askedHex    = "0b 0a 0000000000001122"
	anyMeterHex = "05 18 00000055 0001 0002 ff 00 00000064 0000000000001000"
)

// record is what the kinds share; *T has Parse, T has AppendTo.
type record[T any] interface {
	*T
	Parse([]byte) (int, error)
}

type appender interface{ AppendTo([]byte) []byte }

// testRecord checks one kind against hand-written bytes, in both directions, and
// against every kind of corruption.
func testRecord[T interface {
	comparable
	appender
}, P record[T]](t *testing.T, wire string, want, dirty T, reserved map[int]byte,
) {
	t.Helper()
	in := unhex(t, wire)
	parse := func(in []byte) (T, int, error) {
		got := dirty // must be overwritten
		n, err := P(&got).Parse(in)
		return got, n, err
	}
	if got, n, err := parse(append(bytes.Clone(in), 0xee)); got != want || n != len(in) || err != nil {
		t.Errorf("Parse(%x) = %+v, %d, %v; want %+v, %d, nil", in, got, n, err, want, len(in))
	}
	if got := want.AppendTo(nil); !bytes.Equal(got, in) {
		t.Errorf("%+v.AppendTo = %x; want %x", want, got, in)
	}
	refused := func(why string, in []byte, want error) {
		t.Helper()
		var zero T
		if got, n, err := parse(in); got != zero || n != 0 || err != want {
			t.Errorf("%s: Parse(%x) = %+v, %d, %v; want zero, 0, %v", why, in, got, n, err, want)
		}
	}
	for n := range in {
		refused("cut", in[:n], ErrShort)
	}
	spoil := func(at int, v byte) []byte {
		out := bytes.Clone(in)
		out[at] = v
		return out
	}
	refused("another kind", spoil(0, 0xc8), ErrRecord)
	refused("shorter than it is", spoil(1, in[1]-1), ErrRecord)
	refused("longer than it is", append(spoil(1, in[1]+1), 0), ErrRecord)
	for at, v := range reserved {
		refused("reserved", spoil(at, v), ErrReserved)
	}
}

func TestRecords(t *testing.T) {
	t.Run("port", func(t *testing.T) {
		testRecord(t, portHex, samplePort, Port{Paused: true, Sent: 9}, map[int]byte{4: 8, 5: 2})
	})
	t.Run("port epoch", func(t *testing.T) {
		testRecord(t, portEpochHex, samplePortEpoch, PortEpoch{Depth: 9}, map[int]byte{8: 0xff, 9: 1})
	})
	t.Run("flow4", func(t *testing.T) {
		testRecord(t, flow4Hex, sampleFlow, sampleFlow6, map[int]byte{10: 8, 11: 3})
	})
	t.Run("flow6", func(t *testing.T) {
		testRecord(t, flow6Hex, sampleFlow6, sampleFlow, map[int]byte{10: 0xff, 11: 0x80})
	})
	t.Run("pause", func(t *testing.T) {
		testRecord(t, pauseHex, samplePause, Pause{PausedTime: 9}, map[int]byte{4: 8, 5: 1})
	})
	t.Run("waiting4", func(t *testing.T) {
		testRecord(t, waiting4Hex, FlowBacklog{sampleHeld, sampleFlow.Key}, FlowBacklog{Key: sampleFlow6.Key}, map[int]byte{6: 8, 7: 1})
	})
	t.Run("waiting6", func(t *testing.T) {
		testRecord(t, waiting6Hex, FlowBacklog{sampleHeld, sampleFlow6.Key}, FlowBacklog{Key: sampleFlow.Key}, map[int]byte{6: 0xff, 7: 0x80})
	})
	t.Run("held", func(t *testing.T) {
		testRecord(t, heldHex, sampleHeld, PortPairBacklog{Bytes: 9}, map[int]byte{6: 8, 7: 1})
	})
	t.Run("episode", func(t *testing.T) {
		testRecord(t, waveHex, sampleWave, CongestionEpisode{MaxBytes: 9}, map[int]byte{4: 8, 5: 1})
	})
	t.Run("asked", func(t *testing.T) {
		testRecord(t, askedHex, sampleAsked, PollRef{ReceivedAt: 9}, nil)
	})
	t.Run("meter of all classes", func(t *testing.T) {
		testRecord(t, anyMeterHex, sampleMeter, Meter{Bytes: 9}, map[int]byte{10: 8, 11: 1})
	})
	t.Run("meter of one class", func(t *testing.T) {
		one := sampleMeter
		one.Priority = 3
		testRecord(t, meterHex, one, Meter{Bytes: 9}, map[int]byte{10: 0xfe, 11: 0x80})
	})
}

func TestPriorityIsCutToThreeBits(t *testing.T) {
	for name, tc := range map[string]struct {
		got []byte
		at  int
	}{
		"port":       {Port{Priority: 11}.AppendTo(nil), 4},
		"port epoch": {PortEpoch{Priority: 11}.AppendTo(nil), 8},
		"flow":       {Flow{Priority: 11}.AppendTo(nil), 10},
		"meter":      {Meter{Priority: 11}.AppendTo(nil), 10},
		"pause":      {Pause{Priority: 11}.AppendTo(nil), 4},
		"held":       {PortPairBacklog{Priority: 11}.AppendTo(nil), 6},
		"episode":    {CongestionEpisode{Priority: 11}.AppendTo(nil), 4},
		"intervals":  {Intervals{Priority: 11}.AppendTo(nil), 4},
		"waiting":    {FlowBacklog{PortPairBacklog: PortPairBacklog{Priority: 11}}.AppendTo(nil), 6},
	} {
		if tc.got[tc.at] != 3 {
			t.Errorf("%s: priority 11 is written as %d; want 3", name, tc.got[tc.at])
		}
	}
}

// fuzzRecord is the round trip of one kind.
func fuzzRecord[T appender, P record[T]](f *testing.F, seeds ...string) {
	for _, s := range seeds {
		f.Add(unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var v T
		n, err := P(&v).Parse(in)
		if err != nil {
			return
		}
		if out := v.AppendTo(nil); !bytes.Equal(out, in[:n]) {
			t.Fatalf("round trip %x -> %x", in[:n], out)
		}
	})
}

func FuzzPort(f *testing.F)      { fuzzRecord[Port](f, portHex) }
func FuzzPortEpoch(f *testing.F) { fuzzRecord[PortEpoch](f, portEpochHex) }
func FuzzFlow(f *testing.F)      { fuzzRecord[Flow](f, flow4Hex, flow6Hex) }
func FuzzMeter(f *testing.F)     { fuzzRecord[Meter](f, meterHex, anyMeterHex) }

func FuzzPause(f *testing.F)   { fuzzRecord[Pause](f, pauseHex) }
func FuzzWave(f *testing.F)    { fuzzRecord[CongestionEpisode](f, waveHex) }
func FuzzAsked(f *testing.F)   { fuzzRecord[PollRef](f, askedHex) }
func FuzzHeld(f *testing.F)    { fuzzRecord[PortPairBacklog](f, heldHex) }
func FuzzWaiting(f *testing.F) { fuzzRecord[FlowBacklog](f, waiting4Hex, waiting6Hex) }

func TestRecordAllocs(t *testing.T) {
	var (
		p  Port
		pe PortEpoch
		fl Flow
		m  Meter
		pa Pause
		h  PortPairBacklog
		w  FlowBacklog
		wa CongestionEpisode
		as PollRef
	)
	sampleWaiting := FlowBacklog{sampleHeld, sampleFlow6.Key}
	buf := make([]byte, 0, maxRecord)
	if n := testing.AllocsPerRun(100, func() {
		buf = samplePort.AppendTo(buf[:0])
		p.Parse(buf)
		buf = samplePortEpoch.AppendTo(buf[:0])
		pe.Parse(buf)
		buf = sampleFlow6.AppendTo(buf[:0])
		fl.Parse(buf)
		buf = sampleMeter.AppendTo(buf[:0])
		m.Parse(buf)
		buf = samplePause.AppendTo(buf[:0])
		pa.Parse(buf)
		buf = sampleHeld.AppendTo(buf[:0])
		h.Parse(buf)
		buf = sampleWaiting.AppendTo(buf[:0])
		w.Parse(buf)
		buf = sampleWave.AppendTo(buf[:0])
		wa.Parse(buf)
		buf = sampleAsked.AppendTo(buf[:0])
		as.Parse(buf)
	}); n != 0 {
		t.Errorf("Parse and AppendTo of the records allocate %v times", n)
	}
}
