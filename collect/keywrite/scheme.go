package keywrite

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/collect/slothash"
)

// Scheme maps keys to slots and encodes their content: all that a translator
// needs to write by RDMA. It holds no memory.
type Scheme struct {
	cfg          Config
	rule         slothash.Hasher
	oneWord      bool   // Weft's slots of one word with values of 4 bytes
	mask         uint64 // the bits of the checksum
	words        uint64 // of a slot
	checksumBits int    // bits of the first word that hold the checksum
}

// NewScheme validates the geometry.
func NewScheme(cfg Config) (*Scheme, error) {
	s := newScheme(cfg)
	return &s, cfg.Validate()
}

func newScheme(cfg Config) Scheme {
	s := Scheme{cfg: cfg, words: uint64(cfg.stride() / 8), checksumBits: 8 * cfg.sumBytes()}
	s.rule = slothash.Hasher{Seed: cfg.Seed, Prototype: cfg.Layout == Prototype}
	s.mask = 1<<uint(cfg.Check) - 1
	s.oneWord = !s.rule.Prototype && s.words == 1 && cfg.Value == 4
	return s
}

// Config returns the geometry.
func (s *Scheme) Config() Config { return s.cfg }

// HashKey hashes a key, once for all copies.
func (s *Scheme) HashKey(key []byte) (slothash.KeyHash, error) { return s.rule.HashKey(key) }

// Offset is the offset of copy n of the key in the memory, in bytes.
func (s *Scheme) Offset(p slothash.KeyHash, n int) uint64 {
	return s.rule.Slot(p, n, s.cfg.Slots) * s.words * 8
}

// SlotSize is the length of a slot in bytes.
func (s *Scheme) SlotSize() int { return int(s.words) * 8 }

// AppendSlot appends the bytes of a slot; they are the same for all copies.
// The value's length must be the scheme's.
func (s *Scheme) AppendSlot(b []byte, p slothash.KeyHash, value []byte) ([]byte, error) {
	if len(value) != s.cfg.Value {
		return b, ErrValueLen
	}
	b = binary.LittleEndian.AppendUint64(b, s.firstWord(p, value))
	for i := 1; i < int(s.words); i++ {
		b = binary.LittleEndian.AppendUint64(b, s.word(value, i))
	}
	return b, nil
}

// valueWord returns up to 8 bytes as a word, padded with zeros.
func valueWord(b []byte) uint64 {
	switch n := len(b); {
	case n >= 8:
		return binary.LittleEndian.Uint64(b)
	case n == 4: // the common value
		return uint64(binary.LittleEndian.Uint32(b))
	default:
		var w uint64
		for i := n - 1; i >= 0; i-- {
			w = w<<8 | uint64(b[i])
		}
		return w
	}
}

// word returns word i of the slot, from 1: the value after the part that the
// first word holds.
func (s *Scheme) word(value []byte, i int) uint64 { return valueWord(value[8*i-s.checksumBits/8:]) }

// firstWord returns the first word of the slot: the checksum below, the start of
// the value above.
func (s *Scheme) firstWord(p slothash.KeyHash, value []byte) uint64 {
	if s.rule.Prototype {
		return s.valueTop(value) | uint64(p.CRC)
	}
	return s.sealedFirstWord(p.Hash.Checksum(), value)
}

// sealedFirstWord is firstWord for Weft's slots: sum is the key's.
func (s *Scheme) sealedFirstWord(sum slothash.Checksum, value []byte) uint64 {
	top := s.valueTop(value)
	sum = sum.AddWord(top)
	for i := 1; i < int(s.words); i++ {
		sum = sum.AddWord(s.word(value, i))
	}
	return top | sum.Bits(s.mask)
}

// valueTop returns the part of the value in the first word, at its position.
func (s *Scheme) valueTop(value []byte) uint64 {
	if s.checksumBits == 32 {
		return valueWord(value[:min(4, len(value))]) << 32
	}
	return 0
}

// sumWord returns the checksum of a slot of one word.
func (s *Scheme) sumWord(p slothash.KeyHash, top uint64) uint64 {
	if s.rule.Prototype {
		return uint64(p.CRC)
	}
	return p.Hash.Checksum().AddWord(top).Bits(s.mask)
}
