package sketch

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
)

// Key4 is the canonical form of an IPv4 key, read as big-endian words and
// padded with zeros: addresses in the first, ports and protocol in the second.
type Key4 [2]uint64

// Key6 is the canonical form of an IPv6 key: source, destination, and ports with
// protocol in the last word.
type Key6 [5]uint64

// Key is a key of either family. A table holds keys of one: the XOR of both
// would need the size of the longer for all.
type Key interface{ Key4 | Key6 }

// Pack4 returns the words of an IPv4 key. For an IPv6 key they are meaningless.
func Pack4(k *model.FlowKey) Key4 {
	return Key4{k.Src.Lo<<32 | k.Dst.Lo&0xffff_ffff, tail(k)}
}

// Pack6 returns the words of an IPv6 key.
func Pack6(k *model.FlowKey) Key6 {
	return Key6{k.Src.Hi, k.Src.Lo, k.Dst.Hi, k.Dst.Lo, tail(k)}
}

func tail(k *model.FlowKey) uint64 {
	return uint64(k.SrcPort)<<48 | uint64(k.DstPort)<<32 | uint64(k.Proto)<<24
}

// FlowKey returns the unpacked key. It ignores the padding bits.
func (k Key4) FlowKey() model.FlowKey {
	f := model.FlowKey{Src: model.Addr4(uint32(k[0] >> 32)), Dst: model.Addr4(uint32(k[0]))}
	untail(&f, k[1])
	return f
}

// FlowKey returns the unpacked key.
func (k Key6) FlowKey() model.FlowKey {
	f := model.FlowKey{Src: model.Addr{Hi: k[0], Lo: k[1]}, Dst: model.Addr{Hi: k[2], Lo: k[3]}, V6: true}
	untail(&f, k[4])
	return f
}

func untail(f *model.FlowKey, w uint64) {
	f.SrcPort, f.DstPort, f.Proto = uint16(w>>48), uint16(w>>32), model.Proto(w>>24)
}

// FlowKeyOf is FlowKey for code that serves both families.
func FlowKeyOf[K Key](k *K) model.FlowKey {
	switch k := any(k).(type) {
	case *Key4:
		return k.FlowKey()
	case *Key6:
		return k.FlowKey()
	}
	panic("unreachable: Key has two types")
}

// PutFlowKey is FlowKeyOf into existing memory. It sets field by field: a key that is
// made first and copied then costs several times as much, as the copy has to wait for
// the narrower stores before it.
func PutFlowKey[K Key](dst *model.FlowKey, k *K) {
	switch k := any(k).(type) {
	case *Key4:
		dst.Src.Hi, dst.Src.Lo = 0, model.Addr4(uint32(k[0]>>32)).Lo
		dst.Dst.Hi, dst.Dst.Lo = 0, model.Addr4(uint32(k[0])).Lo
		dst.V6 = false
		untail(dst, k[1])
	case *Key6:
		dst.Src.Hi, dst.Src.Lo, dst.Dst.Hi, dst.Dst.Lo = k[0], k[1], k[2], k[3]
		dst.V6 = true
		untail(dst, k[4])
	}
}

// PutKey writes the canonical bytes of k, as cells carry them, to dst. Bytes
// after a shorter key are not changed.
func PutKey[K Key](dst *[model.MaxKeyLen]byte, k *K) {
	last := len(*k) - 1
	for i := range last {
		binary.BigEndian.PutUint64(dst[8*i:], (*k)[i])
	}
	w := (*k)[last]
	binary.BigEndian.PutUint32(dst[8*last:], uint32(w>>32))
	dst[8*last+4] = byte(w >> 24)
}

// ReadKey reads what PutKey writes.
func ReadKey[K Key](src *[model.MaxKeyLen]byte) (k K) {
	last := len(k) - 1
	for i := range last {
		k[i] = binary.BigEndian.Uint64(src[8*i:])
	}
	k[last] = uint64(binary.BigEndian.Uint32(src[8*last:]))<<32 | uint64(src[8*last+4])<<24
	return k
}
