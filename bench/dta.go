package bench

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/weft-telemetry/weft/collect/count"
	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/model"
)

var dtaSuite = Suite{
	Name:  "dta",
	About: "reports into queryable memory, beside what memory itself and other stores can take",
	Input: "packed version 1 reports of IPv4 flow keys and 4-byte values; 1 GiB each, one core",
	run: func(ctx context.Context) ([]Result, error) {
		var results []Result
		for _, measure := range []func(context.Context) ([]Result, error){
			keyWriteBesideRaw, postcardsBesideRaw, appendBesideCopy, incrementBesideRaw, wireBesidePeers,
		} {
			r, err := measure(ctx)
			if err != nil {
				return nil, err
			}
			results = append(results, r...)
		}
		return results, nil
	},
}

const (
	dtaMemory  = 1 << 30
	dtaReports = 1 << 15
	dtaHead    = 4   // bytes in front of the key of a version 1 report
	dtaBatch   = 512 // reports that UDP GRO delivers at once, about ten datagrams
	mapKeys    = 1 << 22
	dtaCopies  = 2
	keySize    = model.KeyLen4
	writeSize  = dtaHead + keySize + 4
	addSize    = dtaHead + keySize + 8
	pathSize   = keySize + 5*4
)

// dtaInput is reports as a collector has them: side by side in buffers that
// were filled just before, dtaBatch at once. Each pass through a buffer
// has keys of its own, so that the memory behind them is that of all keys.
type dtaInput struct {
	buf  []byte
	size int // of a report
	key  int // where its key lies
	next int // the report to take next
	pass uint64
}

func newDTAInput(size, key int) *dtaInput {
	in := &dtaInput{buf: make([]byte, dtaReports*size), size: size, key: key}
	in.fill()
	return in
}

// fill sets the keys of a pass: the addresses of a flow count, its ports stay.
func (in *dtaInput) fill() {
	for i := range dtaReports {
		binary.LittleEndian.PutUint64(in.buf[i*in.size+in.key:], uint64(i)|in.pass<<32)
	}
}

// batches calls f with one batch of reports after the other, about n in all.
func (in *dtaInput) batches(n int, f func(reports []byte) error) {
	for range (n + dtaBatch - 1) / dtaBatch {
		if err := f(in.buf[in.next*in.size:][:dtaBatch*in.size]); err != nil {
			panic("bench: " + err.Error())
		}
		if in.next += dtaBatch; in.next == dtaReports {
			in.next = 0
			in.pass++
			in.fill()
		}
	}
}

// into is a side that gives batches to the writer of a structure.
func (in *dtaInput) into(write func(reports []byte) (int, error)) side {
	return func(n int) {
		in.batches(n, func(reports []byte) error {
			_, err := write(reports)
			return err
		})
	}
}

// beside readies the memory of a structure and as much without one. done closes
// both.
func beside(mem *region.Region) (words []uint64, done func(), err error) {
	raw, err := region.Open(region.Config{Kind: "raw", Size: dtaMemory})
	if err != nil {
		return nil, nil, errors.Join(err, mem.Close())
	}
	mem.Touch()
	raw.Touch()
	return raw.Words(), func() { _, _ = mem.Close(), raw.Close() }, nil
}

// perSecond turns nanoseconds into millions a second.
func perSecond(ns float64) float64 { return 1e3 / ns }

// dtaSeed starts the random places of raw memory.
const dtaSeed = uint64(88172645463325252)

