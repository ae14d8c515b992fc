package core

import (
	"unsafe"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// RecordMemory is how many bytes a queue has for each record that may wait: a flow
// on a path of four switches takes 250. Longer ones, such as traces of many hops, fill
// it with fewer.
const RecordMemory = 300

// minVerdictMemory is what diagnoses, and what incidents have in the smallest queue.
const minVerdictMemory = 4 * model.MiB

// QueueMemory is the most that a queue of a number of records takes: those that
// wait and those that are being written, with their diagnoses and incidents.
func QueueMemory(records int) model.Bytes {
	return 2 * (model.Bytes(records)*RecordMemory + 2*verdictMemory(records))
}

// verdictMemory is what diagnoses may take, and likewise incidents.
func verdictMemory(records int) model.Bytes {
	return max(model.Bytes(records)*RecordMemory/8, minVerdictMemory)
}

// Memory of records, without the names of nodes, which they share.

func flowMemory(r *record.FlowSlot) int {
	return int(unsafe.Sizeof(*r)) + cap(r.Path)*int(unsafe.Sizeof(record.FlowHop{}))
}

func traceMemory(r *record.Trace) int {
	return int(unsafe.Sizeof(*r)) + cap(r.Hops)*int(unsafe.Sizeof(record.TraceHop{})) + cap(r.Frame)
}

func fixedMemory[T any](r *T) int { return int(unsafe.Sizeof(*r)) }

func diagnosisMemory(r *record.Diagnosis) int { return int(unsafe.Sizeof(*r)) + cap(r.Body) }

func incidentMemory(r *record.Incident) int {
	return int(unsafe.Sizeof(*r)) + cap(r.Body) + len(r.Summary)
}

// newestWithin returns the last records that fit a number of bytes, and how many do
// not. The list that it was given stays as it is, readers may have it.
func newestWithin[T any](list []T, limit model.Bytes, size func(*T) int) (kept []T, others uint64) {
	sum, first := model.Bytes(0), len(list)
	for first > 0 {
		if sum += model.Bytes(size(&list[first-1])); sum > limit {
			break
		}
		first--
	}
	if first == 0 {
		return list, 0
	}
	return append([]T(nil), list[first:]...), uint64(first)
}
