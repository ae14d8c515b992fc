package roce

import (
	"testing"

	"github.com/weft-telemetry/weft/model"
)

func TestAckKey(t *testing.T) {
	for flow, want := range map[string]string{
		"udp 10.0.0.2:49152 > 10.0.1.3:4791": "udp 10.0.1.3:49152 > 10.0.0.2:4791",
		"tcp 10.0.0.2:49152 > 10.0.1.3:4791": "tcp 10.0.1.3:4791 > 10.0.0.2:49152",
		"udp 10.0.0.2:49152 > 10.0.1.3:53":   "udp 10.0.1.3:53 > 10.0.0.2:49152",
	} {
		k, err := model.ParseFlowKey(flow)
		if err != nil {
			t.Fatal(err)
		}
		if got := AckKey(k).String(); got != want {
			t.Errorf("AckKey(%s) = %s; want %s", flow, got, want)
		}
	}
}
