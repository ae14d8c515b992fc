// Package lpm is a longest-prefix-match table. It has one hash table per prefix
// length: fabrics use a handful of lengths, and deleting from a hash table is as
// easy as inserting.
package lpm

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/weft-telemetry/weft/model"
)

// Table maps prefixes to values. The zero value is empty and ready to use.
// Concurrent reads are safe; a writer needs exclusive access.
//
// IPv4 and IPv6 are separate spaces: ::/0 does not match an IPv4 address,
// although the mapped form would.
type Table[V any] struct {
	v4, v6 []level[V] // longest first
}

// level is all prefixes of one length. Invariant: values is never empty.
type level[V any] struct {
	bits   int
	mask   model.Addr
	values map[model.Addr]V
}

// Set sets the value of the prefix. Host bits of the prefix are ignored. The
// prefix must be valid.
func (t *Table[V]) Set(p netip.Prefix, v V) {
	levels, bits, base := t.space(p)
	i, found := find(*levels, bits)
	if !found {
		*levels = slices.Insert(*levels, i, level[V]{bits, mask(bits), make(map[model.Addr]V)})
	}
	l := &(*levels)[i]
	l.values[and(base, l.mask)] = v
}

// Get returns the value of exactly this prefix.
func (t *Table[V]) Get(p netip.Prefix) (v V, ok bool) {
	levels, bits, base := t.space(p)
	i, found := find(*levels, bits)
	if !found {
		return v, false
	}
	v, ok = (*levels)[i].values[and(base, (*levels)[i].mask)]
	return v, ok
}

// Delete removes exactly this prefix and reports whether it was there.
func (t *Table[V]) Delete(p netip.Prefix) bool {
	levels, bits, base := t.space(p)
	i, found := find(*levels, bits)
	if !found {
		return false
	}
	l := &(*levels)[i]
	key := and(base, l.mask)
	if _, ok := l.values[key]; !ok {
		return false
	}
	delete(l.values, key)
	if len(l.values) == 0 {
		*levels = slices.Delete(*levels, i, i+1)
	}
	return true
}

// Lookup returns the value of the longest prefix that matches a. It allocates
// nothing.
func (t *Table[V]) Lookup(a model.Addr) (v V, ok bool) {
	levels := t.v6
	if a.Is4() {
		levels = t.v4
	}
	for i := range levels {
		if v, ok := levels[i].values[and(a, levels[i].mask)]; ok {
			return v, true
		}
	}
	return v, false
}

// Empty reports whether the table holds no prefix.
func (t *Table[V]) Empty() bool { return len(t.v4)+len(t.v6) == 0 }

// space returns the levels of the prefix's family, its length in the 128-bit
// form, and its address.
func (t *Table[V]) space(p netip.Prefix) (levels *[]level[V], bits int, base model.Addr) {
	if p.Addr().Is4() {
		return &t.v4, p.Bits() + 96, model.AddrOf(p.Addr())
	}
	return &t.v6, p.Bits(), model.AddrOf(p.Addr())
}

func find[V any](levels []level[V], bits int) (int, bool) {
	return slices.BinarySearchFunc(levels, bits, func(l level[V], bits int) int { return cmp.Compare(bits, l.bits) })
}

func mask(bits int) model.Addr {
	const ones = ^uint64(0)
	if bits <= 64 {
		return model.Addr{Hi: ^(ones >> bits)}
	}
	return model.Addr{Hi: ones, Lo: ^(ones >> (bits - 64))}
}

func and(a, b model.Addr) model.Addr { return model.Addr{Hi: a.Hi & b.Hi, Lo: a.Lo & b.Lo} }
