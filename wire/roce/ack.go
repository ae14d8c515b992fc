package roce

import "github.com/weft-telemetry/weft/model"

// AckKey returns the key of a flow's acknowledgements. RoCEv2 sends them to its port,
// too, and their source port spreads them over paths as the flow's does; others answer
// from the port that they were sent to.
func AckKey(flow model.FlowKey) model.FlowKey {
	ack := flow.Reverse()
	if flow.Proto == model.UDP && flow.DstPort == Port {
		ack.SrcPort, ack.DstPort = flow.SrcPort, flow.DstPort
	}
	return ack
}
