package rdma

import (
	"fmt"

	"github.com/weft-telemetry/weft/wire/roce"
)

// Write stores bytes at an address, in as many packets as they need. It reports
// whether the window had space for all of them; if not, none is sent.
func (q *Requester) Write(va uint64, key uint32, data []byte) bool {
	return q.write(va, key, data, false, 0)
}

// WriteImm is Write with data for the collector's program.
func (q *Requester) WriteImm(va uint64, key uint32, data []byte, imm roce.ImmDt) bool {
	return q.write(va, key, data, true, imm)
}

// PacketsOf returns the number of packets of a write of n bytes.
func (q *Requester) PacketsOf(n int) int { return max(1, (n+q.conn.mtu()-1)/q.conn.mtu()) }

func (q *Requester) write(va uint64, key uint32, data []byte, immediate bool, imm roce.ImmDt) bool {
	packets := q.PacketsOf(len(data))
	if q.WindowFree() < packets {
		q.stats.WindowFull++
		return false
	}
	p := roce.Packet{RETH: roce.RETH{VA: va, RKey: key, Length: uint32(len(data))}, Imm: imm}
	for i := range packets {
		part := data[:min(len(data), q.conn.mtu())]
		data = data[len(part):]
		p.BTH.Opcode = writeOpcode(i == 0, i == packets-1, immediate)
		q.setPayload(&p, part)
		q.enqueue(&p)
	}
	q.stats.Writes++
	return true
}

// writeOpcode is the opcode of a packet of a write. Only the last has immediate
// data.
func writeOpcode(first, last, immediate bool) roce.Opcode {
	switch {
	case first && last && immediate:
		return roce.WriteOnlyImm
	case first && last:
		return roce.WriteOnly
	case first:
		return roce.WriteFirst
	case last && immediate:
		return roce.WriteLastImm
	case last:
		return roce.WriteLast
	}
	return roce.WriteMiddle
}

// setPayload sets data with its padding.
func (q *Requester) setPayload(p *roce.Packet, data []byte) {
	pad := -len(data) & 3
	p.BTH.PadCount, p.Payload = uint8(pad), data
	if pad != 0 {
		q.scratch = append(append(q.scratch[:0], data...), 0, 0, 0)
		p.Payload = q.scratch[:len(data)+pad]
	}
}

// Send sends a message of at most one packet to the responder's program. It
// reports like Write.
func (q *Requester) Send(message []byte) bool {
	if len(message) > q.conn.mtu() {
		panic(fmt.Sprintf("rdma: message of %d bytes, want at most %d", len(message), q.conn.mtu()))
	}
	p := roce.Packet{BTH: roce.BTH{Opcode: roce.SendOnly}}
	q.setPayload(&p, message)
	if !q.enqueue(&p) {
		return false
	}
	q.stats.Sends++
	return true
}

// FetchAdd adds to the aligned word at an address. It reports like Write.
func (q *Requester) FetchAdd(va uint64, key uint32, delta uint64) bool {
	p := roce.Packet{Atomic: roce.AtomicETH{VA: va, RKey: key, SwapAdd: delta}}
	p.BTH.Opcode = roce.FetchAdd
	if !q.enqueue(&p) {
		return false
	}
	q.stats.Adds++
	return true
}

// CompareSwap stores swap in the aligned word at an address if it holds compare. It
// reports like Write.
func (q *Requester) CompareSwap(va uint64, key uint32, compare, swap uint64) bool {
	p := roce.Packet{Atomic: roce.AtomicETH{VA: va, RKey: key, SwapAdd: swap, Compare: compare}}
	p.BTH.Opcode = roce.CmpSwap
	if !q.enqueue(&p) {
		return false
	}
	q.stats.Swaps++
	return true
}
