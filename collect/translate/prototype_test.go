package translate

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/weft-telemetry/weft/collect/count"
	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/wire/dta"
)

// published is the memory layout of the public prototype's collector, a reference
// implementation of its description: CRC-32s over key bytes in reverse order,
// checksum before data, one chunk of 32 bytes per path, rings of words in the
// host's byte order.
type published struct {
	values, counters, paths []byte
	lists                   [2][]byte
	heads                   [2]int
	gathered                map[uint32][]uint32
}

const (
	protoSlots = 64
	protoRing  = 8
)

func crcOf(table *crc32.Table, b ...byte) uint32 { return crc32.Checksum(b, table) }

// turned is a key in the byte order of an x86 host.
func turned(key uint32) []byte { return binary.LittleEndian.AppendUint32(nil, key) }

func (p *published) take(r *dta.Report) {
	switch r.Primitive {
	case dta.KeyWrite, dta.KeyIncrement:
		k := turned(binary.BigEndian.Uint32(r.Key))
		for n := range r.Redundancy {
			slot := int(crcOf(crc32.IEEETable, append(k[:4:4], n)...) & (protoSlots - 1))
			if r.Primitive == dta.KeyIncrement {
				at := p.counters[slot*8:]
				binary.LittleEndian.PutUint64(at, binary.LittleEndian.Uint64(at)+r.Delta)
				continue
			}
			binary.LittleEndian.PutUint32(p.values[slot*8:], crcOf(crc32.IEEETable, k...))
			copy(p.values[slot*8+4:], r.Data)
		}
	case dta.Append:
		at := p.heads[r.List] % protoRing * 4
		binary.LittleEndian.PutUint32(p.lists[r.List][at:], binary.BigEndian.Uint32(r.Data))
		p.heads[r.List]++
	case dta.Postcarding:
		key := binary.BigEndian.Uint32(r.Key)
		if p.gathered[key] == nil {
			p.gathered[key] = make([]uint32, 5)
		}
		p.gathered[key][r.Hop] = binary.BigEndian.Uint32(r.Data)
		if r.Hop < 4 {
			return
		}
		at := p.paths[crcOf(crc32.IEEETable, r.Key...)&(protoSlots-1)*32:]
		for hop, poly := range []uint32{0x1e12a700, 0x65b96595, 0x49cf878b, 0x36518f0d, 0x7a40a908} {
			mask := crcOf(crc32.MakeTable(bits.Reverse32(poly)), r.Key...)
			binary.BigEndian.PutUint32(at[4*hop:], p.gathered[key][hop]^mask)
		}
		clear(at[20:32])
		delete(p.gathered, key)
	}
}

// TestPrototypeByteForByte feeds datagrams of the prototype, in both layouts,
// and compares memory with what its own translator and collector would hold.
func TestPrototypeByteForByte(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(1, seed))
		mem := &Memory{}
		kw, err1 := keywrite.Open("", keywrite.Config{Layout: keywrite.Prototype, Slots: protoSlots, Value: 4, Check: 32})
		ki, err2 := count.Open("", count.Config{Layout: count.Prototype, Cells: protoSlots})
		pc, err3 := postcard.Open("", postcard.Config{Layout: postcard.Prototype, Chunks: protoSlots, Hops: 5, Bits: 32})
		mem.KeyWrites, mem.Counts, mem.Postcards = []*keywrite.Table{kw}, ki, pc
		for range 2 {
			l, err := list.Open("", list.Config{Layout: list.Prototype, Batch: 4, Classes: []list.Class{{Lists: 1, Entry: 4, Capacity: protoRing}}})
			if err != nil {
				t.Fatal(err)
			}
			mem.Lists = append(mem.Lists, l)
		}
		defer func() {
			for _, r := range mem.Regions() {
				r.Close()
			}
		}()
		if err1 != nil || err2 != nil || err3 != nil {
			t.Fatal(err1, err2, err3)
		}
		out, err := NewLocalWriter(mem, 0, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := New(DefaultConfig(), out.Plan, out)
		if err != nil {
			t.Fatal(err)
		}
		reference := published{
			values: make([]byte, protoSlots*8), counters: make([]byte, protoSlots*8), paths: make([]byte, protoSlots*32),
			lists: [2][]byte{make([]byte, protoRing*4), make([]byte, protoRing*4)}, gathered: map[uint32][]uint32{},
		}
		in, router := NewIntake(10), NewRouter(Limiter{}, tr)
		seq := uint8(r.Uint32())
		send := func(rep dta.Report) {
			p := dta.Prototype{Layout: dta.Layout(2 + r.IntN(2)), Seq: seq, Report: rep}
			p.Report.Retransmit = p.Layout == dta.Base3
			if p.Layout == dta.Base3 {
				seq++
			}
			if answer := in.HandleDatagram(0, peer, p.AppendTo(nil), router, nil); len(answer) > 0 {
				t.Fatalf("%+v is answered by %x", p, answer)
			}
			reference.take(&p.Report)
		}
		for range 500 {
			key := binary.BigEndian.AppendUint32(nil, r.Uint32N(100)*0x01010101)
			data := binary.BigEndian.AppendUint32(nil, r.Uint32N(1<<32-1))
			copies := uint8(1 + r.IntN(4))
			switch r.IntN(4) {
			case 0:
				send(dta.Report{Primitive: dta.KeyWrite, Redundancy: copies, Key: key, Data: data})
			case 1:
				send(dta.Report{Primitive: dta.KeyIncrement, Redundancy: copies, Key: key, Delta: uint64(data[0])})
			case 2:
				send(dta.Report{Primitive: dta.Append, List: dta.ListID(copies % 2), Data: data})
			case 3:
				for hop := range uint8(5) {
					send(dta.Report{Primitive: dta.Postcarding, Redundancy: 1, Key: key, Hop: hop, Data: data})
				}
			}
		}
		router.Flush(0)
		tr.Drain(0)
		for i, want := range [][]byte{reference.values, reference.counters, reference.paths, reference.lists[0], reference.lists[1]} {
			got := make([]byte, len(want))
			reg := mem.Regions()[i]
			if err := reg.Read(0, got); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("seed %d: %s %d holds\n%x\nwant, as the prototype,\n%x", seed, reg.Header().Kind, i, got, want)
			}
		}
	}
}
