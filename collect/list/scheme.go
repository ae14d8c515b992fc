package list

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Scheme maps the entries of a list to memory: all that a translator needs to
// write by RDMA. It holds no memory.
type Scheme struct {
	cfg     Config
	lists   uint32
	classes []ringGeometry
}

// ringGeometry is a class with its location and the values derived from it.
type ringGeometry struct {
	Class
	first  uint32 // its first list
	base   int64  // where the ring of that list starts
	size   int64  // of a ring in memory
	stride int    // of an entry
	batch  int    // bytes of the largest batch
	end    int64  // of the entries in a ring
	mask   uint64 // Capacity-1 if that is a power of two
	shift  int    // the stride is 1<<shift, or -1
	sparse bool   // entries are written and read without their padding
}

// minSparse is the stride from which on it pays not to move the padding of a sized
// entry: labels and mirrors are a tenth of the longest report.
const minSparse = 256

// dataEnd is where the data of a sized entry ends; the rest of its stride is padding.
func (k *ringGeometry) dataEnd(entry []byte) int {
	return sizeLen + min(int(binary.LittleEndian.Uint16(entry)), k.Entry)
}

// offsetOf is the offset in the ring of the entry after head others.
func (k *ringGeometry) offsetOf(head uint64) int64 {
	if k.mask != 0 { // a division costs as much as the write of a batch
		return int64(head&k.mask) * int64(k.stride)
	}
	return int64(head%uint64(k.Capacity)) * int64(k.stride)
}

// entryCount is the number of entries in n bytes, or -1 if they are not whole.
func (k *ringGeometry) entryCount(n int) int {
	if k.shift >= 0 {
		if n&(k.stride-1) != 0 {
			return -1
		}
		return n >> (k.shift & 63)
	}
	if n%k.stride != 0 {
		return -1
	}
	return n / k.stride
}

// NewScheme validates the geometry.
func NewScheme(cfg Config) (*Scheme, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Scheme{cfg: cfg, lists: uint32(cfg.Lists())}
	first, base := uint32(0), cfg.heads()
	for _, c := range cfg.Classes {
		k := ringGeometry{Class: c, first: first, base: base, size: c.ring(), stride: c.stride(), shift: -1}
		k.batch = cfg.Batch * k.stride
		k.sparse = k.Sized && k.stride >= minSparse
		k.end = int64(c.Capacity) * int64(k.stride)
		if c.Capacity&(c.Capacity-1) == 0 {
			k.mask = uint64(c.Capacity - 1)
		}
		if k.stride&(k.stride-1) == 0 {
			k.shift = bits.TrailingZeros(uint(k.stride))
		}
		s.classes = append(s.classes, k)
		first += uint32(c.Lists)
		base += int64(c.Lists) * c.ring()
	}
	return s, nil
}

// Config returns the geometry.
func (s *Scheme) Config() Config { return s.cfg }

// Lists is the number of lists.
func (s *Scheme) Lists() uint32 { return s.lists }

// ringOf returns the geometry of a list and the offset of its ring.
func (s *Scheme) ringOf(list uint32) (*ringGeometry, int64, error) {
	if list >= s.lists {
		return nil, 0, ErrList
	}
	k := &s.classes[0]
	if len(s.classes) > 1 {
		k = s.findRing(list)
	}
	return k, k.base + int64(list-k.first)*k.size, nil
}

// findRing returns the geometry of an existing list.
func (s *Scheme) findRing(list uint32) *ringGeometry {
	i := len(s.classes) - 1
	for s.classes[i].first > list {
		i--
	}
	return &s.classes[i]
}

// Class returns the class of a list.
func (s *Scheme) Class(list uint32) (Class, error) {
	k, _, err := s.ringOf(list)
	if err != nil {
		return Class{}, err
	}
	return k.Class, nil
}

// AppendEntry appends data to a batch as an entry of the list: with its length
// in front if the list's entries are sized, and padded with zeros.
func (s *Scheme) AppendEntry(batch []byte, list uint32, data []byte) ([]byte, error) {
	k, _, err := s.ringOf(list)
	if err != nil {
		return batch, err
	}
	if len(data) > k.Entry {
		return batch, ErrDataLen
	}
	if k.Sized {
		batch = binary.LittleEndian.AppendUint16(batch, uint16(len(data)))
	}
	start := len(batch)
	batch = append(batch, data...)
	if pad := k.Entry - len(data); pad > 0 {
		end := len(batch)
		batch = slices.Grow(batch, pad)[:end+pad]
		clear(batch[end:]) // at once: byte by byte it was most of the cost of a short report
	}
	if s.cfg.Layout == Prototype {
		slices.Reverse(batch[start:]) // words are in the host's byte order
	}
	return batch, nil
}

// AppendRun is AppendEntry for the data of packed reports of size bytes each,
// which follows head other bytes.
func (s *Scheme) AppendRun(batch []byte, list uint32, reports []byte, head, size int) ([]byte, error) {
	k, _, err := s.ringOf(list)
	if err != nil {
		return batch, err
	}
	if size-head != k.Entry || k.Sized || s.cfg.Layout == Prototype {
		for ; len(reports) >= size; reports = reports[size:] {
			if batch, err = s.AppendEntry(batch, list, reports[head:size]); err != nil {
				return batch, err
			}
		}
		return batch, nil
	}
	if k.Entry != 4 {
		for ; len(reports) >= size; reports = reports[size:] {
			batch = append(batch, reports[head:size]...)
		}
		return batch, nil
	}
	for ; len(reports) >= size; reports = reports[size:] { // the common entry needs no call of copy
		batch = binary.LittleEndian.AppendUint32(batch, binary.LittleEndian.Uint32(reports[head:size]))
	}
	return batch, nil
}

// BatchPart is a part of a batch and its offset in the memory, in bytes.
type BatchPart struct {
	Offset uint64
	Bytes  []byte
}

// BatchParts returns the parts of a batch when head entries were written before
// it: one, or two where the ring wraps in between. (The paper's Algorithm 3 tests
// the head against the batch instead of the ring, and its prototype writes the
// first entry twice after each wrap.)
//
// A batch becomes readable by the word at HeadOffset, which includes its entries
// and is written after it.
func (s *Scheme) BatchParts(list uint32, head uint64, batch []byte) (spans [2]BatchPart, n int, err error) {
	k, base, err := s.ringOf(list)
	if err != nil {
		return spans, 0, err
	}
	if len(batch) == 0 || len(batch) > k.batch || k.entryCount(len(batch)) < 0 {
		return spans, 0, ErrBatch
	}
	at := k.offsetOf(head)
	left := k.end - at
	if int64(len(batch)) <= left {
		spans[0] = BatchPart{uint64(base + at), batch}
		return spans, 1, nil
	}
	spans[0] = BatchPart{uint64(base + at), batch[:left]}
	spans[1] = BatchPart{uint64(base), batch[left:]}
	return spans, 2, nil
}

// HeadOffset is the offset of the number of a list's entries, a little-endian
// word. The prototype has none that RDMA reaches: ok is false.
func (s *Scheme) HeadOffset(list uint32) (off uint64, ok bool) {
	return uint64(list) * 8, s.cfg.Layout == Weft && list < s.lists
}
