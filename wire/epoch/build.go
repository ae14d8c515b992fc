package epoch

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

// Builder batches the records of one report into chunks. Empty records are
// omitted: in a complete report, a missing record is zero. The memory is kept
// from one report to the next, so a reused Builder allocates nothing. The zero
// Builder is ready for Reset.
type Builder struct {
	head        Header
	size, limit int
	buf         []byte
	ends        []int // of the finished chunks in buf
	start       int   // of the open chunk in buf
}

// Reset starts a report of at most limit chunks of at most size bytes each.
// Size is the MTU less the headers of the transport. Records that do not fit
// increment h.Dropped and set the flag Truncated. Chunks of Overhead+MaxIntervalsSize
// hold any record.
func (b *Builder) Reset(h Header, size, limit int) error {
	if size < Overhead+maxRecord {
		return fmt.Errorf("epoch: chunk size %d, want at least %d", size, Overhead+maxRecord)
	}
	if limit < 1 || limit > math.MaxUint16 {
		return fmt.Errorf("epoch: chunk limit %d, want 1 to %d", limit, math.MaxUint16)
	}
	if h.EpochLength <= 0 {
		return fmt.Errorf("epoch: epoch length %v, want more than 0", h.EpochLength)
	}
	*b = Builder{head: h, size: size, limit: limit, buf: b.buf[:0], ends: b.ends[:0]}
	b.openChunk()
	return nil
}

// AddPort adds a record to the report.
func (b *Builder) AddPort(p Port) {
	if !p.IsZero() && b.fits(PortSize) {
		b.buf = p.AppendTo(b.buf)
	}
}

// AddPortEpoch adds a record to the report.
func (b *Builder) AddPortEpoch(p PortEpoch) {
	if !p.IsZero() && b.fits(PortEpochSize) {
		b.buf = p.AppendTo(b.buf)
	}
}

// AddFlow adds a record to the report. An evicted flow sets the flag Evictions.
func (b *Builder) AddFlow(f *Flow) {
	if !f.IsZero() && b.fits(flowSize+f.Key.Len()) {
		b.buf = f.AppendTo(b.buf)
		if f.Evicted {
			b.head.Flags |= Evictions
		}
	}
}

// AddMeter adds a record to the report.
func (b *Builder) AddMeter(m Meter) {
	if !m.IsZero() && b.fits(MeterSize) {
		b.buf = m.AppendTo(b.buf)
	}
}

// AddPause adds a record to the report.
func (b *Builder) AddPause(p Pause) {
	if !p.IsZero() && b.fits(PauseSize) {
		b.buf = p.AppendTo(b.buf)
	}
}

// AddCongestionEpisode adds a record to the report.
func (b *Builder) AddCongestionEpisode(w CongestionEpisode) {
	if !w.IsZero() && b.fits(CongestionEpisodeSize) {
		b.buf = w.AppendTo(b.buf)
	}
}

// AddIntervals adds a record to the report. It may be longer than a small chunk
// holds; then it counts as dropped.
func (b *Builder) AddIntervals(v *Intervals) {
	if !v.IsZero() && b.fits(v.size()) {
		b.buf = v.AppendTo(b.buf)
	}
}

// AddBacklogHistory adds a record to the report.
func (b *Builder) AddBacklogHistory(h *BacklogHistory) {
	if !h.IsZero() && b.fits(BacklogHistorySize(int(h.Count))) {
		b.buf = h.AppendTo(b.buf)
	}
}

// AddSettings adds a record to the report.
func (b *Builder) AddSettings(s Settings) {
	if !s.IsZero() && b.fits(SettingsSize) {
		b.buf = s.AppendTo(b.buf)
	}
}

// AddPortPairBacklog adds a record to the report.
func (b *Builder) AddPortPairBacklog(h PortPairBacklog) {
	if !h.IsZero() && b.fits(PortPairBacklogSize) {
		b.buf = h.AppendTo(b.buf)
	}
}

// AddFlowBacklog adds a record to the report.
func (b *Builder) AddFlowBacklog(w *FlowBacklog) {
	if !w.IsZero() && b.fits(PortPairBacklogSize+w.Key.Len()) {
		b.buf = w.AppendTo(b.buf)
	}
}

// fits makes space for n bytes in the open chunk, or counts a record as dropped.
// After one is dropped, smaller ones may still fit.
func (b *Builder) fits(n int) bool {
	if len(b.buf)-b.start+n+crcSize <= b.size {
		return true
	}
	if len(b.ends)+1 == b.limit || n > b.size-Overhead {
		b.head.Dropped++
		b.head.Flags |= Truncated
		return false
	}
	b.closeChunk()
	b.openChunk()
	return true
}

// openChunk reserves space for a header, whose contents are known at the end.
func (b *Builder) openChunk() {
	b.start = len(b.buf)
	b.buf = append(b.buf, make([]byte, HeaderSize)...)
}

func (b *Builder) closeChunk() {
	b.buf = append(b.buf, make([]byte, crcSize)...)
	b.ends = append(b.ends, len(b.buf))
}

// Finish completes the report and returns its number of chunks, which is at
// least one: a switch with nothing to report says so. Nothing may be added
// before the next Reset.
func (b *Builder) Finish() int {
	b.closeChunk()
	for i := range b.ends {
		chunk := b.Chunk(i)
		end := len(chunk) - crcSize
		head := Chunk{Header: b.head, Index: uint16(i), Total: uint16(len(b.ends))}
		head.appendHeader(chunk[:0], end-HeaderSize)
		binary.BigEndian.PutUint32(chunk[end:], crc32.Checksum(chunk[:end], castagnoli))
	}
	return len(b.ends)
}

// Chunk returns the bytes of chunk i after Finish. They are valid until the next
// Reset.
func (b *Builder) Chunk(i int) []byte {
	start := 0
	if i > 0 {
		start = b.ends[i-1]
	}
	return b.buf[start:b.ends[i]:b.ends[i]]
}
