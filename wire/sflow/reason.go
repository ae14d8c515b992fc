package sflow

// Reason is why a packet was dropped. Those below 256 are the codes of ICMP
// destination unreachable.
type Reason uint32

// Reasons that Weft distinguishes; docs/formats/sflow.md has all of them.
const (
	NetUnreachable          Reason = 0
	HostUnreachable         Reason = 1
	FragmentationNeeded     Reason = 4
	NetUnknown              Reason = 6 // no route
	HostUnknown             Reason = 7
	NetProhibited           Reason = 9
	HostProhibited          Reason = 10
	CommunicationProhibited Reason = 13
	UnknownReason           Reason = 256
	TTLExceeded             Reason = 257
	ACL                     Reason = 258
	NoBufferSpace           Reason = 259
	RED                     Reason = 260
	TrafficShaping          Reason = 261
	PacketTooBig            Reason = 262
	SourceMACIsMulticast    Reason = 263
	BlackholeRoute          Reason = 269
	NonIP                   Reason = 270
	IPHeaderCorrupted       Reason = 275
	UnresolvedNeighbour     Reason = 279
	UnknownBuffer           Reason = 287
	BlackholeNeighbour      Reason = 292
)
