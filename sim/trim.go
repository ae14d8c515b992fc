package sim

import "github.com/weft-telemetry/weft/model"

// trimmedDSCP marks a packet whose payload was trimmed. The value is one of the
// code points for local use; the Ultra Ethernet specification leaves it to the
// operator.
const trimmedDSCP = 63

// trimmedQueue bounds the control queue of a port that trims. It is the room
// that NDP (SIGCOMM '17, section 3.1) gives to headers: 1,125 of 64 bytes, as
// much as the eight full packets of 9 KB before them.
const trimmedQueue = 72 * model.KB

// trim cuts the payload off a packet that the buffer cannot hold and queues
// the headers before all payload. It reports whether it did.
func (sw *Switch) trim(out *Port, p *Packet) bool {
	n := sw.net
	if !n.cfg.Trimming || p.Kind != KindData || out.queues[controlQueue].bytes >= int64(trimmedQueue) {
		return false
	}
	cut := (p.Payload + 3) &^ 3
	if n.cfg.Overhead > 0 {
		cut = p.Payload
	}
	p.Size = max(minFrame, p.Size-cut)
	p.Kind, p.Payload, p.Control, p.DSCP = KindTrimmed, 0, true, trimmedDSCP
	sw.w.counts.Trimmed++
	out.enqueue(p)
	return true
}
