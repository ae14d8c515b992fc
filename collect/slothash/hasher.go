package slothash

import "errors"

// ErrKeyLen is returned for a key that a Rule has no place for.
var ErrKeyLen = errors.New("slothash: a key has at least 1 byte, with the prototype 4")

// Rule tells where the keys of a table lie: by Weft's hash, or as the
// prototype has them.
type Rule struct {
	Seed      uint64 // of the hash
	Prototype bool
}

// Key is a key as a Rule knows it, hashed once for all copies.
type Key struct {
	Hash Hash
	CRC  CRC // the prototype's
}

// Check reports whether keys of so many bytes have places.
func (r Rule) Check(keyLen int) error {
	if keyLen < 1 || r.Prototype && keyLen != PrototypeKey {
		return ErrKeyLen
	}
	return nil
}

// Key hashes a key.
func (r Rule) Key(key []byte) (Key, error) {
	if err := r.Check(len(key)); err != nil {
		return Key{}, err
	}
	if r.Prototype {
		return Key{CRC: Prototype([PrototypeKey]byte(key))}, nil
	}
	return Key{Hash: Of(key, r.Seed)}, nil
}

// Slot returns the place of copy n among slots.
func (r Rule) Slot(k Key, n int, slots uint64) uint64 {
	if r.Prototype {
		return k.CRC.Slot(n, slots)
	}
	return k.Hash.Slot(n, slots)
}

// Cell returns the place of copy n among cells: see Hash.Cell. The prototype's
// are slots.
func (r Rule) Cell(k Key, n int, cells uint64) uint64 {
	if r.Prototype {
		return k.CRC.Slot(n, cells)
	}
	return k.Hash.Cell(n, cells)
}
