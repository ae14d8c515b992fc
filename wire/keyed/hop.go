package keyed

// MaxHops is how many hops a path of postcards has at most.
const MaxHops = 15

// HopIndex returns how many switches a packet passed before the one that it leaves
// with a TTL, which that switch has already decremented. Hosts begin with a TTL of
// 64, 128 or 255; a packet that began with another one, or passed more than MaxHops
// switches, has no index.
func HopIndex(ttl uint8) (hop uint8, ok bool) {
	for _, start := range [...]uint8{64, 128, 255} {
		if ttl < start {
			hop = start - 1 - ttl
			return hop, hop < MaxHops
		}
	}
	return 0, false
}
