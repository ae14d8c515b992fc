package truth

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Sample is one port over one interval, all priorities together.
type Sample struct {
	Queue  model.Bytes // at the end of the interval
	Peak   model.Bytes // maximum in it
	Sent   model.Bytes // bytes on the wire, including pause frames
	Paused engine.Time // in which at least one priority was paused
}

// Series are the samples of all switch ports.
type Series struct {
	Interval engine.Time
	Ports    []model.Port  // by node and number
	Times    []engine.Time // ends of the intervals
	samples  []Sample      // by time × port
}

// At returns the sample of Times[i] and Ports[port].
func (s *Series) At(i, port int) Sample { return s.samples[i*len(s.Ports)+port] }

// Share returns the share of an interval in which the port was paused, 0 to 1.
func (s *Series) Share(i, port int) float64 {
	return float64(s.At(i, port).Paused) / float64(s.Interval)
}

// sampler makes a Series. When it is full, every two samples become one of
// twice the interval: the whole run stays covered, in less detail.
type sampler struct {
	Series
	r       *Recorder
	rows    int     // maximum samples of one port, an even number
	indexes []int32 // by Series.Ports: in Network.Ports
	tick    func()

	// By index in Network.Ports.
	depth, peak []model.Bytes

	// By Series.Ports, as of the last sample.
	sent   []model.Bytes
	paused []engine.Time
}

func (r *Recorder) newSampler() *sampler {
	all := len(r.net.Ports())
	s := &sampler{r: r, depth: make([]model.Bytes, all), peak: make([]model.Bytes, all)}
	s.Interval = engine.Of(r.options.Sample)
	for i, p := range r.net.Ports() {
		if p.Switch() != nil {
			s.Ports = append(s.Ports, r.name(int32(i)))
			s.indexes = append(s.indexes, int32(i))
		}
	}
	s.sent, s.paused = make([]model.Bytes, len(s.Ports)), make([]engine.Time, len(s.Ports))
	s.rows = max(2, r.options.MaxSamples/max(1, len(s.Ports))&^1)
	s.tick = s.sample
	r.scheduleAfter(s.Interval, s.tick)
	return s
}

func (s *sampler) enqueued(port int32, p *sim.Packet) {
	s.depth[port] += model.Bytes(p.Size)
	s.peak[port] = max(s.peak[port], s.depth[port])
}

func (s *sampler) dequeued(port int32, p *sim.Packet) { s.depth[port] -= model.Bytes(p.Size) }

func (s *sampler) sample() {
	now := s.r.net.Now()
	if len(s.Times) == s.rows {
		s.addRow()
		// Half of a merged interval has passed: this sample waits for its end.
		s.r.scheduleAfter(s.Interval/2, s.tick)
		return
	}
	s.Times = append(s.Times, now)
	for i, port := range s.indexes {
		sent, paused := s.r.net.Ports()[port].TxData, s.r.pauses.pausedFor(port, now)
		s.samples = append(s.samples, Sample{
			Queue: s.depth[port], Peak: s.peak[port], Sent: sent - s.sent[i], Paused: paused - s.paused[i],
		})
		s.sent[i], s.paused[i], s.peak[port] = sent, paused, s.depth[port]
	}
	s.r.scheduleAfter(s.Interval, s.tick)
}

func (s *sampler) addRow() {
	ports := len(s.Ports)
	for i := range s.rows / 2 {
		s.Times[i] = s.Times[2*i+1]
		for j := range ports {
			a, b := s.samples[2*i*ports+j], s.samples[(2*i+1)*ports+j]
			s.samples[i*ports+j] = Sample{b.Queue, max(a.Peak, b.Peak), a.Sent + b.Sent, a.Paused + b.Paused}
		}
	}
	s.Times, s.samples = s.Times[:s.rows/2], s.samples[:s.rows/2*ports]
	s.Interval *= 2
}

// Series returns the samples taken so far, or nil if they are off. They belong
// to the Recorder.
func (r *Recorder) Series() *Series {
	if r.series == nil {
		return nil
	}
	return &r.series.Series
}
