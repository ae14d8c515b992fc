package keywrite

import (
	"encoding/binary"
	"math"

	"github.com/weft-telemetry/weft/collect/bound"
	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/slothash"
)

// Query configures a read. Its zero value reads all slots a key can have and
// returns the value that most of them hold.
type Query struct {
	Copies    int // redundancy of the reports, 1 to 4; 0 if unknown
	Consensus int // equal copies that an answer needs; 0 means 1
}

// Outcome is the kind of result of a query.
type Outcome uint8

// The outcomes. All but Found are what the paper calls an empty return.
const (
	Found       Outcome = iota
	Absent              // no copy of the key: never written, or overwritten
	Conflict            // as many copies hold one value as another
	NoConsensus         // fewer equal copies than the consensus
)

// String names the outcome.
func (o Outcome) String() string {
	return [...]string{"found", "absent", "conflict", "no consensus"}[o&3]
}

// Answer is the result of a query for a key.
type Answer struct {
	Outcome Outcome
	Value   []byte // when Found
	Votes   int    // copies that hold the value
	Valid   int    // copies with a checksum that matches the key, of any value
	Bound   bound.Bound
}

// Load returns the load of the table.
func (t *Table) Load() bound.Load {
	return bound.Load(float64(t.mem.Counts().Writes) / float64(t.cfg.Slots))
}

// Bound bounds the failure probability of an answer at a load.
func (t *Table) Bound(l bound.Load, q Query) bound.Bound {
	match := math.Exp2(-float64(t.cfg.Check))
	if q.Copies == 0 {
		b := bound.UnknownCopies(l, slothash.MaxCopies, match)
		if q.Consensus > 1 { // a single copy cannot reach it
			b.Empty = 1
		}
		return b
	}
	return bound.WithConsensus(l, q.Copies, max(1, q.Consensus), match)
}

// Read answers a query, with the failure bound at the current load.
func (t *Table) Read(key []byte, q Query) (Answer, error) {
	a, err := t.Lookup(nil, key, q)
	if err == nil {
		a.Bound = t.Bound(t.Load(), q)
	}
	return a, err
}

// Lookup is Read without the bound, for many keys: it appends the answer's value
// to dst, and allocates nothing if dst has the capacity for the values of all
// copies.
func (t *Table) Lookup(dst, key []byte, q Query) (Answer, error) {
	copies, err := q.slotsToRead()
	if err != nil {
		return Answer{}, err
	}
	p, err := t.HashKey(key)
	if err != nil {
		return Answer{}, err
	}
	return t.lookup(dst, p, copies, q), nil
}

// slotsToRead returns the number of slots that a query reads.
func (q Query) slotsToRead() (int, error) {
	switch {
	case q.Copies == 0:
		return slothash.MaxCopies, nil
	case q.Copies < 0 || q.Copies > slothash.MaxCopies:
		return 0, ErrCopies
	}
	return q.Copies, nil
}

// lookupBatch is the number of keys that LookupAll prefetches before it reads
// any: more than the cache misses a CPU can have in flight.
const lookupBatch = 64

// LookupAll looks up many keys of keyLen bytes, back to back, several times as
// fast as one by one: it prefetches the slots of many keys before it reads the
// first. It calls each with every key's index and answer, whose value is in dst
// until the next call.
func (t *Table) LookupAll(dst, keys []byte, keyLen int, q Query, each func(i int, a Answer)) error {
	copies, err := q.slotsToRead()
	if err != nil {
		return err
	}
	if keyLen < 1 || len(keys)%keyLen != 0 {
		return ErrKeyLen
	}
	for done := 0; len(keys) > 0; {
		part := keys[:min(len(keys), lookupBatch*keyLen)]
		keys = keys[len(part):]
		if t.words == 1 && !t.rule.Prototype && keyLen >= 8 && keyLen <= 16 {
			t.lookupWords(dst, part, keyLen, copies, q, done, each)
		} else if err := t.lookupAnyLayout(dst, part, keyLen, copies, q, done, each); err != nil {
			return err
		}
		done += len(part) / keyLen
	}
	return nil
}

// lookupAnyLayout looks up at most lookupBatch keys, in any layout.
func (t *Table) lookupAnyLayout(dst, keys []byte, keyLen, copies int, q Query, first int,
	each func(i int, a Answer),
) (err error) {
	var hashes [lookupBatch]slothash.KeyHash
	n := len(keys) / keyLen
	for i := range n {
		if hashes[i], err = t.HashKey(keys[i*keyLen:][:keyLen]); err != nil {
			return err
		}
	}
	t.prefetchSlots(hashes[:n], copies)
	for i, p := range hashes[:n] {
		each(first+i, t.lookup(dst, p, copies, q))
	}
	return nil
}

// lookupWords looks up at most lookupBatch keys of 8 to 16 bytes, in slots of one
// word.
func (t *Table) lookupWords(dst, keys []byte, keyLen, copies int, q Query, first int, each func(i int, a Answer)) {
	var hashes [lookupBatch]slothash.Hash
	var at [lookupBatch * slothash.MaxCopies]uint64
	slots, n, start := t.slots, t.cfg.Slots, slothash.StartState(keyLen, t.cfg.Seed)
	k, all := 0, 0
	for ; k < lookupBatch && len(keys) >= keyLen; k++ {
		h := slothash.HashWords(binary.LittleEndian.Uint64(keys), binary.LittleEndian.Uint64(keys[keyLen-8:]), start)
		hashes[k] = h
		for c := range copies {
			at[all%len(at)] = h.Slot(c, n)
			all++
		}
		keys = keys[keyLen:]
	}
	// This loop does nothing but load, so that as many loads overlap as the CPU
	// can have in flight.
	for i, slot := range at[:all] {
		at[i] = region.Load(&slots[slot])
	}
	var found [slothash.MaxCopies]uint64
	for i := range k {
		copy(found[:], at[i*copies:(i+1)*copies])
		each(first+i, t.decideWords(dst, slothash.KeyHash{Hash: hashes[i]}, &found, copies, q))
	}
}