func keyWriteBesideRaw(ctx context.Context) ([]Result, error) {
	t, err := keywrite.Open("", keywrite.DefaultConfig(dtaMemory))
	if err != nil {
		return nil, err
	}
	words, done, err := beside(t.Region())
	if err != nil {
		return nil, err
	}
	defer done()
	plain := make(map[[keySize]byte]uint32, mapKeys)
	w, state := t.Writer(0), dtaSeed
	written, put, asked := newDTAInput(writeSize, dtaHead), newDTAInput(writeSize, dtaHead), newDTAInput(keySize, 0)
	ns, err := race(ctx, written.into(func(reports []byte) (int, error) {
		return w.WriteRun(reports, dtaHead, keySize, dtaCopies)
	}), func(n int) {
		x := state
		for range n {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			words[x&(dtaMemory/8-1)] = x
			words[x>>32&(dtaMemory/8-1)] = x
		}
		state = x
	}, func(n int) {
		put.batches(n, func(r []byte) error {
			for ; len(r) > 0; r = r[writeSize:] {
				plain[[keySize]byte(r[dtaHead:])] = binary.LittleEndian.Uint32(r[writeSize-4:])
			}
			if len(plain) >= mapKeys { // go through the same keys again
				put.pass = 0
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	weft, limit, gomap := perSecond(ns[0]), perSecond(ns[1]), perSecond(ns[2])
	results := []Result{
		more("Key-Write, N=2", weft, "M/s", "two random 8-byte writes", limit, 0.8),
		more("Key-Write, N=2", weft, "M/s", "presized Go map", gomap, 6),
	}
	found := 0
	dst := make([]byte, 0, 64)
	ns, err = race(ctx, func(n int) {
		asked.batches(n, func(keys []byte) error {
			if asked.pass >= written.pass { // all that was written
				asked.pass = 0
			}
			return t.LookupAll(dst, keys, keySize, keywrite.Query{Copies: dtaCopies}, func(_ int, a keywrite.Answer) {
				if a.Outcome == keywrite.Found {
					found++
				}
			})
		})
	}, func(n int) {
		x, sum := state, uint64(0)
		for range n {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			sum += words[x&(dtaMemory/8-1)]
			sum += words[x>>32&(dtaMemory/8-1)]
		}
		state = x ^ sum&1
	})
	if err != nil {
		return nil, err
	}
	if found == 0 {
		return nil, errors.New("bench: no key was found")
	}
	return append(results, more("Key-Write queries, N=2", perSecond(ns[0]), "M/s", "two random 8-byte reads", perSecond(ns[1]), 0.3)), nil
}

func postcardsBesideRaw(ctx context.Context) ([]Result, error) {
	t, err := postcard.Open("", postcard.DefaultConfig(dtaMemory))
	if err != nil {
		return nil, err
	}
	words, done, err := beside(t.Region())
	if err != nil {
		return nil, err
	}
	defer done()
	w, state := t.Writer(0), dtaSeed
	in := newDTAInput(pathSize, 0)
	ns, err := race(ctx, in.into(func(rows []byte) (int, error) { return w.WriteRun(rows, keySize, 1) }), func(n int) {
		x := state
		for range n {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			to := words[x&(dtaMemory/32-1)*4:][:4]
			to[0], to[1], to[2], to[3] = x, x, x, x
		}
		state = x
	})
	if err != nil {
		return nil, err
	}
	return []Result{more("Postcarding, 5 hops", perSecond(ns[0]), "M/s", "random 32-byte writes", perSecond(ns[1]), 0.6)}, nil
}

func appendBesideCopy(ctx context.Context) ([]Result, error) {
	const entry, batch = 4, 16
	t, err := list.Open("", list.DefaultConfig(1, dtaMemory/4/entry))
	if err != nil {
		return nil, err
	}
	defer t.Region().Close()
	t.Region().Touch()
	to := make([]byte, dtaMemory/4)
	from := make([]byte, 1<<20)
	for i := range from {
		from[i] = byte(i)
	}
	for i := 0; i < len(to); i += len(from) {
		copy(to[i:], from)
	}
	w := t.Writer(0)
	read, at := 0, 0
	ns, err := race(ctx, func(n int) { // n KiB
		for range n * 1024 / (entry * batch) {
			if err := w.Append(0, from[read:read+entry*batch]); err != nil {
				panic(err)
			}
			read = (read + entry*batch) % len(from)
		}
	}, func(n int) {
		for n > 0 {
			part := min(n*1024, len(to)-at, len(from))
			copy(to[at:], from[:part])
			at = (at + part) % len(to)
			n -= part / 1024
		}
	})
	if err != nil {
		return nil, err
	}
	gigabytes := func(ns float64) float64 { return 1024 / ns }
	return []Result{more("Append, batches of 16", gigabytes(ns[0]), "GB/s", "copy", gigabytes(ns[1]), 0.5)}, nil
}

func incrementBesideRaw(ctx context.Context) ([]Result, error) {
	t, err := count.Open("", count.DefaultConfig(dtaMemory))
	if err != nil {
		return nil, err
	}
	words, done, err := beside(t.Region())
	if err != nil {
		return nil, err
	}
	defer done()
	w, state := t.Writer(0), dtaSeed
	in := newDTAInput(addSize, dtaHead)
	ns, err := race(ctx, in.into(func(reports []byte) (int, error) { return w.AddRun(reports, dtaHead, keySize, dtaCopies) }), func(n int) {
		// Prefetched: the words of a batch are read before any is added to.
		const batch = 64
		var at [2 * batch]uint64
		for range (n + batch - 1) / batch {
			x := state
			for i := range batch {
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
				at[2*i], at[2*i+1] = x&(dtaMemory/8-1), x>>32&(dtaMemory/8-1)
			}
			state = x
			for _, i := range at {
				state ^= words[i] >> 63
			}
			for _, i := range at {
				words[i]++
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return []Result{more("Key-Increment, N=2", perSecond(ns[0]), "M/s", "two prefetched random additions", perSecond(ns[1]), 0.8)}, nil
}
