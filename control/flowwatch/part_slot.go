package flowwatch

import (
	"math"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/internal/fieldcodec"
	"github.com/weft-telemetry/weft/model"
)

// PartSlot is what one partition of the flows needs to know of a slot: the records of its
// flows, and what every switch reported.
type PartSlot struct {
	Index     int64
	Length    time.Duration
	WindowEnd bool // the last slot of a window: links and groups are taken
	missing   []flowsetSource
	sets      []partSet
}

// partSet is a flowset with the records of one partition, compact or not.
type partSet struct {
	flows.Decoded
	places []uint32 // of its records among all records of the slot; ascending
}

// Splitter divides decoded slots for partitions in other processes.
type Splitter struct {
	fabric   portCounter
	parts    int
	shuffled []shuffle
	sets     []partSet // memory of Split
}

type portCounter interface {
	portsOf(sw model.NodeID) model.PortID
}

// NewSplitter makes a splitter for the fabric of a configuration.
func NewSplitter(cfg *Config, partitions int) *Splitter {
	return &Splitter{fabric: highestPorts{cfg.Intent.At(0).Fabric()}, parts: partitions}
}

// Split appends the encoded slot of each partition to one of the buffers.
func (s *Splitter) Split(d *DecodedSlot, length time.Duration, windowEnd bool, buffers [][]byte) {
	s.shuffled = append(s.shuffled, make([]shuffle, max(len(d.Sets)-len(s.shuffled), 0))...)
	for i := range d.Sets {
		s.shuffled[i].sort(&d.Sets[i], s.fabric.portsOf(d.Sets[i].Switch), s.parts)
	}
	s.sets = append(s.sets, make([]partSet, max(len(d.Sets)-len(s.sets), 0))...)
	p := PartSlot{Index: d.Index, Length: length, WindowEnd: windowEnd, missing: d.missing, sets: s.sets[:len(d.Sets)]}
	for part := range buffers {
		first := uint32(0)
		for i := range d.Sets {
			set, r := &p.sets[i], s.shuffled[i].part(part)
			records := set.Records[:0]
			set.Decoded, set.places = d.Sets[i], resized(set.places, len(r.Places))
			for k, at := range r.Places {
				if r.Compact == nil {
					records = append(records, r.Record(k))
				}
				set.places[k] = first + at
			}
			set.Compact, set.Records = r.Compact, records
			first += uint32(d.Sets[i].Flows())
		}
		c := fieldcodec.NewWriter(buffers[part])
		p.Code(c)
		buffers[part] = c.Written()
	}
}

// Code codes a slot.
func (s *PartSlot) Code(c *fieldcodec.Coder) {
	c.Int64(&s.Index)
	fieldcodec.Signed(c, &s.Length)
	if s.Length <= 0 {
		c.Fail("flowwatch: slot of %v", s.Length)
	}
	c.Bool(&s.WindowEnd)
	fieldcodec.Slice(c, &s.missing, func(m *flowsetSource) {
		fieldcodec.Unsigned(c, &m.sw)
		fieldcodec.Unsigned(c, &m.scope)
		fieldcodec.Unsigned(c, &m.key)
	})
	fieldcodec.Slice(c, &s.sets, func(d *partSet) {
		d.Code(c)
		flows.CodeCompact(c, &d.Compact)
		if len(d.Compact) == 0 {
			flows.CodeRecords(c, &d.Records)
		}
		if c.Reading() {
			d.places = make([]uint32, d.Flows())
		}
		codePlaces(c, d.places)
	})
}

// codePlaces codes ascending places.
func codePlaces(c *fieldcodec.Coder, list []uint32) {
	before := uint32(0)
	fieldcodec.Column(c, list, math.MaxUint32, func(p *uint32) uint64 {
		step := *p - before
		before = *p
		return uint64(step)
	}, func(p *uint32, step uint64) {
		before += uint32(step)
		*p = before
	})
}
