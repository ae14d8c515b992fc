package peer

import (
	"encoding/binary"
	"math/bits"

	"github.com/weft-telemetry/weft/model"
)

// IBLT is an invertible Bloom lookup table that counts packets without a filter
// in front: every packet is inserted anew, so a flow is in its cells as often as
// it had packets. Keys are therefore summed, not XORed, and a sum of hashes
// shows whether a cell holds a single flow.
type IBLT struct {
	tables int
	width  int // cells per sub-table
	seed   uint64
	cells  []ibltCell
}

type ibltCell struct {
	keys    sum128 // of 104-bit keys: 24 bits are left for carries
	hashes  uint64 // sum of 32-bit check hashes
	packets uint32
}

// sum128 is an integer modulo 2¹²⁸.
type sum128 struct{ hi, lo uint64 }

// IBLTFlow is a decoded flow.
type IBLTFlow struct {
	Key     model.FlowKey
	Packets uint32
}

// NewIBLT returns an empty table of tables sub-tables with cells cells in all.
func NewIBLT(tables, cells int, seed uint64) *IBLT {
	width := max(cells/tables, 1)
	return &IBLT{tables: tables, width: width, seed: seed, cells: make([]ibltCell, tables*width)}
}

// Add inserts packets of a flow. Their sum per cell must stay below 2²⁴.
func (t *IBLT) Add(key *model.FlowKey, packets uint32) {
	k := integer(key)
	sum := k.times(packets)
	check := uint64(t.check(k)) * uint64(packets)
	for i := range t.tables {
		c := &t.cells[t.cell(k, i)]
		c.keys = c.keys.plus(sum)
		c.hashes += check
		c.packets += packets
	}
}

// MaxPackets returns the largest packet count of a cell, which determines the
// width of the sums.
func (t *IBLT) MaxPackets() (most uint32) {
	for i := range t.cells {
		most = max(most, t.cells[i].packets)
	}
	return most
}

// IBLTCellBits returns the size of a cell that may count up to packets: both sums
// have as many bits more as packets has.
func IBLTCellBits(packets uint32, checkBits int) int {
	carry := bits.Len32(packets)
	return 8*KeyBytes + carry + checkBits + carry + 8*CounterBytes
}

// Decode removes all flows it can from the table and appends them to dst.
// complete reports whether the table is empty after that.
func (t *IBLT) Decode(dst []IBLTFlow) (flows []IBLTFlow, complete bool) {
	queue := make([]int32, 0, len(t.cells))
	for i := range t.cells {
		if t.cells[i].packets != 0 {
			queue = append(queue, int32(i))
		}
	}
	left := len(queue)
	for len(queue) > 0 {
		i := int(queue[len(queue)-1])
		queue = queue[:len(queue)-1]
		k, ok := t.pure(i)
		if !ok {
			continue
		}
		n := t.cells[i].packets
		sum := k.times(n)
		check := uint64(t.check(k)) * uint64(n)
		for j := range t.tables {
			at := t.cell(k, j)
			c := &t.cells[at]
			c.keys = c.keys.minus(sum)
			c.hashes -= check
			c.packets -= n
			if c.packets == 0 {
				left--
			} else {
				queue = append(queue, int32(at))
			}
		}
		dst = append(dst, IBLTFlow{k.key(), n})
	}
	return dst, left == 0
}

// pure reports whether cell i holds one flow, and which.
func (t *IBLT) pure(i int) (k sum128, ok bool) {
	c := &t.cells[i]
	if c.packets == 0 {
		return k, false
	}
	k, rest := c.keys.over(uint64(c.packets))
	return k, rest == 0 && k.hi < 1<<40 &&
		uint64(t.check(k))*uint64(c.packets) == c.hashes && t.cell(k, i/t.width) == i
}

func (t *IBLT) cell(k sum128, table int) int {
	h := mix(k.hi^t.seed, k.lo^uint64(2*table+1)*0x9e3779b97f4a7c15)
	at, _ := bits.Mul64(h, uint64(t.width))
	return table*t.width + int(at)
}

func (t *IBLT) check(k sum128) uint32 { return uint32(mix(k.hi+t.seed, ^k.lo) >> 32) }

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0xa0761d6478bd642f, b^0xe7037ed1a0b428db)
	hi, lo = bits.Mul64(hi^lo^0x8ebc6af09c88c6e3, lo^0x589965cc75374cc3)
	return hi ^ lo
}

// integer reads the canonical bytes of an IPv4 key as a number of 104 bits.
func integer(key *model.FlowKey) sum128 {
	hi := key.Src.Lo<<8&0xff_ffff_ff00 | key.Dst.Lo>>24&0xff
	lo := key.Dst.Lo<<40 | uint64(key.SrcPort)<<24 | uint64(key.DstPort)<<8 | uint64(key.Proto)
	return sum128{hi, lo}
}

func (a sum128) key() (key model.FlowKey) {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], a.hi)
	binary.BigEndian.PutUint64(b[8:], a.lo)
	if err := key.Parse(b[3:]); err != nil {
		panic("13 bytes are a key: " + err.Error())
	}
	return key
}

func (a sum128) plus(b sum128) sum128 {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(a.hi, b.hi, carry)
	return sum128{hi, lo}
}

func (a sum128) minus(b sum128) sum128 {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, borrow)
	return sum128{hi, lo}
}

func (a sum128) times(n uint32) sum128 {
	hi, lo := bits.Mul64(a.lo, uint64(n))
	return sum128{hi + a.hi*uint64(n), lo}
}

func (a sum128) over(n uint64) (quotient sum128, rest uint64) {
	quotient.hi, rest = a.hi/n, a.hi%n
	quotient.lo, rest = bits.Div64(rest, a.lo, n)
	return quotient, rest
}

// Clone copies the table, which Decode empties.
func (t *IBLT) Clone() *IBLT {
	c := *t
	c.cells = append([]ibltCell(nil), t.cells...)
	return &c
}