// prefetchSlots loads the first word of every slot of the keys, and uses none:
// as many loads overlap as the CPU can have in flight.
func (t *Table) prefetchSlots(hashes []slothash.KeyHash, copies int) {
	slots, n, words := t.slots, t.cfg.Slots, t.words
	if t.rule.Prototype {
		for _, p := range hashes {
			for c := range copies {
				region.Load(&slots[p.CRC.Slot(c, n)*words])
			}
		}
		return
	}
	for _, p := range hashes {
		for c := range copies {
			region.Load(&slots[p.Hash.Slot(c, n)*words])
		}
	}
}

func (t *Table) lookup(dst []byte, p slothash.KeyHash, copies int, q Query) Answer {
	if t.words == 1 {
		return t.lookupWord(dst, p, copies, q)
	}
	var v vote
	base := len(dst)
	for n := range copies {
		at := t.rule.Slot(p, n, t.cfg.Slots) * t.words
		var id uint64
		var ok bool
		if dst, id, ok = t.loadSlot(dst, p, t.slots[at:at+t.words]); ok {
			v.addCopy(id)
		} else {
			dst = dst[:base+v.valid*t.cfg.Value]
		}
	}
	a := v.answer(q)
	if a.Outcome == Found {
		from := base + v.first*t.cfg.Value
		copy(dst[base:], dst[from:from+t.cfg.Value])
		a.Value = dst[base : base+t.cfg.Value]
	}
	return a
}

// lookupWord is lookup for slots of one word. All are loaded before any is
// checked, so that the loads overlap.
func (t *Table) lookupWord(dst []byte, p slothash.KeyHash, copies int, q Query) Answer {
	var found [slothash.MaxCopies]uint64
	for n := range copies {
		found[n] = region.Load(&t.slots[t.rule.Slot(p, n, t.cfg.Slots)])
	}
	return t.decideWords(dst, p, &found, copies, q)
}

// decideWords answers from the words of the copies. Copies that agree, as nearly
// all do, need no vote. It reuses found as scratch space.
func (t *Table) decideWords(dst []byte, p slothash.KeyHash, found *[slothash.MaxCopies]uint64,
	copies int, q Query,
) Answer {
	valid := 0
	agree := true
	for _, w := range found[:copies] {
		if top := w >> 32 << 32; w == top|t.sumWord(p, top) {
			agree = agree && (valid == 0 || w == found[0])
			found[valid] = w // never after the one just read
			valid++
		}
	}
	winner := found[0]
	a := Answer{Outcome: Found, Votes: valid, Valid: valid}
	switch {
	case valid == 0:
		a.Outcome = Absent
	case !agree:
		var v vote
		for _, w := range found[:valid] {
			v.addCopy(w)
		}
		a = v.answer(q)
		winner = v.ids[v.first]
	case valid < q.Consensus:
		a.Outcome = NoConsensus
	}
	if a.Outcome == Found {
		base := len(dst)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(winner>>32))
		a.Value = dst[base : base+t.cfg.Value]
	}
	return a
}

// loadSlot appends the value of a slot and reports whether it is the key's. The
// id is the same for equal values, and different for others that are compared.
func (t *Table) loadSlot(dst []byte, p slothash.KeyHash, slot []uint64) (_ []byte, id uint64, ok bool) {
	base := len(dst)
	w := region.Load(&slot[0])
	var low, top uint64
	if t.checksumBits == 32 {
		low, top = w&math.MaxUint32, w>>32<<32
		dst = binary.LittleEndian.AppendUint32(dst, uint32(w>>32))
	} else {
		low = w
	}
	sum := p.Hash.Checksum().AddWord(top)
	for i := 1; i < len(slot); i++ {
		w := region.Load(&slot[i])
		sum = sum.AddWord(w)
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	want := uint64(p.CRC)
	if !t.rule.Prototype {
		want = sum.Bits(t.mask)
	}
	return dst[:base+t.cfg.Value], uint64(sum), low == want
}

// vote counts equal copies.
type vote struct {
	ids   [slothash.MaxCopies]uint64
	count [slothash.MaxCopies]int
	valid int // copies so far
	first int // after answer: the winner's first copy
}

func (v *vote) addCopy(id uint64) {
	v.ids[v.valid] = id
	for i := range v.valid + 1 {
		if v.ids[i] == id {
			v.count[i]++
			break
		}
	}
	v.valid++
}

func (v *vote) answer(q Query) Answer {
	best, rivals := 0, 0
	for i, c := range v.count[:v.valid] {
		switch {
		case c > best:
			best, rivals, v.first = c, 0, i
		case c == best:
			rivals++
		}
	}
	a := Answer{Votes: best, Valid: v.valid}
	switch {
	case best == 0:
		a.Outcome = Absent
	case rivals > 0:
		a.Outcome = Conflict
	case best < q.Consensus:
		a.Outcome = NoConsensus
	}
	return a
}
