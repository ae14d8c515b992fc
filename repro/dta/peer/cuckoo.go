package peer

import "math/bits"

const (
	bucketSize = 4
	// maxMoves is the limit of moves per insertion: with 4 entries in a bucket it
	// is never reached below a load of nine tenths.
	maxMoves = 500
)

// Cuckoo keeps the newest value of each key in one of two buckets; a new key
// moves others to their second bucket when both of its own are full.
type Cuckoo struct {
	buckets [][bucketSize]entry
	mask    uint64
	len     int
	turn    int // which entry of a full bucket moves next
}

// NewCuckoo returns a table that is at most four fifths full with the given number of keys.
func NewCuckoo(keys int) *Cuckoo {
	n := uint64(1) << bits.Len(uint(max(1, keys*5/4/bucketSize)))
	return &Cuckoo{buckets: make([][bucketSize]entry, n), mask: n - 1}
}

// Len returns the number of keys.
func (c *Cuckoo) Len() int { return c.len }

// Reset empties the table.
func (c *Cuckoo) Reset() {
	clear(c.buckets)
	c.len = 0
}

// Put stores a value. When the table is full, the key that was moved last is
// lost, and Put returns false.
func (c *Cuckoo) Put(k *Key, value uint32) bool {
	if e := c.find(k); e != nil {
		e.value = value
		return true
	}
	homeless := entry{value: value, used: true, key: *k}
	first, second := k.hash(c.mask)
	if c.settle(first, &homeless) || c.settle(second, &homeless) {
		c.len++
		return true
	}
	at := first
	for range maxMoves {
		c.turn = (c.turn + 1) % bucketSize
		e := &c.buckets[at][c.turn]
		*e, homeless = homeless, *e
		a, b := homeless.key.hash(c.mask)
		if at = a ^ b ^ at; c.settle(at, &homeless) { // its other bucket
			c.len++
			return true
		}
	}
	return false
}

// Get returns the newest value of a key.
func (c *Cuckoo) Get(k *Key) (uint32, bool) {
	if e := c.find(k); e != nil {
		return e.value, true
	}
	return 0, false
}

func (c *Cuckoo) find(k *Key) *entry {
	first, second := k.hash(c.mask)
	for _, at := range [2]uint64{first, second} {
		for i := range c.buckets[at] {
			if e := &c.buckets[at][i]; e.used && e.key == *k {
				return e
			}
		}
	}
	return nil
}

// settle puts an entry into a free slot of a bucket.
func (c *Cuckoo) settle(at uint64, new *entry) bool {
	for i := range c.buckets[at] {
		if e := &c.buckets[at][i]; !e.used {
			*e = *new
			return true
		}
	}
	return false
}
