package slothash

import "errors"

// ErrKeyLen is returned for a key of a length that a Hasher does not accept.
var ErrKeyLen = errors.New("slothash: key length, want at least 1 byte, with the prototype's layout 4")

// Hasher maps the keys of a table to slots: with Weft's hash, or with the
// prototype's.
type Hasher struct {
	Seed      uint64 // of the hash
	Prototype bool
}

// KeyHash is the hash of a key, computed once for all copies.
type KeyHash struct {
	Hash Hash
	CRC  PrototypeCRC // with the prototype's layout
}

// CheckKeyLen returns an error if keys of keyLen bytes are not accepted.
func (r Hasher) CheckKeyLen(keyLen int) error {
	if keyLen < 1 || r.Prototype && keyLen != PrototypeKeyLen {
		return ErrKeyLen
	}
	return nil
}

// HashKey hashes a key.
func (r Hasher) HashKey(key []byte) (KeyHash, error) {
	if err := r.CheckKeyLen(len(key)); err != nil {
		return KeyHash{}, err
	}
	if r.Prototype {
		return KeyHash{CRC: HashPrototype([PrototypeKeyLen]byte(key))}, nil
	}
	return KeyHash{Hash: HashKey(key, r.Seed)}, nil
}

// Slot returns the slot index of copy n.
func (r Hasher) Slot(k KeyHash, n int, slots uint64) uint64 {
	if r.Prototype {
		return k.CRC.Slot(n, slots)
	}
	return k.Hash.Slot(n, slots)
}

// Cell returns the cell index of copy n: see Hash.Cell. With the prototype's
// layout cells are slots.
func (r Hasher) Cell(k KeyHash, n int, cells uint64) uint64 {
	if r.Prototype {
		return k.CRC.Slot(n, cells)
	}
	return k.Hash.Cell(n, cells)
}
