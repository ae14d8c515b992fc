package dta

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/repro/dta/peer"
	wire "github.com/weft-telemetry/weft/wire/dta"
)

// rates are million reports per second that a core collects, from reports packed
// in memory to queryable storage.
type rates struct {
	parse               float64 // reports parsed and discarded
	hash, cuckoo, log   float64
	write, write2       float64 // Key-Write with N = 1 and 2
	postcard, append    float64
	scattered           float64 // postcards of 64 paths at a time, hop by hop
	appendKey           float64 // Append of a key and 4 bytes
	flows, reports, mib int
}

// fabricKey draws a flow between hosts of a fat-tree with k = 16.
func fabricKey(rng *rand.Rand) (k peer.Key) {
	for i := 0; i < 8; i += 4 {
		k[i], k[i+1], k[i+2], k[i+3] = 10, byte(rng.IntN(16)), byte(rng.IntN(8)), byte(2+rng.IntN(8))
	}
	binary.BigEndian.PutUint16(k[8:], uint16(32768+rng.IntN(28232)))
	binary.BigEndian.PutUint16(k[10:], uint16(rng.IntN(64)))
	k[12] = 6
	return k
}

// packReports packs reports side by side. For postcards, the five of a path
// follow each other, as the paper's do for its comparison. Where reports stand
// alone, an entry of a list has its key, and a postcard is a path of one hop.
func packReports(kind wire.Primitive, keys []peer.Key, order []uint32, copies uint8, alone bool) []byte {
	var run []byte
	data := make([]byte, 4)
	for i, flow := range order {
		r := wire.Report{Primitive: kind, Redundancy: copies}
		if kind == wire.Postcarding && alone {
			r.Path = 1
		} else if kind == wire.Postcarding {
			flow, r.Hop, r.Path = order[i/fiveHops], uint8(i%fiveHops), fiveHops
		}
		binary.BigEndian.PutUint32(data, uint32(i+1))
		r.Key, r.Data = keys[flow][:], data
		if alone && kind == wire.Append { // the second list has such entries
			r.Data, r.List = append(data[:4:4], keys[flow][:]...), 1
		}
		run = r.AppendTo(run)
	}
	return run
}

// byHop orders packed postcards of size bytes as five switches send them that report
// separately: those of the first hop of 64 paths, then those of the second.
func byHop(run []byte, size int) []byte {
	const paths = 64
	out := make([]byte, 0, len(run))
	for ; len(run) > 0; run = run[min(len(run), paths*fiveHops*size):] {
		block := run[:min(len(run), paths*fiveHops*size)]
		for hop := range fiveHops {
			for at := hop * size; at < len(block); at += fiveHops * size {
				out = append(out, block[at:at+size]...)
			}
		}
	}
	return out
}

// forEachReport parses a run of reports and calls do for each.
func forEachReport(run []byte, do func(r *wire.Report) bool) error {
	var r wire.Report
	for len(run) > 0 {
		n, err := r.Parse(run)
		if err != nil {
			return err
		}
		if !do(&r) {
			return fmt.Errorf("a collector is full")
		}
		run = run[n:]
	}
	return nil
}

