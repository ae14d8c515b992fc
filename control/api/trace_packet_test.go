package api

import (
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/wire/pfc"
)

// TestControlPacketIsNamed: a trace without a flow says what its packet is.
func TestControlPacketIsNamed(t *testing.T) {
	flow := model.FlowKey{Src: model.Addr4(1), Dst: model.Addr4(2), Proto: model.UDP}
	for _, tc := range []struct {
		trace record.Trace
		want  string
	}{
		{record.Trace{Frame: pfc.Pause(model.MAC{}, 3, 9).AppendTo(nil)}, "PFC pause of priority 3"},
		{record.Trace{Frame: append(make([]byte, 12), 0x88, 0xcc)}, "frame of EtherType 0x88cc"},
		{record.Trace{Frame: []byte{1}}, "frame of an unknown type"},
		{record.Trace{}, ""},
		{record.Trace{Flow: flow, Frame: make([]byte, 60)}, ""},
	} {
		if got := controlPacket(&tc.trace); got != tc.want {
			t.Errorf("%x is %q; want %q", tc.trace.Frame, got, tc.want)
		}
	}
}
