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
	busySince    model.Time  // when the last of them came
	episodeBytes model.Bytes // queue length from which a packet belongs to a congestion episode

	pauses        epoch.Pause // PausedTime without the current pause
	episode       epoch.CongestionEpisode
	episodePeriod uint32 // busyPeriod of the episode
	pausedPeriod  uint32 // busyPeriod of the last packet that was paused

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
			if queued > 0 {
				q.pausedPeriod = q.busyPeriod
			}
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
// the epochs kept, or are now; or whether a queue that has had packets in these
// epochs has not been empty since it was paused: what the pause left behind still
// delayed them. Or since packets of an ingress port that are still queued began to wait:
// in a deadlock the trigger may be over long ago.
func (t *telemetry) wasPaused(in, out model.PortID, now model.Time) bool {
	for class := range model.Priority(classes) {
		q := t.queue(out, class)
		if now < q.pausedUntil || q.pauses.Pauses > 0 && q.pausedPeriod == q.busyPeriod && t.isKept(q.lastEpoch) {
			return true
		}
		if q.pauses.Pauses > 0 && q.pausedUntil >= t.waitingSince(in, class, now) {
			return true
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

// waitingSince returns since when packets of an ingress port wait, of those that are
// queued: at the earliest since one of the queues that hold them was empty. now: none is.
func (t *telemetry) waitingSince(in model.PortID, class model.Priority, now model.Time) model.Time {
	since := now
	if t.occupancy.pairs[class] == nil {
		return since
	}
	for out := range model.PortID(t.ports + 1) {
		if h := t.occupancy.pair(in, out, class); t.occupancy.current(&h.backlog, out, class).packets > 0 {
			since = min(since, t.queue(out, class).busySince)
		}
	}
	return since
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

// pauseMemory is how long after its last pause the epochs of an idle queue are still
// reported, and its intervals if the switch's buffer is unknown: hosts whose flows waited for it repeat their requests every few milliseconds.
const pauseMemory = 10 * time.Millisecond
