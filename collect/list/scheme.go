package list

import "encoding/binary"

// Scheme tells where the entries of a list go: all that a translator needs to
// write by RDMA. It holds no memory.
type Scheme struct {
	cfg     Config
	lists   uint32
	classes []span
}

// span is a class with its place.
type span struct {
	Class
	first uint32 // its first list
	base  int64  // where the ring of that list starts
}

// NewScheme checks the geometry.
func NewScheme(cfg Config) (*Scheme, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Scheme{cfg: cfg, lists: uint32(cfg.Lists())}
	first, base := uint32(0), cfg.heads()
	for _, k := range cfg.Classes {
		s.classes = append(s.classes, span{k, first, base})
		first += uint32(k.Lists)
		base += int64(k.Lists) * k.ring()
	}
	return s, nil
}

// Config returns the geometry.
func (s *Scheme) Config() Config { return s.cfg }

// Lists is the number of lists.
func (s *Scheme) Lists() uint32 { return s.lists }

// class returns the shape of a list and where its ring starts.
func (s *Scheme) class(list uint32) (*span, int64, error) {
	if list >= s.lists {
		return nil, 0, ErrList
	}
	i := len(s.classes) - 1
	for s.classes[i].first > list {
		i--
	}
	k := &s.classes[i]
	return k, k.base + int64(list-k.first)*k.ring(), nil
}

// Class returns the shape of a list.
func (s *Scheme) Class(list uint32) (Class, error) {
	k, _, err := s.class(list)
	if err != nil {
		return Class{}, err
	}
	return k.Class, nil
}

// AppendEntry appends data to a batch as an entry of the list: with its length
// in front if the list's entries are sized, and filled up with zeros.
func (s *Scheme) AppendEntry(batch []byte, list uint32, data []byte) ([]byte, error) {
	k, _, err := s.class(list)
	if err != nil {
		return batch, err
	}
	if len(data) > k.Entry {
		return batch, ErrDataLen
	}
	if k.Sized {
		batch = binary.LittleEndian.AppendUint16(batch, uint16(len(data)))
	}
	batch = append(batch, data...)
	for range k.Entry - len(data) {
		batch = append(batch, 0)
	}
	return batch, nil
}

// Span is a part of a batch and where it goes, in bytes from the start of the
// memory.
type Span struct {
	Offset uint64
	Bytes  []byte
}

// Spans tells where a batch goes when head entries were written before it: one
// place, or two where the ring ends in between. (The paper's Algorithm 3 tests
// the head against the batch instead of the ring, and its prototype writes the
// first place twice after each turn.)
//
// A batch becomes readable by the word at HeadOffset, which counts its entries
// too, written behind it.
func (s *Scheme) Spans(list uint32, head uint64, batch []byte) (spans [2]Span, n int, err error) {
	k, base, err := s.class(list)
	if err != nil {
		return spans, 0, err
	}
	if len(batch) == 0 || len(batch)%k.stride() != 0 || len(batch)/k.stride() > s.cfg.Batch {
		return spans, 0, ErrBatch
	}
	at := int64(head%uint64(k.Capacity)) * int64(k.stride())
	room := int64(k.Capacity)*int64(k.stride()) - at
	if int64(len(batch)) <= room {
		spans[0] = Span{uint64(base + at), batch}
		return spans, 1, nil
	}
	spans[0] = Span{uint64(base + at), batch[:room]}
	spans[1] = Span{uint64(base), batch[room:]}
	return spans, 2, nil
}

// HeadOffset is where the count of a list's entries lies, a little-endian word.
// The prototype has none in reach: ok is false.
func (s *Scheme) HeadOffset(list uint32) (off uint64, ok bool) {
	return uint64(list) * 8, s.cfg.Layout == Weft && list < s.lists
}
