package roce

// PSN is a packet sequence number, a 24-bit counter per queue pair and
// direction. Methods give results within 24 bits and ignore what a PSN holds
// above them.
type PSN uint32

const (
	psnBits = 24
	mask24  = 1<<psnBits - 1
)

// Add returns the number n packets later, or earlier when n is negative.
func (p PSN) Add(n int) PSN { return PSN(uint32(p)+uint32(n)) & mask24 }

// Sub returns how many packets p is after q: from -2^23 to 2^23-1, negative
// when p is the earlier. Numbers 2^23 apart count as p being earlier, so
// p.Sub(q) and q.Sub(p) are then both -2^23.
func (p PSN) Sub(q PSN) int {
	// Shifting to the top of the word makes the sign of a 32-bit difference the
	// sign of a 24-bit one.
	return int(int32(uint32(p-q)<<(32-psnBits)) >> (32 - psnBits))
}

// Before reports whether p is earlier than q, modulo 2^24.
func (p PSN) Before(q PSN) bool { return p.Sub(q) < 0 }
