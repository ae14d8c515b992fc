package provenance

import (
	"container/list"
	"errors"
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/poll"
)

// Config bounds what a Collector keeps.
type Config struct {
	// Detections is how many detections are kept. Beyond it the oldest is evicted;
	// those that Expect names come last.
	Detections int
	// Memory bounds the snapshots to three quarters and the detections to one. Beyond
	// it the switch that holds most loses its oldest snapshot.
	Memory model.Bytes
	// Known reports whether a switch may report. Nil: any.
	Known func(sw model.NodeID) bool
}

// DefaultConfig keeps a number of detections in up to 1 GiB.
func DefaultConfig(detections int) Config { return Config{Detections: detections, Memory: model.GiB} }

// maxAnswers is how many snapshots of one switch may answer the poll of one
// detection. The newest are kept: two are for one that polls a second time, and
// as many for clocks that were set.
const maxAnswers = 4

// Stats account for chunks.
type Stats struct {
	Chunks     uint64
	Malformed  uint64
	Unknown    uint64 // of a switch that Config.Known rejects
	Duplicates uint64
	Conflicts  uint64 // chunks that contradict others of their report
	Excess     uint64 // answers of a switch beyond the newest ones of a detection
	NoMemory   uint64 // chunks beyond Config.Memory
	Evicted    uint64 // detections that were evicted to keep to the capacity
	Dropped    uint64 // snapshots that were dropped to keep to Config.Memory
	// Implausible counts chunks with intervals that overlap or end before they start.
	Implausible uint64
}

// Collector assembles reports from chunks. Chunks may come in any order, twice,
// or not at all. It keeps a number of detections and evicts the oldest. A
// snapshot is kept while a detection refers to it.
type Collector struct {
	cfg       Config
	snapshots map[snapshotID]*snapshot
	events    map[poll.Event]*detection
	// Detections in the order of their first report, those that Expect named apart.
	unexpected, expected *list.List
	holders              map[model.NodeID]*holder
	used                 model.Bytes // by snapshots
	usedByEvents         model.Bytes
	stats                Stats
}

type snapshotID struct {
	sw model.NodeID
	at model.Time
}

// snapshot is a snapshot that detections refer to.
type snapshot struct {
	id     snapshotID
	report *Report // nil: it has not arrived, or was dropped
	refs   int     // detections
	held   model.Bytes
}

// holder is what one switch holds.
type holder struct {
	used model.Bytes
	list []*snapshot // with a report, the oldest first
}

// detection is the answers to the poll of one detection.
type detection struct {
	event    poll.Event
	answers  map[model.NodeID][]snapshotRef // up to maxAnswers each
	expected bool
	element  *list.Element // in the Collector's lists
	held     model.Bytes
}

// snapshotRef refers to the snapshot that answers the poll of a detection, and
// says when the poll came.
type snapshotRef struct {
	snapshotID
	polledAt  model.Time
	returning bool // the poll came on the path of acknowledgements
}

// detectionSize and answerSize are about what a detection and an answer to it take.
const (
	detectionSize = 400
	answerSize    = 300 // with the entry of a snapshot that has not arrived
)

// NewCollector returns a collector without reports.
func NewCollector(cfg Config) (*Collector, error) {
	if cfg.Detections < 1 {
		return nil, fmt.Errorf("provenance: capacity of %d detections, want at least 1", cfg.Detections)
	}
	if cfg.Memory < model.MiB {
		return nil, fmt.Errorf("provenance: memory of %v, want at least %v", cfg.Memory, model.Bytes(model.MiB))
	}
	return &Collector{
		cfg: cfg, snapshots: map[snapshotID]*snapshot{}, events: map[poll.Event]*detection{}, holders: map[model.NodeID]*holder{},
		unexpected: list.New(), expected: list.New(),
	}, nil
}

// Stats returns the current counts.
func (c *Collector) Stats() Stats { return c.stats }

// Held returns the memory in use.
func (c *Collector) Held() model.Bytes { return c.used + c.usedByEvents }

