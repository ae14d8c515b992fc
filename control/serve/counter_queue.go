package serve

import (
	"sync"
	"unsafe"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
)

// counterQueue carries readings, packet samples and flow records from their sockets to the controller's
// goroutine. It copies them and never blocks: what does not fit is counted.
type counterQueue struct {
	mu      sync.Mutex
	waiting counterBatch
	stats   counterQueueStats

	taken counterBatch // of the goroutine that polls
}

type counterBatch struct {
	readings []portstat.Reading
	samples  []portstat.Sample
	flows    []portstat.FlowRecord
}

// counterQueueStats account for what was put into a queue.
// Invariant: In = Out + Shed + waiting.
type counterQueueStats struct{ In, Out, Shed uint64 }

// Bounds of a queue. 32,768 readings are those of 500 switches with 64 ports at once; 65,536
// samples are what 50,000 samples a second need of a controller that works for a
// second at something else, and 32,768 flow records likewise.
const (
	maxReadings = 1 << 15
	maxSamples  = 1 << 16
	maxFlows    = 1 << 15
)

// counterQueueMemory is that of a full queue and of one that is being read; slices grow by a quarter.
const counterQueueMemory = model.Bytes(maxReadings*unsafe.Sizeof(portstat.Reading{})+maxSamples*unsafe.Sizeof(portstat.Sample{})+
	maxFlows*unsafe.Sizeof(portstat.FlowRecord{})) * 2 * 5 / 4

// addReading puts a copy of a reading into the queue.
func (q *counterQueue) addReading(r *portstat.Reading) {
	add(q, &q.waiting.readings, maxReadings, r)
}

// addSample puts a copy of a sample into the queue.
func (q *counterQueue) addSample(s *portstat.Sample) { add(q, &q.waiting.samples, maxSamples, s) }

// addFlow puts a copy of a flow record into the queue.
func (q *counterQueue) addFlow(r *portstat.FlowRecord) { add(q, &q.waiting.flows, maxFlows, r) }

func add[T any](q *counterQueue, list *[]T, most int, one *T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stats.In++
	if len(*list) >= most {
		q.stats.Shed++
		return
	}
	*list = append(*list, *one)
}

// poll hands over what waits, and returns its number.
func (q *counterQueue) poll(reading func(r *portstat.Reading), sample func(s *portstat.Sample), flow func(r *portstat.FlowRecord)) int {
	q.mu.Lock()
	q.taken, q.waiting = q.waiting, counterBatch{q.taken.readings[:0], q.taken.samples[:0], q.taken.flows[:0]}
	n := len(q.taken.readings) + len(q.taken.samples) + len(q.taken.flows)
	q.stats.Out += uint64(n)
	q.mu.Unlock()
	for i := range q.taken.readings {
		reading(&q.taken.readings[i])
	}
	for i := range q.taken.samples {
		sample(&q.taken.samples[i])
	}
	for i := range q.taken.flows {
		flow(&q.taken.flows[i])
	}
	return n
}

// stage accounts for the queue.
func (q *counterQueue) stage() api.Stage {
	q.mu.Lock()
	defer q.mu.Unlock()
	st := q.stats
	return api.Stage{
		Name: "counters", Title: "Counters, packet samples and flow records", Unit: "records", In: st.In, Out: st.Out, Queued: int(st.In - st.Out - st.Shed),
		Losses: []api.StageLoss{{Reason: "shed", About: "the analyses were too slow", Count: st.Shed}},
	}
}
