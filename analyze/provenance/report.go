package provenance

import (
	"slices"
	"unsafe"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
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
	Intervals        []epoch.Intervals
	BacklogHistories []epoch.BacklogHistory
	Settings         epoch.Settings // zero: it did not say, or that chunk has not arrived

	// Bytes is the size of the chunks that came, and Arrived when the last did.
	Bytes   model.Bytes
	Arrived model.Time
	// Missing counts chunks that have not arrived.
	Missing int
	total   int
	arrived []uint16 // indexes of chunks, ascending
}

// Complete reports whether everything that the switch recorded is here: then
// what is not here is zero.
func (r *Report) Complete() bool {
	return r.Missing == 0 && r.Flags&epoch.Truncated == 0 && r.Dropped == 0
}

// newReport returns the report of a chunk, of which nothing has arrived.
func newReport(k *epoch.Chunk) *Report {
	return &Report{Header: k.Header, total: int(k.Total), Missing: int(k.Total)}
}

// hasChunk reports whether a chunk has arrived, and where its index belongs.
func (r *Report) hasChunk(index uint16) (at int, found bool) {
	return slices.BinarySearch(r.arrived, index)
}

// memory returns what the report takes.
func (r *Report) memory() model.Bytes {
	return model.Bytes(unsafe.Sizeof(*r)) + memoryOf(r.Ports) + memoryOf(r.PortEpochs) + memoryOf(r.Flows) + memoryOf(r.Meters) +
		memoryOf(r.Pauses) + memoryOf(r.Episodes) + memoryOf(r.PortPairBacklogs) + memoryOf(r.FlowBacklogs) +
		memoryOf(r.Intervals) + memoryOf(r.BacklogHistories) + memoryOf(r.arrived)
}

func memoryOf[T any](list []T) model.Bytes {
	return model.Bytes(cap(list)) * model.Bytes(unsafe.Sizeof(*new(T)))
}

// withRecords returns the report with the records of a chunk: either all of them
// are valid or none is added.
func (r *Report) withRecords(k *epoch.Chunk) (Report, error) {
	next := *r
	for it := k.Reader(); it.Next(); {
		if err := next.addRecord(it.Kind(), it.Record()); err != nil {
			return Report{}, err
		}
	}
	next.Flags |= k.Flags
	next.Dropped = max(next.Dropped, k.Dropped)
	return next, nil
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
	case epoch.KindPauseIntervals, epoch.KindCongestionIntervals:
		r.Intervals, err = appendRecord(r.Intervals, b)
	case epoch.KindBacklogHistory:
		r.BacklogHistories, err = appendRecord(r.BacklogHistories, b)
	case epoch.KindSettings:
		var s epoch.Settings
		if _, err = s.Parse(b); err == nil && r.Settings != s && !r.Settings.IsZero() {
			err = ErrConflict
		}
		r.Settings = s
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
