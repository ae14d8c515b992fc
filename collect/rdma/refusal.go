package rdma

// Refusal is the reason why a packet was not executed.
type Refusal uint8

// The refusals.
const (
	Truncated    Refusal = iota // ends inside a header
	BadICRC                     // wrong invariant CRC
	BadVersion                  // transport header version, or partition
	UnknownQP                   // no such queue pair
	WrongPeer                   // not from the queue pair's peer
	QPInError                   // the queue pair is in the error state
	BadOpcode                   // unsupported operation
	PSNGap                      // a packet before it is missing
	DuplicatePSN                // already executed; acknowledged again
	BadRKey                     // unknown R_Key
	OutOfBounds                 // outside the region
	Misaligned                  // an atomic operation not on a whole word
	BadLength                   // header and payload do not agree
	refusals
)

var refusalNames = [refusals]string{
	"truncated", "bad ICRC", "bad version", "unknown QP", "wrong peer", "QP in error state", "unsupported opcode",
	"PSN gap", "duplicate PSN", "invalid R_Key", "out of bounds", "misaligned", "length mismatch",
}

// String names the refusal.
func (r Refusal) String() string { return refusalNames[r] }

// Refusals returns all reasons.
func Refusals() (all []Refusal) {
	for r := range refusals {
		all = append(all, r)
	}
	return all
}