// collectors measures all of them with reports of the same flows in the same
// order.
func collectors(ctx context.Context, o claim.Options) (rates, error) {
	out := rates{flows: o.Pick(1<<21, 1<<19), reports: o.Pick(1<<22, 1<<20), mib: o.Pick(1024, 256)}
	if o.Broken() {
		out.flows, out.reports, out.mib = 1<<16, 1<<17, 64
	}
	rng := claim.Rand(o.Seed, 7)
	keys, order := make([]peer.Key, out.flows), make([]uint32, out.reports)
	for i := range keys {
		keys[i] = fabricKey(rng)
	}
	for i := range order {
		order[i] = uint32(rng.IntN(len(keys)))
	}
	m := &timing{o: o}
	at := map[*float64]int{}
	measure := func(rate *float64, prepare func(), work func() error) {
		at[rate] = m.add(out.reports, prepare, work)
	}
	value := func(r *wire.Report) uint32 { return binary.BigEndian.Uint32(r.Data) }
	run := packReports(wire.KeyWrite, keys, order, 1, false)
	sum := uint32(0)
	measure(&out.parse, nil, func() error {
		return forEachReport(run,
			func(r *wire.Report) bool { sum += value(r); return true })
	})
	hash, cuckoo, log := peer.NewHash(out.flows), peer.NewCuckoo(out.flows), peer.NewLog(out.reports, out.flows)
	// All start empty in every round.
	measure(&out.hash, hash.Reset, func() error {
		return forEachReport(run, func(r *wire.Report) bool { return hash.Put((*peer.Key)(r.Key), value(r)) })
	})
	measure(&out.cuckoo, cuckoo.Reset, func() error {
		return forEachReport(run, func(r *wire.Report) bool { return cuckoo.Put((*peer.Key)(r.Key), value(r)) })
	})
	put := log.Put
	if o.Without(indexes) {
		bare := make([]peer.Record, 0, out.reports)
		put = func(r peer.Record) bool {
			bare = append(bare[:min(len(bare), out.reports-1)], r)
			return true
		}
	}
	measure(&out.log, log.Reset, func() error {
		return forEachReport(run, func(r *wire.Report) bool {
			return put(peer.Record{Key: peer.Key(r.Key), Value: value(r)})
		})
	})

	mem, err := weftMemory(int64(out.mib) << 20)
	if err != nil {
		return out, err
	}
	defer closeRegions(mem)
	local, err := translate.NewLocalWriter(mem, 0, false, nil)
	if err != nil {
		return out, err
	}
	tr, err := translate.New(translate.DefaultConfig(), local.Plan, local)
	if err != nil {
		return out, err
	}
	// All work of a worker on datagrams, once the kernel has delivered them.
	taken := func(run []byte) func() error {
		all := datagrams(run, len(run)/out.reports)
		return func() error {
			in, router := translate.NewIntake(1), translate.NewRouter(translate.Limiter{}, tr)
			for _, d := range all {
				in.HandleDatagram(0, netip.AddrPort{}, d, router, nil)
			}
			router.Flush(0)
			if st := in.Stats(); st.Stored != uint64(out.reports) {
				return fmt.Errorf("%d of %d reports were stored", st.Stored, out.reports)
			}
			return nil
		}
	}
	measure(&out.write, nil, taken(run))
	measure(&out.write2, nil, taken(packReports(wire.KeyWrite, keys, order, 2, false)))
	cards := packReports(wire.Postcarding, keys, order, 1, o.Without(gathering))
	measure(&out.postcard, nil, taken(cards))
	measure(&out.scattered, nil, taken(byHop(cards, len(cards)/out.reports)))
	measure(&out.append, nil, taken(packReports(wire.Append, keys, order, 1, false)))
	measure(&out.appendKey, nil, taken(packReports(wire.Append, keys, order, 1, true)))
	o.Report(0.1, "CPU collectors, Key-Write, Postcarding, Append")
	rates, err := m.rates()
	if err != nil || ctx.Err() != nil {
		return out, cmp.Or(err, ctx.Err())
	}
	for rate, i := range at {
		*rate = rates[i]
	}
	if hash.Len() != cuckoo.Len() || log.Len() != out.reports && !o.Without(indexes) || sum == 0 {
		return out, fmt.Errorf("hash table has %d keys, cuckoo table %d, log %d records of %d", hash.Len(), cuckoo.Len(),
			log.Len(), out.reports)
	}
	return out, nil
}

// weftMemory is the memory that the reports are stored in: size bytes of
// Key-Write and of Postcarding each, and a list of values and one of keys with
// values. The kernel has mapped all of it when it returns.
func weftMemory(size int64) (_ *translate.Memory, err error) {
	mem := &translate.Memory{}
	defer func() {
		if err != nil {
			closeRegions(mem)
		}
	}()
	kw, err := keywrite.Open("", keywrite.DefaultConfig(size))
	if err != nil {
		return nil, err
	}
	mem.KeyWrites = []*keywrite.Table{kw}
	if mem.Postcards, err = postcard.Open("", postcard.DefaultConfig(size)); err != nil {
		return nil, err
	}
	lists, err := list.Open("", list.Config{Layout: list.Weft, Batch: ofSixteen, Classes: []list.Class{
		{Lists: 1, Entry: 4, Capacity: 1 << 22}, {Lists: 1, Entry: 4 + peer.KeySize, Capacity: 1 << 22},
	}})
	if err != nil {
		return nil, err
	}
	mem.Lists = []*list.Table{lists}
	for _, r := range mem.Regions() {
		r.Prefault()
	}
	return mem, nil
}

func closeRegions(mem *translate.Memory) {
	for _, r := range mem.Regions() {
		_ = r.Close()
	}
}

// datagrams puts the headers of one reporter before packed reports of size bytes,
// as many to a datagram as the MTU allows.
func datagrams(run []byte, size int) (all [][]byte) {
	const payload = 1500 - 40 - 8 - wire.HeaderSize
	for seq := wire.Seq(0); len(run) > 0; {
		part := run[:min(len(run), payload/size*size)]
		run = run[len(part):]
		h := wire.Header{Reporter: 1, Seq: seq, Count: uint16(len(part) / size)}
		all = append(all, append(h.AppendTo(nil), part...))
		seq += wire.Seq(h.Count)
	}
	return all
}