// Errors of AddChunk beside those of wire/epoch.
var (
	ErrConflict = errors.New("provenance: chunk contradicts others of its report")
	ErrUnknown  = errors.New("provenance: switch is not in the fabric")
	ErrExcess   = errors.New("provenance: the switch has answered this detection with newer snapshots")
	ErrMemory   = errors.New("provenance: this switch holds the most memory, and there is none left")
)

// AddChunk adds the data of one chunk, which arrived at a time of the
// collector's clock, and returns the detection it belongs to. A chunk with an
// error leaves nothing behind.
func (c *Collector) AddChunk(now model.Time, data []byte) (poll.Event, error) {
	var k epoch.Chunk
	if n, err := k.Parse(data); err != nil {
		c.stats.Malformed++
		return poll.Event{}, fmt.Errorf("provenance: chunk of %d bytes: %w", len(data), err)
	} else if n != len(data) {
		c.stats.Malformed++
		return poll.Event{}, fmt.Errorf("provenance: chunk of %d bytes, want %d", len(data), n)
	}
	if c.cfg.Known != nil && !c.cfg.Known(k.Switch) {
		c.stats.Unknown++
		return k.Event, fmt.Errorf("provenance: switch %d: %w", k.Switch, ErrUnknown)
	}
	id := snapshotID{k.Switch, k.Snapshot}
	if k.Flags&epoch.ByReference != 0 {
		if err := c.addReference(k.Event, snapshotRef{id, pollTime(&k), k.Flags&epoch.Returning != 0}); err != nil {
			return k.Event, err
		}
		c.stats.Chunks++
		return k.Event, nil
	}
	var r *Report
	if s := c.snapshots[id]; s != nil && s.report != nil {
		r = s.report
	} else {
		r = newReport(&k)
	}
	if r.total != int(k.Total) || r.Event != k.Event || r.EpochLength != k.EpochLength {
		c.stats.Conflicts++
		return k.Event, ErrConflict
	}
	at, found := r.hasChunk(k.Index)
	if found {
		c.stats.Duplicates++
		return k.Event, nil
	}
	next, err := r.withRecords(&k)
	if err != nil {
		c.countBadRecord(err)
		return k.Event, fmt.Errorf("provenance: switch %d, snapshot %v: %w", k.Switch, k.Snapshot, err)
	}
	// Only now: a report without a valid record is not kept.
	if err := c.addReference(k.Event, snapshotRef{id, k.Snapshot, k.Flags&epoch.Returning != 0}); err != nil {
		return k.Event, err
	}
	*r = next
	r.arrived = slices.Insert(r.arrived, at, k.Index)
	r.Bytes += model.Bytes(len(data))
	r.Arrived = max(r.Arrived, now)
	r.Missing--
	if !c.keep(c.snapshots[id], r) {
		c.stats.NoMemory++
		return k.Event, fmt.Errorf("provenance: switch %d, snapshot %v: %w", k.Switch, k.Snapshot, ErrMemory)
	}
	c.stats.Chunks++
	return k.Event, nil
}

// countBadRecord counts a chunk that is refused because of a record.
func (c *Collector) countBadRecord(err error) {
	switch {
	case errors.Is(err, ErrConflict):
		c.stats.Conflicts++
	case errors.Is(err, epoch.ErrIntervals):
		c.stats.Implausible++
	default:
		c.stats.Malformed++
	}
}

// pollTime returns when the poll came that a reference to a snapshot answers;
// if the chunk does not say, when the snapshot was taken.
func pollTime(k *epoch.Chunk) model.Time {
	for it := k.Reader(); it.Next(); {
		var a epoch.PollRef
		if _, err := a.Parse(it.Record()); err == nil {
			return max(a.ReceivedAt, k.Snapshot)
		}
	}
	return k.Snapshot
}

// HasReports reports whether anything has arrived about a detection.
func (c *Collector) HasReports(ev poll.Event) bool {
	d := c.events[ev]
	return d != nil && len(d.answers) > 0
}

// Expect says whether a detection waits for reports: if it does, it is evicted
// after all that do not.
func (c *Collector) Expect(ev poll.Event, waits bool) {
	d := c.events[ev]
	switch {
	case d == nil && waits:
		c.addDetection(ev, true)
	case d != nil && d.expected != waits:
		c.unlink(d)
		d.expected = waits
		c.link(d)
	}
}
