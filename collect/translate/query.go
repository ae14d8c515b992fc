package translate

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-telemetry/weft/wire/dta"
)

// Query is a standing query: report the key and the path of every packet whose
// hop values sum to more than a bound. The answers are Match entries of a list,
// and the collector's program is notified of each.
//
// Postcards carry the summed quantity, such as a latency, in some bits of their
// value; the path is reported with whole values.
type Query struct {
	Shift uint8 // lowest bit of the summed field
	Bits  uint8 // its width, 1 to 32
	Above uint64
	List  dta.ListID // with entries of at least MatchSize bytes
}

// Check returns an error for bits that no value has, and for a list that cannot
// hold the answers.
func (q Query) Check(plan *Plan) error {
	if q.Bits < 1 || int(q.Shift)+int(q.Bits) > 32 {
		return fmt.Errorf("translate: query sums bits %d to %d, want 1 to 32 bits of a value",
			q.Shift, int(q.Shift)+int(q.Bits))
	}
	if plan.Postcards == nil {
		return fmt.Errorf("translate: query needs memory for postcards")
	}
	i, id := plan.listIndex(q.List)
	if i < 0 {
		return fmt.Errorf("translate: query answers to list %d, which does not exist", q.List)
	}
	class, _ := plan.Lists[i].Class(id)
	if want := MatchSize(plan.Postcards.Config().Hops); class.Entry < want {
		return fmt.Errorf("translate: query answers to list %d with entries of %d bytes, want at least %d",
			q.List, class.Entry, want)
	}
	return nil
}

// matches reports whether a complete path matches, and returns its sum.
func (q Query) matches(p *Path) (sum uint64, ok bool) {
	for _, v := range p.hops() {
		sum += uint64(v >> q.Shift & (1<<q.Bits - 1))
	}
	return sum, sum > q.Above
}

// Match is one match of a Query.
type Match struct {
	Key  []byte
	Sum  uint64
	Path []uint32 // values of the hops
}

// matchHead is the length of the fields before the hops: key length, hops,
// padding, key, sum.
const matchHead = 4 + (dta.MaxKey+3)&^3 + 8

// MatchSize is the length of a Match in a list for paths of at most that number
// of hops.
func MatchSize(hops int) int { return matchHead + 4*hops }

// AppendTo appends the encoded match.
func (m Match) AppendTo(b []byte) []byte {
	b = append(b, byte(len(m.Key)), byte(len(m.Path)), 0, 0)
	var key [matchHead - 4 - 8]byte
	copy(key[:], m.Key)
	b = append(b, key[:]...)
	b = binary.BigEndian.AppendUint64(b, m.Sum)
	for _, v := range m.Path {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

// ParseMatch decodes an entry of a query's list, with trailing zeros. Key aliases
// it.
func ParseMatch(e []byte) (Match, error) {
	if len(e) < matchHead || int(e[0]) > dta.MaxKey || len(e) < MatchSize(int(e[1])) {
		return Match{}, fmt.Errorf("translate: %d bytes are not a query match", len(e))
	}
	m := Match{Key: e[4 : 4+e[0] : 4+e[0]], Sum: binary.BigEndian.Uint64(e[matchHead-8:])}
	for i := range int(e[1]) {
		m.Path = append(m.Path, binary.BigEndian.Uint32(e[matchHead+4*i:]))
	}
	return m, nil
}
