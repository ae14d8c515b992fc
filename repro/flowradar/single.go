package flowradar

import (
	"math/rand/v2"

	"github.com/weft-telemetry/weft/sketch"
)

// encodeSet encodes flows as a switch would, one packet of each.
func encodeSet(g sketch.Geometry, keys []sketch.Key4, seed uint64) (*sketch.Set[sketch.Key4], error) {
	set, err := sketch.NewSet[sketch.Key4](g, seed)
	if err != nil {
		return nil, err
	}
	for i := range keys {
		if h, fresh := set.AddPacket(&keys[i], 1000); fresh {
			set.InsertFlow(&keys[i], h, 0, 0)
		}
	}
	return set, nil
}

// singleDecodes reports whether SingleDecode finds all of n random flows: each of
// them, with its count, and nothing else.
func singleDecodes(g sketch.Geometry, n int, rng *rand.Rand) (bool, error) {
	keys := make([]sketch.Key4, n)
	var want, got uint64
	for i, k := range randomKeys(rng, n) {
		keys[i] = sketch.Pack4(&k)
		want += digest(&keys[i], 1)
	}
	set, err := encodeSet(g, keys, rng.Uint64())
	if err != nil {
		return false, err
	}
	var p sketch.Peeler[sketch.Key4]
	found := p.Peel(set.Family(), set.Filter(), set.AppendCells(nil), func(f *sketch.Cell[sketch.Key4]) {
		got += digest(&f.Key, f.Packets)
	})
	return found == n && got == want, nil
}

// digest mixes a flow and its count into a word. Two lists of as many flows
// whose digests have the same sum are the same list, but for one chance in 2⁶⁴.
func digest(k *sketch.Key4, packets uint64) uint64 {
	x := (k[0]^0x9e3779b97f4a7c15)*0xbf58476d1ce4e5b9 ^ k[1]
	x = (x^x>>32)*0x94d049bb133111eb + packets
	x = (x ^ x>>29) * 0xbf58476d1ce4e5b9
	return x ^ x>>32
}

// singleTrial is singleDecodes for claim.Trials.
func singleTrial(g sketch.Geometry, n int) func(rng *rand.Rand) (bool, error) {
	return func(rng *rand.Rand) (bool, error) { return singleDecodes(g, n, rng) }
}
