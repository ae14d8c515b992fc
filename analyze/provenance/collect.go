package provenance

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/poll"
)

// Report is one switch's report: what arrived of a snapshot.
type Report struct {
	epoch.Header
	Ports            []epoch.Port
	PortEpochs       []epoch.PortEpoch
	Flows            []epoch.Flow
	Meters           []epoch.Meter
	Pauses           []epoch.Pause
	Episodes         []epoch.CongestionEpisode
	PortPairBacklogs []epoch.PortPairBacklog
	FlowBacklogs     []epoch.FlowBacklog

	// Bytes is the size of the chunks that came, and Arrived when the last did.
	Bytes   model.Bytes
	Arrived model.Time
	// Missing counts chunks that have not arrived.
	Missing int
	chunks  []bool // by index
}

// Complete reports whether everything that the switch recorded is here: then
// what is not here is zero.
func (r *Report) Complete() bool {
	return r.Missing == 0 && r.Flags&epoch.Truncated == 0 && r.Dropped == 0
}

// Evidence is all reports on one detection.
type Evidence struct {
	Event   poll.Event
	Reports []*Report // by switch, the newest snapshot of each
	// PolledAt is when the poll came, for switches whose snapshot is older: it was
	// taken for another detection.
	PolledAt map[model.NodeID]model.Time
	// Pending are switches whose report refers to a snapshot that has not arrived.
	Pending []model.NodeID
}

// setPolledAt notes when a switch was polled, if that was not when it took its
// snapshot.
func (e *Evidence) setPolledAt(by snapshotRef) {
	delete(e.PolledAt, by.sw)
	if by.polledAt > by.at {
		if e.PolledAt == nil {
			e.PolledAt = map[model.NodeID]model.Time{}
		}
		e.PolledAt[by.sw] = by.polledAt
	}
}

// Complete reports whether every switch that reported did so in full.
func (e *Evidence) Complete() bool {
	return len(e.Pending) == 0 && !slices.ContainsFunc(e.Reports, func(r *Report) bool { return !r.Complete() })
}

// Stats account for chunks.
type Stats struct {
	Chunks     uint64
	Malformed  uint64
	Duplicates uint64
	Conflicts  uint64 // chunks that contradict others of their report
	Evicted    uint64 // detections that were evicted to keep to the capacity
}

// Collector assembles reports from chunks. Chunks may come in any order, twice,
// or not at all. It keeps a number of detections and evicts the oldest.
type Collector struct {
	max       int
	snapshots map[snapshotID]*Report
	events    map[poll.Event][]snapshotRef
	order     []poll.Event
	stats     Stats
}

type snapshotID struct {
	sw model.NodeID
	at model.Time
}

// snapshotRef refers to the snapshot that answers the poll of a detection, and
// says when the poll came.
type snapshotRef struct {
	snapshotID
	polledAt model.Time
}

// NewCollector returns a collector that keeps up to max detections.
func NewCollector(max int) (*Collector, error) {
	if max < 1 {
		return nil, fmt.Errorf("provenance: capacity of %d detections, want at least 1", max)
	}
	return &Collector{max: max, snapshots: map[snapshotID]*Report{}, events: map[poll.Event][]snapshotRef{}}, nil
}

// Stats returns the current counts.
func (c *Collector) Stats() Stats { return c.stats }

// ErrConflict is returned for a chunk that contradicts others of its report.
var ErrConflict = errors.New("provenance: chunk contradicts others of its report")

