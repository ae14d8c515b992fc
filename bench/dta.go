package bench

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/weft-telemetry/weft/collect/count"
	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/model"
)

var dtaSuite = Suite{
	Name:  "dta",
	About: "write reports into queryable memory, compared with raw memory and other stores",
	Input: "packed version 1 reports of IPv4 flow keys and 4-byte values; 1 GiB each, one core",
	run: func(ctx context.Context) ([]Result, error) {
		var results []Result
		for _, measure := range []func(context.Context) ([]Result, error){
			compareKeyWrite, comparePostcards, compareAppend, compareIncrement, compareWirePeers, compareMAC,
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
	dtaMemory = 1 << 30
	dtaRounds = 101
	dtaTimes  = 4         // buffers of a round
	dtaBuffer = 256 << 10 // bytes that a worker receives in one call (ingest/udp), and so finds in its cache
	dtaHead   = 4         // bytes in front of the key of a version 1 report
	dtaBatch  = 512       // reports that UDP GRO delivers at once, about ten datagrams
	mapKeys   = 1 << 22
	dtaCopies = 2
	keySize   = model.KeyLen4
	writeSize = dtaHead + keySize + 4
	addSize   = dtaHead + keySize + 8
	pathSize  = keySize + 5*4
)

// dtaInput is reports as a collector has them: side by side in a buffer that was
// just filled. Each filling has different keys, so that the accessed memory is
// that of all keys.
type dtaInput struct {
	buf  []byte
	size int // of a report
	key  int // offset of its key
	pass uint64
}

func newDTAInput(size, key int) *dtaInput {
	return &dtaInput{buf: make([]byte, dtaBuffer/(dtaBatch*size)*dtaBatch*size), size: size, key: key}
}

// reports returns how many reports the buffer holds.
func (in *dtaInput) reports() int { return len(in.buf) / in.size }

// fill sets the keys of the next pass: the addresses of a flow are counted up, its
// ports stay. The kernel does this in a collector, so it is not timed.
func (in *dtaInput) fill() {
	for i := range in.reports() {
		binary.LittleEndian.PutUint64(in.buf[i*in.size+in.key:], uint64(i)|in.pass<<32)
	}
	in.pass++
}

// writeInto is a round that writes a buffer to a structure, batch by batch.
func (in *dtaInput) writeInto(write func(reports []byte) (int, error)) roundWork {
	return roundWork{ready: in.fill, ops: in.reports(), times: dtaTimes, run: func() error {
		for rest := in.buf; len(rest) > 0; rest = rest[dtaBatch*in.size:] {
			if _, err := write(rest[:dtaBatch*in.size]); err != nil {
				return err
			}
		}
		return nil
	}}
}

// randomAccess is a round of ops accesses at random addresses. Sides of one
// comparison use the same memory: how much of it is on huge pages matters more
// than most code.
func randomAccess(ops int, run func(x uint64) uint64) roundWork {
	state := uint64(88172645463325252)
	return roundWork{ops: ops, times: dtaTimes, run: func() error {
		state = run(state)
		return nil
	}}
}

// xorshift is the generator of that name, to be inlined.
func xorshift(x uint64) uint64 {
	x ^= x << 13
	x ^= x >> 7
	return x ^ x<<17
}

func compareKeyWrite(ctx context.Context) ([]Result, error) {
	t, err := keywrite.Open("", keywrite.DefaultConfig(dtaMemory))
	if err != nil {
		return nil, err
	}
	defer t.Region().Close()
	t.Region().Prefault()
	words, w := t.Region().Words(), t.Writer(0)
	plain := make(map[[keySize]byte]uint32, mapKeys)
	written, put, asked := newDTAInput(writeSize, dtaHead), newDTAInput(writeSize, dtaHead), newDTAInput(keySize, 0)
	n := written.reports()
	writes := written.writeInto(func(reports []byte) (int, error) {
		return w.WriteRun(reports, dtaHead, keySize, dtaCopies)
	})
	weft, limit, err := pairedRounds(ctx, dtaRounds, threadTime, writes, randomAccess(n, func(x uint64) uint64 {
		for range n {
			x = xorshift(x)
			words[x&(dtaMemory/8-1)] = x
			words[x>>32&(dtaMemory/8-1)] = x
		}
		return x
	}))
	if err != nil {
		return nil, err
	}
	results := []Result{comparePaired("Key-Write, N=2", weft, "M/s", "two random 8-byte writes", limit, 0.8)}
	weft, peer, err := pairedRounds(ctx, dtaRounds, threadTime, writes, put.writeInto(func(r []byte) (int, error) {
		for ; len(r) > 0; r = r[writeSize:] {
			plain[[keySize]byte(r[dtaHead:])] = binary.LittleEndian.Uint32(r[writeSize-4:])
		}
		if len(plain) >= mapKeys { // start over with the same keys
			put.pass = 0
		}
		return 0, nil
	}))
	if err != nil {
		return nil, err
	}
	results = append(results, comparePaired("Key-Write, N=2", weft, "M/s", "presized Go map", peer, 6))
	found, n := 0, asked.reports()
	dst := make([]byte, 0, 64)
	weft, limit, err = pairedRounds(ctx, dtaRounds, threadTime, asked.writeInto(func(keys []byte) (int, error) {
		if asked.pass > written.pass { // all that was written
			asked.pass = 0
		}
		return 0, t.LookupAll(dst, keys, keySize, keywrite.Query{Copies: dtaCopies}, func(_ int, a keywrite.Answer) {
			if a.Outcome == keywrite.Found {
				found++
			}
		})
	}), randomAccess(n, func(x uint64) uint64 {
		sum := uint64(0)
		for range n {
			x = xorshift(x)
			sum += words[x&(dtaMemory/8-1)]
			sum += words[x>>32&(dtaMemory/8-1)]
		}
		return x ^ sum&1
	}))
	if err != nil {
		return nil, err
	}
	if asks := (dtaRounds + 1) * dtaTimes * n; found < asks/2 { // the random writes hit a few
		return nil, fmt.Errorf("bench: %d of %d keys were found", found, asks)
	}
	return append(results, comparePaired("Key-Write queries, N=2", weft, "M/s", "two random 8-byte reads", limit,
		0.3)), nil
}

func comparePostcards(ctx context.Context) ([]Result, error) {
	t, err := postcard.Open("", postcard.DefaultConfig(dtaMemory))
	if err != nil {
		return nil, err
	}
	defer t.Region().Close()
	t.Region().Prefault()
	words, w := t.Region().Words(), t.Writer(0)
	in := newDTAInput(pathSize, 0)
	n := in.reports()
	weft, limit, err := pairedRounds(ctx, dtaRounds, threadTime, in.writeInto(func(rows []byte) (int, error) {
		return w.WriteRun(rows, keySize, 1)
	}), randomAccess(n, func(x uint64) uint64 {
		for range n {
			x = xorshift(x)
			to := words[x&(dtaMemory/32-1)*4:][:4]
			to[0], to[1], to[2], to[3] = x, x, x, x
		}
		return x
	}))
	if err != nil {
		return nil, err
	}
	return []Result{comparePaired("Postcarding, 5 hops", weft, "M/s", "random 32-byte writes", limit, 0.6)}, nil
}

func compareAppend(ctx context.Context) ([]Result, error) {
	const (
		entry, batch = 4, 16
		part         = 1 << 20 // copied at once: the fastest kind of copy, past the cache
		round        = 4 * part
	)
	t, err := list.Open("", list.DefaultConfig(1, dtaMemory/4/entry))
	if err != nil {
		return nil, err
	}
	defer t.Region().Close()
	t.Region().Prefault()
	w, to := t.Writer(0), t.Region().Words()
	from := make([]byte, part)
	for i := range from {
		from[i] = byte(i)
	}
	at := part // not onto the list's head
	weft, limit, err := pairedRounds(ctx, dtaRounds, threadTime, roundWork{ops: round, times: 1, run: func() error {
		for range round / part {
			for rest := from; len(rest) > 0; rest = rest[entry*batch:] {
				if err := w.Append(0, rest[:entry*batch]); err != nil {
					return err
				}
			}
		}
		return nil
	}}, roundWork{ops: round, times: 1, run: func() error {
		for range round / part {
			region.Copy(to[at/8:(at+part)/8], from)
			if at += part; at+part > 8*len(to) {
				at = part
			}
		}
		return nil
	}})
	if err != nil {
		return nil, err
	}
	for _, side := range [][]float64{weft, limit} { // megabytes
		for i := range side {
			side[i] /= 1e3
		}
	}
	return []Result{comparePaired("Append, batches of 16", weft, "GB/s", "copy", limit, 0.5)}, nil
}

func compareIncrement(ctx context.Context) ([]Result, error) {
	t, err := count.Open("", count.DefaultConfig(dtaMemory))
	if err != nil {
		return nil, err
	}
	defer t.Region().Close()
	t.Region().Prefault()
	words, w := t.Region().Words(), t.Writer(0)
	in := newDTAInput(addSize, dtaHead)
	const batch = 64 // divides dtaBatch
	n := in.reports()
	weft, limit, err := pairedRounds(ctx, dtaRounds, threadTime, in.writeInto(func(reports []byte) (int, error) {
		return w.AddRun(reports, dtaHead, keySize, dtaCopies)
	}), randomAccess(n, func(x uint64) uint64 {
		// Prefetched: the words of a batch are read before any is added to.
		var at [2 * batch]uint64
		for range n / batch {
			for i := range batch {
				x = xorshift(x)
				at[2*i], at[2*i+1] = x&(dtaMemory/8-1), x>>32&(dtaMemory/8-1)
			}
			for _, i := range at {
				x ^= words[i] >> 63
			}
			for _, i := range at {
				words[i]++
			}
		}
		return x
	}))
	if err != nil {
		return nil, err
	}
	return []Result{comparePaired("Key-Increment, N=2", weft, "M/s", "two prefetched random additions", limit,
		0.8)}, nil
}
