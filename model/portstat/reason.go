package portstat

// Reason is why a switch dropped a packet.
type Reason uint8

// Reasons that analyses distinguish. sFlow's drop notifications and
// SAI's debug counters name many more; sources map theirs to these.
const (
	UnknownReason  Reason = iota
	NoBuffer              // tail drop, WRED, or a full shared buffer
	NoRoute               // no route to the destination [L3_LPM miss, DIP link]
	BlackholeRoute        // a route that says drop
	TTLExpired            // TTL 1: often a forwarding loop
	ACLDrop               // an access list says drop
	MTUExceeded           // longer than the link's MTU
	BadHeader             // a header that the switch refuses: checksum, source address, VLAN
	LinkDown              // the egress port is down
	WatchdogDrop          // the PFC watchdog empties a queue that it found stormed
	NumReasons
)

var reasonNames = [NumReasons]string{
	"unknown", "no buffer", "no route", "blackhole route", "TTL expired", "ACL", "MTU exceeded", "bad header", "link down",
	"PFC watchdog",
}

// String returns the reason's name.
func (r Reason) String() string {
	if r >= NumReasons {
		r = UnknownReason
	}
	return reasonNames[r]
}

// ReasonSet is a set of reasons, one bit each.
type ReasonSet uint16

// With returns the set with one more reason.
func (s ReasonSet) With(r Reason) ReasonSet { return s | 1<<r }

// Has reports whether the set has a reason.
func (s ReasonSet) Has(r Reason) bool { return s>>r&1 != 0 }