// AddChunk adds the data of one chunk, which arrived at a time of the
// collector's clock, and returns the detection it belongs to.
func (c *Collector) AddChunk(now model.Time, data []byte) (poll.Event, error) {
	var k epoch.Chunk
	if n, err := k.Parse(data); err != nil {
		c.stats.Malformed++
		return poll.Event{}, fmt.Errorf("provenance: chunk of %d bytes: %w", len(data), err)
	} else if n != len(data) {
		c.stats.Malformed++
		return poll.Event{}, fmt.Errorf("provenance: chunk of %d bytes, want %d", len(data), n)
	}
	id := snapshotID{k.Switch, k.Snapshot}
	if k.Flags&epoch.ByReference != 0 {
		c.stats.Chunks++
		c.addReference(k.Event, snapshotRef{id, pollTime(&k)})
		return k.Event, nil
	}
	r := c.snapshots[id]
	if r == nil {
		r = &Report{Header: k.Header, chunks: make([]bool, k.Total), Missing: int(k.Total)}
		c.snapshots[id] = r
	}
	if len(r.chunks) != int(k.Total) || r.Event != k.Event || r.EpochLength != k.EpochLength {
		c.stats.Conflicts++
		return k.Event, ErrConflict
	}
	if r.chunks[k.Index] {
		c.stats.Duplicates++
		return k.Event, nil
	}
	if err := r.addRecords(&k); err != nil {
		c.stats.Malformed++
		return k.Event, fmt.Errorf("provenance: switch %d, snapshot %v: %w", k.Switch, k.Snapshot, err)
	}
	r.chunks[k.Index] = true
	r.Bytes += model.Bytes(len(data))
	r.Arrived = max(r.Arrived, now)
	r.Missing--
	c.stats.Chunks++
	c.addReference(k.Event, snapshotRef{id, k.Snapshot})
	return k.Event, nil
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

// addReference notes that a snapshot answers the poll of a detection.
func (c *Collector) addReference(ev poll.Event, by snapshotRef) {
	list, known := c.events[ev]
	if !known {
		if len(c.order) == c.max {
			c.evict(c.order[0])
		}
		c.order = append(c.order, ev)
	}
	if !slices.ContainsFunc(list, by.sameSnapshot) {
		c.events[ev] = append(list, by)
	}
}

// sameSnapshot reports whether two references name one snapshot.
func (a snapshotRef) sameSnapshot(o snapshotRef) bool { return a.snapshotID == o.snapshotID }

// evict drops a detection and the snapshots that no other refers to.
func (c *Collector) evict(ev poll.Event) {
	c.stats.Evicted++
	gone := c.events[ev]
	delete(c.events, ev)
	c.order = slices.DeleteFunc(c.order, func(x poll.Event) bool { return x == ev })
	for _, by := range gone {
		used := false
		for _, list := range c.events {
			used = used || slices.ContainsFunc(list, by.sameSnapshot)
		}
		if !used {
			delete(c.snapshots, by.snapshotID)
		}
	}
}

// addRecords adds the records of a chunk: either all of them are valid or none
// is added.
func (r *Report) addRecords(k *epoch.Chunk) error {
	next := *r
	for it := k.Reader(); it.Next(); {
		if err := next.addRecord(it.Kind(), it.Record()); err != nil {
			return err
		}
	}
	next.Flags |= k.Flags
	next.Dropped = max(next.Dropped, k.Dropped)
	*r = next
	return nil
}

func (r *Report) addRecord(kind epoch.Kind, b []byte) (err error) {
	switch kind {
	case epoch.KindPort:
		r.Ports, err = appendRecord(r.Ports, b)
	case epoch.KindPortEpoch:
		r.PortEpochs, err = appendRecord(r.PortEpochs, b)
	case epoch.KindFlow4, epoch.KindFlow6:
		r.Flows, err = appendRecord(r.Flows, b)
	case epoch.KindMeter:
		r.Meters, err = appendRecord(r.Meters, b)
	case epoch.KindPause:
		r.Pauses, err = appendRecord(r.Pauses, b)
	case epoch.KindCongestionEpisode:
		r.Episodes, err = appendRecord(r.Episodes, b)
	case epoch.KindPortPairBacklog:
		r.PortPairBacklogs, err = appendRecord(r.PortPairBacklogs, b)
	case epoch.KindFlowBacklog4, epoch.KindFlowBacklog6:
		r.FlowBacklogs, err = appendRecord(r.FlowBacklogs, b)
	}
	return err
}

// appendRecord parses a record onto a list.
func appendRecord[T any, P interface {
	*T
	Parse([]byte) (int, error)
}](list []T, b []byte) ([]T, error) {
	if len(list) == cap(list) {
		list = slices.Grow(list, max(16, len(list))) // chunks hold a dozen or more records of most kinds
	}
	list = append(list, *new(T))
	_, err := P(&list[len(list)-1]).Parse(b) // in place: a variable would escape to the heap
	return list, err
}

// Evidence returns what has arrived about a detection.
func (c *Collector) Evidence(ev poll.Event) *Evidence {
	e := &Evidence{Event: ev}
	for _, by := range c.events[ev] {
		r := c.snapshots[by.snapshotID]
		if r == nil {
			e.Pending = append(e.Pending, by.sw)
			continue
		}
		i, found := slices.BinarySearchFunc(e.Reports, by.sw,
			func(r *Report, sw model.NodeID) int { return int(r.Switch) - int(sw) })
		switch {
		case !found:
			e.Reports = slices.Insert(e.Reports, i, r)
		case r.Snapshot > e.Reports[i].Snapshot:
			e.Reports[i] = r
		default:
			continue
		}
		e.setPolledAt(by)
	}
	slices.Sort(e.Pending)
	return e
}
