package postcard

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/weft-telemetry/weft/collect/slothash"
)

// Scheme maps keys to chunks and encodes them: all that a translator needs to
// write by RDMA. It holds no memory.
type Scheme struct {
	cfg    Config
	proto  bool
	sealed bool
	words  int    // of a chunk
	keep   uint64 // the bits of two hops that are stored
}

// NewScheme validates the geometry.
func NewScheme(cfg Config) (*Scheme, error) {
	s := newScheme(cfg)
	return &s, cfg.Validate()
}

func newScheme(cfg Config) Scheme {
	keep := uint64(1)<<cfg.Bits - 1
	return Scheme{cfg: cfg, proto: cfg.Layout == Prototype, sealed: cfg.Layout == Sealed, words: cfg.chunk() / 8, keep: keep | keep<<32}
}

// Config returns the geometry.
func (s *Scheme) Config() Config { return s.cfg }

// Copies is the maximum number of copies of the layout.
func (s *Scheme) Copies() int {
	if s.proto {
		return 1
	}
	return slothash.MaxCopies
}

// KeyHash is the hash of a key, computed once for all copies and hops.
type KeyHash struct {
	hash slothash.Hash
	key  uint32 // with the prototype's layout
}

// HashKey hashes a key, once for all copies and hops.
func (s *Scheme) HashKey(key []byte) (KeyHash, error) {
	if s.proto {
		if len(key) != slothash.PrototypeKeyLen {
			return KeyHash{}, ErrKeyLen
		}
		return KeyHash{key: binary.BigEndian.Uint32(key)}, nil
	}
	if len(key) == 0 {
		return KeyHash{}, ErrKeyLen
	}
	return KeyHash{hash: slothash.HashKey(key, s.cfg.Seed)}, nil
}

func (s *Scheme) chunk(p KeyHash, n int) uint64 {
	if s.proto {
		return uint64(protoCRC(crc32.IEEETable, p.key)) & (s.cfg.Chunks - 1)
	}
	return p.hash.Slot(n, s.cfg.Chunks)
}

// Offset is the offset of copy n of the key's path in the memory, in bytes.
func (s *Scheme) Offset(p KeyHash, n int) uint64 { return s.chunk(p, n) * uint64(s.words) * 8 }

// ChunkSize is the length of a chunk in bytes.
func (s *Scheme) ChunkSize() int { return s.words * 8 }

// AppendChunk appends the bytes of a chunk; they are the same for all copies.
// Hops that are missing or Blank did not report.
func (s *Scheme) AppendChunk(b []byte, p KeyHash, hops []uint32) ([]byte, error) {
	if len(hops) > s.cfg.Hops {
		return b, ErrHops
	}
	var chunk [maxWords]uint64
	s.encode(&chunk, p, hops)
	for _, w := range chunk[:s.words] {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b, nil
}

// maxWords is the length of the longest chunk.
const maxWords = (MaxHops + 1) / 2

// encode fills the words of a chunk.
func (s *Scheme) encode(chunk *[maxWords]uint64, p KeyHash, hops []uint32) {
	if s.proto {
		protoEncode(chunk, p.key, hops)
		return
	}
	for i := range s.words {
		w := uint64(codeAt(hops, 2*i)) | uint64(codeAt(hops, 2*i+1))<<32
		chunk[i] = (w ^ hopPairMask(p.hash, i)) & s.hopBits(i)
	}
	if s.sealed {
		chunk[s.words-1] |= s.chunkChecksum(p.hash, chunk) << 32
	}
}

// chunkChecksum is the checksum of a chunk whose checksum field is still zero.
func (s *Scheme) chunkChecksum(h slothash.Hash, chunk *[maxWords]uint64) uint64 {
	sum := h.Checksum()
	for i := 0; i < s.words; i += 2 { // one word is followed by a zero
		sum = sum.AddWordPair(chunk[i], chunk[i+1])
	}
	return sum.Bits(1<<32 - 1)
}

// codeAt returns the code of hop i, or that of a blank.
func codeAt(hops []uint32, i int) uint32 {
	if i < len(hops) {
		return encodeValue(hops[i])
	}
	return blankCode
}

// hopPairMask returns the checksums of the key and hops 2i and 2i+1, a half each.
func hopPairMask(h slothash.Hash, i int) uint64 { return uint64(h.Checksum().AddWord(hopMix[i])) }

// The first of hopMix as constants, which are faster than a load.
const (
	hopMix0 = 0x243f6a8885a308d3
	hopMix1 = 0x13198a2e03707344
	hopMix2 = 0xa4093822299f31d0
)

// hopMix gives each pair of hops a different checksum: digits of pi.
var hopMix = [maxWords]uint64{
	hopMix0, hopMix1, hopMix2, 0x082efa98ec4e6c89,
	0x452821e638d01377, 0xbe5466cf34e90c6c, 0xc0ac29b7c97c50dd, 0x3f84d5b5b5470917,
}

// hopBits returns the bits of word i that hold hops.
func (s *Scheme) hopBits(i int) uint64 {
	switch n := s.cfg.Hops - 2*i; {
	case n >= 2:
		return s.keep
	case n == 1:
		return s.keep & (1<<32 - 1)
	default:
		return 0
	}
}
