package region

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

var snapMagic = []byte("weftsnp\x01")

// Snapshot writes the region: 8 bytes of magic, the header page, the data, and
// the CRC-32C of page and data. With concurrent writers every word is from some
// instant of the copy: slots and chunks with checksums stay valid, and counters
// are from different instants. Writers of lists must be paused: heads and rings
// must be from the same instant.
func (r *Region) Snapshot(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<16)
	sum := crc32.New(castagnoli)
	both := io.MultiWriter(out, sum)
	_, err := out.Write(snapMagic)
	if err != nil {
		return fmt.Errorf("region: snapshot: %w", err)
	}
	block := make([]byte, 1<<16)
	page := block[:HeaderSize]
	copy(page, r.mem[:fixedEnd])
	for at := fixedEnd; at < HeaderSize; at += 8 {
		binary.LittleEndian.PutUint64(page[at:], Load(r.word(at)))
	}
	if _, err := both.Write(page); err != nil {
		return fmt.Errorf("region: snapshot: %w", err)
	}
	for off := int64(0); off < r.head.Size; off += int64(len(block)) {
		block = block[:min(int64(len(block)), r.head.Size-off)]
		_ = r.Read(uint64(off), block) // within the memory by the loop's bounds
		if _, err := both.Write(block); err != nil {
			return fmt.Errorf("region: snapshot: %w", err)
		}
	}
	err = binary.Write(out, binary.LittleEndian, sum.Sum32())
	if err = errors.Join(err, out.Flush()); err != nil {
		return fmt.Errorf("region: snapshot: %w", err)
	}
	return nil
}

// Restore fills the region from a snapshot of the same kind and geometry; there
// must be no concurrent writer. A snapshot that is truncated or damaged leaves
// the region empty: half of one would mix answers of two times.
func (r *Region) Restore(rd io.Reader) (err error) {
	in := bufio.NewReaderSize(rd, 1<<16)
	block := make([]byte, 1<<16)
	start := block[:len(snapMagic)+HeaderSize]
	if _, err := io.ReadFull(in, start); err != nil {
		return fmt.Errorf("restore: %w: header: %w", ErrDamaged, err)
	}
	if string(start[:len(snapMagic)]) != string(snapMagic) {
		return fmt.Errorf("restore: %w", ErrForeign)
	}
	page := append([]byte(nil), start[len(snapMagic):]...)
	h, err := parseHeader(page)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := h.checkSame(r.head); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer func() {
		if err != nil {
			r.Reset()
		}
	}()
	sum := crc32.New(castagnoli)
	_, _ = sum.Write(page)
	for off := int64(0); off < h.Size; off += int64(len(block)) {
		block = block[:min(int64(len(block)), h.Size-off)]
		if _, err := io.ReadFull(in, block); err != nil {
			return fmt.Errorf("restore: %w: data at %d: %w", ErrDamaged, off, err)
		}
		_, _ = sum.Write(block)
		_ = r.Write(uint64(off), block) // within the memory by the loop's bounds
	}
	var want [4]byte
	if _, err := io.ReadFull(in, want[:]); err != nil {
		return fmt.Errorf("restore: %w: checksum: %w", ErrDamaged, err)
	}
	if sum.Sum32() != binary.LittleEndian.Uint32(want[:]) {
		return fmt.Errorf("restore: %w: checksum", ErrDamaged)
	}
	for at := fixedEnd; at < HeaderSize; at += 8 {
		Store(r.word(at), binary.LittleEndian.Uint64(page[at:]))
	}
	return nil
}
