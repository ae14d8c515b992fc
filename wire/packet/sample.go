package packet

import "github.com/weft-telemetry/weft/model"

// SampleHash returns a hash of 32 bits of a packet, the same at every switch of its path:
// it depends on flow and IPID, and if the IPID is zero, or missing as in IPv6, on the
// sequence number. Packets of a UDP flow without either share a hash.
func SampleHash(seed uint64, flow *model.FlowKey, ipid uint16, seq uint32) uint64 {
	id := uint64(ipid)
	if id == 0 {
		id = 1<<32 | uint64(seq)
	}
	return flow.Hash(seed+id*0x9e3779b97f4a7c15) >> 32
}
