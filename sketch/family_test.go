package sketch

import (
	"math/big"
	mathbits "math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

// TestFamilyIsAsDocumented works out a flow's positions with big numbers, step
// by step as docs/formats/flowset.md has them, from the canonical bytes of the
// key. Switches that are not written in Go follow that page.
func TestFamilyIsAsDocumented(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := Geometry{
			FilterHashes: uint8(4 * rapid.IntRange(1, 63).Draw(t, "groups")),
			FilterBits:   uint32(64 * rapid.IntRange(1, 1<<12).Draw(t, "words")),
			Tables:       uint8(rapid.IntRange(1, 4).Draw(t, "tables")),
			TableCells:   uint32(rapid.IntRange(1, 1<<24).Draw(t, "cells")),
		}
		seed := rapid.Uint64().Draw(t, "seed")
		f, err := NewFamily(g, seed)
		if err != nil {
			t.Fatal(err)
		}
		key := anyKey(t, rapid.SampledFrom([]int{model.KeyLen4, model.KeyLen6}).Draw(t, "length"))
		var h Hash
		if key.V6 {
			k := Pack6(&key)
			h = HashOf(&f, &k)
		} else {
			k := Pack4(&key)
			h = HashOf(&f, &k)
		}
		bits, cells := documented(g, seed, key.AppendTo(nil))
		filter := NewFilter(g)
		filter.Add(&f, h)
		set := 0
		for _, w := range filter {
			set += mathbits.OnesCount64(w)
		}
		if set != len(bits) {
			t.Fatalf("%d bits of %v under seed %d are set; want %d", set, key, seed, len(bits))
		}
		for at := range bits {
			if filter[at/64]>>(at%64)&1 == 0 {
				t.Fatalf("bit %d of %v under seed %d is clear; want it set", at, key, seed)
			}
		}
		var got []uint32
		for table := range int(g.Tables) {
			got = append(got, f.Cell(h, table))
		}
		if !slices.Equal(got, cells) {
			t.Fatalf("cells of %v under seed %d = %v; want %v", key, seed, got, cells)
		}
	})
}

// documented returns a flow's filter bits and cells.
func documented(g Geometry, seed uint64, canonical []byte) (bits map[uint32]bool, cells []uint32) {
	draw := func() uint64 { // SplitMix64
		seed += 0x9e3779b97f4a7c15
		z := seed
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
	s := [4]uint64{draw(), draw(), draw(), draw()}
	var patterns [256]map[uint64]bool
	for i := range patterns {
		patterns[i] = map[uint64]bool{}
		for len(patterns[i]) < 4 {
			patterns[i][draw()/(1<<58)] = true
		}
	}
	var k []uint64
	for len(canonical) > 0 {
		word := make([]byte, 8)
		canonical = canonical[copy(word, canonical):]
		k = append(k, new(big.Int).SetBytes(word).Uint64())
	}
	hi, lo := product(k[0]^s[0], k[1]^s[1])
	for _, word := range k[2:] {
		hi, lo = product(lo^word^s[2], hi^s[3])
	}
	ah, al := product(lo^s[2], hi^s[3])
	bh, bl := product(lo^s[3], hi^s[0])
	a, b := ah^al, bh^bl

	bits = map[uint32]bool{}
	for j := range uint64(g.FilterHashes / 4) {
		word, at := product(a+j*b, uint64(g.FilterBits/64))
		for p := range patterns[at>>56] {
			bits[uint32(word*64+(p+at>>50)%64)] = true
		}
	}
	for t, part := range []uint64{a % (1 << 32), a / (1 << 32), b % (1 << 32), b / (1 << 32)}[:g.Tables] {
		cells = append(cells, uint32(t)*g.TableCells+uint32(part*uint64(g.TableCells)/(1<<32)))
	}
	return bits, cells
}

// product is the 128-bit product.
func product(x, y uint64) (hi, lo uint64) {
	p := new(big.Int).Mul(new(big.Int).SetUint64(x), new(big.Int).SetUint64(y))
	mod := new(big.Int).Lsh(big.NewInt(1), 64)
	h, l := new(big.Int).DivMod(p, mod, new(big.Int))
	return h.Uint64(), l.Uint64()
}
