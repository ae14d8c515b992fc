package epoch

import (
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// queue is the state of one class of one egress port.
type queue struct {
	pausedUntil  model.Time
	pauseFrames  uint64
	joined       uint64      // packets that ever did
	lastEpoch    uint32      // epoch in which the last one did
	busyPeriod   uint32      // counts the packets that found it empty: see occupancy
	episodeBytes model.Bytes // from which on a packet belongs to a wave

	pauses        epoch.Pause // Time without the present one
	episode       epoch.CongestionEpisode
	episodePeriod uint32 // busyPeriod in which that was
}

// pausedFor is the time that the queue has spent paused.
func (q *queue) pausedFor(now model.Time) time.Duration {
	if q.pauses.Pauses == 0 {
		return 0
	}
	return q.pauses.PausedTime + max(min(now, q.pausedUntil).Sub(q.pauses.LastStart), 0)
}

// extendEpisode notes a packet that found the queue deep, and not paused.
func (q *queue) extendEpisode(now model.Time, found model.Bytes) {
	if q.episodePeriod != q.busyPeriod || q.episode.MaxBytes == 0 {
		q.episodePeriod, q.episode = q.busyPeriod, epoch.CongestionEpisode{First: now}
	}
	q.episode.Last, q.episode.MaxBytes = now, max(q.episode.MaxBytes, uint64(found))
}

func (t *telemetry) queue(out model.PortID, class model.Priority) *queue {
	return &t.queues[lane(out, class)]
}

// onPause notes a pause frame that a neighbour sent to a port.
func (t *telemetry) onPause(ev *inswitch.Event) {
	t.advanceTo(ev.Now)
	for class := range model.Priority(classes) {
		d, ok := ev.Pause.ForClass(class)
		if !ok {
			continue
		}
		q := t.queue(ev.In, class)
		begins := d > 0 && (q.pauses.Pauses == 0 || ev.Now >= q.pausedUntil)
		if begins {
			p := &q.pauses
			if p.Pauses > 0 {
				p.LastEnd, p.PausedTime = q.pausedUntil, q.pausedFor(ev.Now)
			}
			if p.Pauses == 0 || ev.Now.Sub(p.LastEnd) > epoch.PauseBurstGap {
				p.BurstStart, p.BytesAtBurstStart = ev.Now, uint64(ev.Switch.Queue(ev.In, class).Bytes)
			}
			p.Pauses++
			p.LastStart = ev.Now
		}
		if q.pauses.Pauses > 0 && (d > 0 || ev.Now < q.pausedUntil) {
			q.pausedUntil = ev.Now.Add(d)
		}
		if d > 0 {
			q.pauseFrames++
			// A frame that prolongs a pause opens no epoch: where nothing
			// moves, the epochs in which it stopped stay.
			if begins || t.hasPortEpoch(ev.In, class) {
				t.portEpoch(ev.In, class).PauseFrames++
			}
		}
	}
}

// wasPaused reports whether packets at a port waited for a neighbour in the
// epochs that are kept, or do now; or in those before the last packet came by
// another port, if that one is silent since. Where a circle stands, what made
// it stand may be over, and it is the last that its queues know of.
func (t *telemetry) wasPaused(in, out model.PortID, now model.Time) bool {
	silent := t.now.number - t.lastArrivalEpoch[in]
	for class := range model.Priority(classes) {
		q := t.queue(out, class)
		if now < q.pausedUntil {
			return true
		}
		if silent > 0 && q.pauses.Pauses > 0 {
			oldest := t.now.start.Add(-time.Duration(int64(silent)+int64(t.cfg.Epochs)-1) * t.cfg.EpochLength)
			if q.pausedUntil >= oldest && now.Sub(q.pausedUntil) < pauseMemory {
				return true
			}
		}
		for i := range t.cfg.Epochs {
			e := &t.epochs[(i*(t.ports+1)+int(out))*classes+int(class)]
			if e.Port != 0 && e.Paused > 0 && t.isKept(e.Epoch) {
				return true
			}
		}
	}
	return false
}

// shouldReport reports whether what a queue did in an epoch is worth a word: in the
// epochs kept, counted from now, or from its last packet if it stands still
// since, or was paused not long ago. Nothing has overwritten those, and how it
// lastArrivalEpoch to stand, or others for it, is what one wants to know.
func (t *telemetry) shouldReport(number uint32, out model.PortID, class model.Priority, now model.Time) bool {
	if t.isKept(number) {
		return true
	}
	q := t.queue(out, class)
	return q.pauses.Pauses > 0 && now.Sub(q.pausedUntil) < pauseMemory && q.lastEpoch-number < uint32(t.cfg.Epochs)
}

// pauseMemory is for how long a queue that nothing joins any more is worth a word
// after its pauses: those whose host waited for it complain every few
// milliseconds.
const pauseMemory = 10 * time.Millisecond
