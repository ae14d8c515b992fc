package recent

import (
	"iter"
	"math/bits"
)

// chains index the records of a block by a hash: each record is in the chain of its
// hash's last bits, the newest first. Records of other hashes may be in it.
type chains struct {
	heads []uint16 // of each chain: 1 + the index of its newest record; 0: none
	next  []uint16 // by record: the one before it in its chain, in the same form
}

// newChains makes chains for n records; at most blockLen.
func newChains(n int) chains {
	return chains{make([]uint16, 1<<bits.Len(uint(n))), make([]uint16, n)}
}

// add adds record i, which is newer than all before it.
func (c *chains) add(hash uint64, i int) {
	head := &c.heads[hash&uint64(len(c.heads)-1)]
	c.next[i], *head = *head, uint16(i+1)
}

// newestFirst iterates over the records that may have a hash.
func (c *chains) newestFirst(hash uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := c.heads[hash&uint64(len(c.heads)-1)]; i != 0 && yield(int(i-1)); i = c.next[i-1] {
		}
	}
}
