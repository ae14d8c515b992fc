package epoch

import (
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// queue is the state of one priority of one egress port.
type queue struct {
	pausedUntil  model.Time
	pauseFrames  uint64
	joined       uint64      // packets ever enqueued
	lastEpoch    uint32      // epoch of the last enqueued packet
	busyPeriod   uint32      // number of packets that found it empty: see occupancy
	episodeBytes model.Bytes // queue length from which a packet belongs to a congestion episode

	pauses        epoch.Pause // PausedTime without the current pause
	episode       epoch.CongestionEpisode
	episodePeriod uint32 // busyPeriod of the episode

	congested      bool        // the last congestion interval may continue
	belowThreshold bool        // though the queue is below the threshold
	peak           model.Bytes // of that interval; in history, too, which most packets need not touch
	history        *history    // nil: never paused or congested
}

// pausedFor returns the total time that the queue was paused.
func (q *queue) pausedFor(now model.Time) time.Duration {
	if q.pauses.Pauses == 0 {
		return 0
	}
	return q.pauses.PausedTime + max(min(now, q.pausedUntil).Sub(q.pauses.LastStart), 0)
}

// extendEpisode records a packet that found the queue congested and not paused.
func (q *queue) extendEpisode(now model.Time, found model.Bytes) {
	if q.episodePeriod != q.busyPeriod || q.episode.MaxBytes == 0 {
		q.episodePeriod, q.episode = q.busyPeriod, epoch.CongestionEpisode{First: now}
	}
	q.episode.Last, q.episode.MaxBytes = now, max(q.episode.MaxBytes, uint64(found))
	q.foundCongested(now, found)
}

func (t *telemetry) queue(out model.PortID, class model.Priority) *queue {
	return &t.queues[lane(out, class)]
}

// onPause records a pause frame that a neighbour sent to a port.
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
			p, queued := &q.pauses, ev.Switch.Queue(ev.In, class).Bytes
			q.beginPause(ev.Now, queued)
			if p.Pauses > 0 {
				p.LastEnd, p.PausedTime = q.pausedUntil, q.pausedFor(ev.Now)
			}
			if p.Pauses == 0 || ev.Now.Sub(p.LastEnd) > epoch.PauseBurstGap {
				p.BurstStart, p.BytesAtBurstStart = ev.Now, uint64(queued)
			}
			p.Pauses++
			p.LastStart = ev.Now
		}
		if q.pauses.Pauses > 0 && (d > 0 || ev.Now < q.pausedUntil) {
			q.pausedUntil = ev.Now.Add(d)
		}
		if d > 0 {
			q.pauseFrames++
			// A frame that extends a pause opens no epoch: in a stalled queue,
			// the epochs before the stall are kept.
			if begins || t.hasPortEpoch(ev.In, class) {
				t.portEpoch(ev.In, class).PauseFrames++
			}
		}
	}
}

// wasPaused reports whether packets at a port were paused by the neighbour in
// the epochs kept, or are now; or in the epochs before the last packet of an
// ingress port, if that port has been silent since. In a deadlock the trigger
// may be over, and these epochs are the last that the queues recorded.
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

// shouldReport reports whether the epoch's counters are exported: the epochs
// kept, counted from now, or from the queue's last packet if it is stalled
// since or was paused within pauseMemory. Nothing has overwritten those epochs,
// and they show how the queue, or others because of it, came to stall.
func (t *telemetry) shouldReport(number uint32, out model.PortID, class model.Priority, now model.Time) bool {
	if t.isKept(number) {
		return true
	}
	q := t.queue(out, class)
	return q.pauses.Pauses > 0 && now.Sub(q.pausedUntil) < pauseMemory && q.lastEpoch-number < uint32(t.cfg.Epochs)
}

// pauseMemory is how long after its last pause an idle queue is still reported:
// hosts whose flows waited for it repeat their requests every few milliseconds.
const pauseMemory = 10 * time.Millisecond
