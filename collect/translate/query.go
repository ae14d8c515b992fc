package translate

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-telemetry/weft/wire/dta"
)

// Query is a question that is known before the reports are: tell the key and
// the path of every packet whose hops, summed up, exceed a bound. The answers
// are Match entries of a list, and the collector's program is told of each.
//
// Postcards that answer it carry the summed quantity, such as a latency, in
// some bits of their value; the path is told with whole values.
type Query struct {
	Shift uint8 // lowest bit of the summed field
	Bits  uint8 // its width, 1 to 32
	Above uint64
	List  dta.ListID // with entries of MatchSize bytes
}

func (q Query) check(cfg Config) error {
	if q.Bits < 1 || q.Shift+q.Bits > 32 {
		return fmt.Errorf("translate: query sums bits %d to %d, want 1 to 32 bits of a value", q.Shift, int(q.Shift)+int(q.Bits))
	}
	for _, l := range cfg.Lists {
		if l.ID == q.List {
			if want := MatchSize(cfg.Hops); l.Entry != want {
				return fmt.Errorf("translate: query answers to list %d with entries of %d bytes, want %d", q.List, l.Entry, want)
			}
			return nil
		}
	}
	return fmt.Errorf("translate: query answers to list %d, which is not served", q.List)
}

// answers tells whether a complete path is an answer, and its sum.
func (q Query) answers(p *Path) (sum uint64, ok bool) {
	for _, v := range p.hops() {
		sum += uint64(v >> q.Shift & (1<<q.Bits - 1))
	}
	return sum, sum > q.Above
}

// Match is one answer to a Query.
type Match struct {
	Key  []byte
	Sum  uint64
	Path []uint32 // values of the hops
}

// matchHead is what precedes the hops: key length, hops, padding, key, sum.
const matchHead = 4 + (dta.MaxKey+3)&^3 + 8

// MatchSize is the length of a Match in a list for paths of up to so many
// hops.
func MatchSize(hops int) int { return matchHead + 4*hops }

// appendTo appends m in the size for so many hops.
func (m Match) appendTo(b []byte, hops int) []byte {
	at := len(b)
	b = append(b, make([]byte, MatchSize(hops))...)
	e := b[at:]
	e[0], e[1] = byte(len(m.Key)), byte(len(m.Path))
	copy(e[4:], m.Key)
	binary.BigEndian.PutUint64(e[matchHead-8:], m.Sum)
	for i, v := range m.Path {
		binary.BigEndian.PutUint32(e[matchHead+4*i:], v)
	}
	return b
}

// ParseMatch decodes an entry of a query's list.
func ParseMatch(e []byte) (Match, error) {
	if len(e) < matchHead || int(e[0]) > dta.MaxKey || len(e) < MatchSize(int(e[1])) {
		return Match{}, fmt.Errorf("translate: %d bytes are no answer to a query", len(e))
	}
	m := Match{Key: e[4 : 4+e[0] : 4+e[0]], Sum: binary.BigEndian.Uint64(e[matchHead-8:])}
	for i := range int(e[1]) {
		m.Path = append(m.Path, binary.BigEndian.Uint32(e[matchHead+4*i:]))
	}
	return m, nil
}
