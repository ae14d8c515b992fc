package region

import (
	"encoding/binary"
	"unsafe"
)

// bulkCopyMin is the length from which a copy is faster than word by word.
const bulkCopyMin = 64

// Check returns an error if n bytes at off are not in the data.
func (r *Region) Check(off, n uint64) error {
	if size := uint64(len(r.words)) * 8; off > size || n > size-off {
		return ErrBounds
	}
	return nil
}

// Write stores b at byte off, as an RDMA write does. Every aligned word that b
// covers is stored atomically, and so is an aligned half word at either end; only
// single bytes around them need a read before. It stores nothing when a part is
// out of bounds.
func (r *Region) Write(off uint64, b []byte) error {
	if err := r.Check(off, uint64(len(b))); err != nil {
		return err
	}
	for len(b) > 0 {
		w := &r.words[off/8]
		n := 8
		switch in := off % 8; {
		case in == 0 && len(b) >= bulkCopyMin:
			n = len(b) &^ 7
			Copy(r.words[off/8:][:n/8], b)
		case in == 0 && len(b) >= 8:
			Store(w, binary.LittleEndian.Uint64(b))
		case in%4 == 0 && len(b) >= 4:
			n = 4
			store32((*uint32)(unsafe.Add(unsafe.Pointer(w), in)), binary.LittleEndian.Uint32(b))
		default:
			n = 1
			half := (*uint32)(unsafe.Add(unsafe.Pointer(w), in&^3))
			shift := 8 * (in & 3)
			store32(half, load32(half)&^(0xff<<shift)|uint32(b[0])<<shift)
		}
		off += uint64(n)
		b = b[n:]
	}
	return nil
}

// PutAligned stores b at byte off of words, as Write does, if both its ends are
// aligned to half words, and reports whether they are. It is for small writes: it
// needs no handling of single bytes.
func PutAligned(words []uint64, off uint64, b []byte) bool {
	if (off|uint64(len(b)))%4 != 0 {
		return false
	}
	words = words[off/8:]
	if off%8 != 0 && len(b) > 0 {
		store32(halfWord(&words[0], 1), binary.LittleEndian.Uint32(b))
		words, b = words[1:], b[4:]
	}
	if len(b) >= bulkCopyMin {
		Copy(words[:len(b)/8], b)
		words, b = words[len(b)/8:], b[len(b)&^7:]
	}
	for ; len(b) >= 8; words, b = words[1:], b[8:] {
		Store(&words[0], binary.LittleEndian.Uint64(b))
	}
	if len(b) > 0 {
		store32(halfWord(&words[0], 0), binary.LittleEndian.Uint32(b))
	}
	return true
}

// halfWord is the lower or the upper half of a word.
func halfWord(w *uint64, upper int) *uint32 { return &(*[2]uint32)(unsafe.Pointer(w))[upper] }

// Read copies the data at byte off into b, word by word.
func (r *Region) Read(off uint64, b []byte) error {
	if err := r.Check(off, uint64(len(b))); err != nil {
		return err
	}
	words, skip := r.words[off/8:], 8*(off%8)
	for ; len(b) >= 8; words, b = words[1:], b[8:] {
		w := Load(&words[0])
		if skip != 0 { // the rest of these bytes is in the next word
			w = w>>skip | Load(&words[1])<<(64-skip)
		}
		binary.LittleEndian.PutUint64(b, w)
	}
	for shift := skip; len(b) > 0; b = b[1:] {
		if shift == 64 {
			words, shift = words[1:], 0
		}
		b[0] = byte(Load(&words[0]) >> shift)
		shift += 8
	}
	return nil
}
