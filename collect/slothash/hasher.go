package slothash

import "errors"

// ErrKeyLen is returned for a key that a Rule has no place for.
var ErrKeyLen = errors.New("slothash: a key has at least 1 byte, with the prototype 4")

// Hasher tells where the keys of a table lie: by Weft's hash, or as the
// prototype has them.
type Hasher struct {
	Seed      uint64 // of the hash
	Prototype bool
}

// Key is a key as a Rule knows it, hashed once for all copies.
type KeyHash struct {
	Hash Hash
	CRC  PrototypeCRC // the prototype's
}

// CheckKeyLen reports whether keys of so many bytes have places.
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

// Slot returns the place of copy n among slots.
func (r Hasher) Slot(k KeyHash, n int, slots uint64) uint64 {
	if r.Prototype {
		return k.CRC.Slot(n, slots)
	}
	return k.Hash.Slot(n, slots)
}

// Cell returns the place of copy n among cells: see Hash.Cell. The prototype's
// are slots.
func (r Hasher) Cell(k KeyHash, n int, cells uint64) uint64 {
	if r.Prototype {
		return k.CRC.Slot(n, cells)
	}
	return k.Hash.Cell(n, cells)
}
