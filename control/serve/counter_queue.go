package serve

import (
	"sync"
	"unsafe"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
)

// counterQueue carries readings and packet samples from their sockets to the controller's
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
}

// counterQueueStats account for what was put into a queue.
// Invariant: In = Out + Shed + waiting.
type counterQueueStats struct{ In, Out, Shed uint64 }

// Bounds of a queue. 32,768 readings are those of 500 switches with 64 ports at once; 65,536
// samples are what 50,000 samples a second need of a controller that works for a
// second at something else.
const (
	maxReadings = 1 << 15
	maxSamples  = 1 << 16
)

// counterQueueMemory is that of a full queue and of one that is being read; slices grow by a quarter.
const counterQueueMemory = model.Bytes(maxReadings*unsafe.Sizeof(portstat.Reading{})+maxSamples*unsafe.Sizeof(portstat.Sample{})) * 2 * 5 / 4

// addReading puts a copy of a reading into the queue.
func (q *counterQueue) addReading(r *portstat.Reading) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stats.In++
	if len(q.waiting.readings) >= maxReadings {
		q.stats.Shed++
		return
	}
	q.waiting.readings = append(q.waiting.readings, *r)
}

// addSample puts a copy of a sample into the queue.
func (q *counterQueue) addSample(s *portstat.Sample) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stats.In++
	if len(q.waiting.samples) >= maxSamples {
		q.stats.Shed++
		return
	}
	q.waiting.samples = append(q.waiting.samples, *s)
}

// poll hands over what waits, and returns its number.
func (q *counterQueue) poll(reading func(r *portstat.Reading), sample func(s *portstat.Sample)) int {
	q.mu.Lock()
	q.taken, q.waiting = q.waiting, counterBatch{q.taken.readings[:0], q.taken.samples[:0]}
	n := len(q.taken.readings) + len(q.taken.samples)
	q.stats.Out += uint64(n)
	q.mu.Unlock()
	for i := range q.taken.readings {
		reading(&q.taken.readings[i])
	}
	for i := range q.taken.samples {
		sample(&q.taken.samples[i])
	}
	return n
}

// stage accounts for the queue.
func (q *counterQueue) stage() api.Stage {
	q.mu.Lock()
	defer q.mu.Unlock()
	st := q.stats
	return api.Stage{
		Name: "counters", Title: "Counters and packet samples", Unit: "records", In: st.In, Out: st.Out, Queued: int(st.In - st.Out - st.Shed),
		Losses: []api.StageLoss{{Reason: "shed", About: "the analyses were too slow", Count: st.Shed}},
	}
}
