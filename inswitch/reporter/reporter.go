// Package reporter turns a switch's reports into DTA datagrams: it packs and
// numbers them, keeps copies of those that may be resent, and handles a
// translator's refusals. It is a state machine: the host owns clock and socket,
// takes datagrams when it can send them, and passes in the answers. Nothing
// here blocks. When the host falls behind, reports are dropped and counted,
// never the packets that caused them. Origin: docs/papers.md#dta. Layout:
// docs/formats/dta.md.
package reporter

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Config configures one reporter towards one collector.
type Config struct {
	Reporter       model.NodeID
	FirstSeq       dta.Seq       // number of the first report: random, so that a restart is not taken for duplicates
	DatagramBytes  int           // maximum datagram: the MTU less IP and UDP headers
	MaxDatagrams   int           // datagrams that may wait for the host, at least 1
	Linger         time.Duration // how long a report waits for others; 0 sends when the host flushes
	HistoryBytes   int           // bytes of copies kept for resending; 0 keeps none
	MaxResends     int           // how often a report is resent at most
	Backoff        time.Duration // how long to wait after the translator rate-limited
	BeaconInterval time.Duration // send the next number after this long without a datagram; 0 never

	// Key authenticates datagrams and their answers; nil sends version 1. It must
	// not be used by others.
	Key *dta.MAC
	// Start is when the reporter begins to number, with a key: later than at any
	// earlier start, or its datagrams are taken for copies of older ones.
	Start model.Time
}

// DefaultConfig returns a configuration for a link with an MTU of 1500 bytes.
func DefaultConfig(of model.NodeID, first dta.Seq) Config {
	return Config{
		Reporter:       of,
		FirstSeq:       first,
		DatagramBytes:  1500 - 40 - 8, // IPv6, UDP
		MaxDatagrams:   64,
		Linger:         time.Millisecond,
		HistoryBytes:   256 << 10,
		MaxResends:     3,
		Backoff:        5 * time.Millisecond,
		BeaconInterval: 100 * time.Millisecond,
	}
}

// Check returns an error for the first field that is out of range.
func (c Config) Check() error {
	for _, f := range []struct {
		name        string
		have, least int
	}{
		{"datagram size", c.DatagramBytes, c.headerSize() + c.trailerSize()},
		{"datagram queue", c.MaxDatagrams, 1},
		{"linger", int(c.Linger), 0},
		{"history", c.HistoryBytes, 0},
		{"max resends", c.MaxResends, 0},
		{"backoff", int(c.Backoff), 0},
		{"beacon interval", int(c.BeaconInterval), 0},
	} {
		if f.have < f.least {
			return fmt.Errorf("reporter: %s %d, want at least %d", f.name, f.have, f.least)
		}
	}
	if c.Key != nil && c.Start <= 0 {
		return fmt.Errorf("reporter: start %d with a key, want the time of the start", c.Start)
	}
	return nil
}

// headerSize and trailerSize are what a datagram has beside reports.
func (c *Config) headerSize() int {
	return (&dta.Header{Signed: c.Key != nil}).Size()
}

func (c *Config) trailerSize() int {
	if c.Key != nil {
		return dta.MACSize
	}
	return 0
}

// Stats are the reporter's counters. Invariant: Reports = Packed + Malformed +
// TooLarge + Congested.
type Stats struct {
	Reports   uint64 // passed to AddReport
	Packed    uint64 // numbered, in a datagram
	Malformed uint64 // dropped: the report cannot be encoded
	TooLarge  uint64 // dropped: larger than a datagram
	Congested uint64 // dropped: the host did not take datagrams in time

	Datagrams uint64      // completed, resent ones and beacons included
	Bytes     model.Bytes // of their payload

	Stored        uint64           // acknowledged by the translator
	Refused       [Verdicts]uint64 // refused by the translator, by its reason
	Resent        uint64           // resent
	NoCopy        uint64           // refused and lost: no copy was kept
	Abandoned     uint64           // refused and lost: resent as often as allowed
	CopiesEvicted uint64           // copies evicted by newer ones
	Foreign       uint64           // answers to another reporter, or about numbers never sent
	Unverified    uint64           // datagrams of answers dropped, with a key: no MAC, a wrong one, or a copy
}

// Verdicts is the number of entries of Stats.Refused: one for every known
// verdict, and one for all others.
const Verdicts = int(dta.Unserved) + 2

// Reporter packs reports. It allocates nothing after New.
type Reporter struct {
	cfg     Config
	writer  dta.Writer
	history history
	stats   Stats

	// A ring of datagrams. ready of them, from oldest on, are complete; the
	// next one is being filled, unless all are complete.
	ring   [][]byte // lengths are those of complete datagrams
	oldest int
	ready  int

	due           model.Time // when the datagram being filled must be sent
	lastCompleted model.Time // when the last datagram was completed
	resendAfter   model.Time // nothing is resent before

	// With a key.
	sent     model.Time // send time of the last datagram
	answered model.Time // send time of the last datagram that was answered
}

// New returns a Reporter, or an error if its configuration is invalid.
func New(cfg Config) (*Reporter, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	r := &Reporter{
		cfg:     cfg,
		writer:  dta.NewSignedWriter(cfg.Reporter, cfg.FirstSeq, cfg.Key, cfg.Start),
		history: newHistory(cfg.HistoryBytes),
		// One more than may wait: the datagram being filled.
		ring: make([][]byte, cfg.MaxDatagrams+1),
	}
	for i := range r.ring {
		r.ring[i] = make([]byte, cfg.DatagramBytes)
	}
	r.writer.Begin(r.ring[0])
	return r, nil
}

// AddReport packs a copy of a report. It returns nil, or why the report was
// dropped: ErrCongested, dta.ErrTooLarge, or the error of the report's Check.
func (r *Reporter) AddReport(now model.Time, rep *dta.Report) error {
	r.stats.Reports++
	seq := r.writer.Seq()
	err := r.writer.AddReport(rep)
	if err == dta.ErrFull {
		if !r.Flush(now) {
			r.stats.Congested++
			return ErrCongested
		}
		err = r.writer.AddReport(rep)
	}
	switch {
	case err == dta.ErrTooLarge:
		r.stats.TooLarge++
		return err
	case err != nil:
		r.stats.Malformed++
		return err
	}
	r.stats.Packed++
	if rep.Retransmit {
		r.stats.CopiesEvicted += r.history.storeCopy(seq, rep)
	}
	if r.writer.Count() == 1 {
		r.due = now.Add(r.cfg.Linger)
	}
	if rep.Immediate {
		r.Flush(now)
	}
	return nil
}

// Flush completes the current datagram, if it holds a report. It returns false
// if the next one cannot be started because the host has not sent any datagram
// of the queue.
func (r *Reporter) Flush(now model.Time) bool {
	if r.writer.Count() == 0 {
		return true
	}
	return r.complete(now)
}

// complete ends the current datagram, even if it is empty.
func (r *Reporter) complete(now model.Time) bool {
	if r.ready == r.cfg.MaxDatagrams {
		return false
	}
	at := (r.oldest + r.ready) % len(r.ring)
	r.ring[at] = r.writer.FinishAt(r.stamp(now))
	r.completed(now, at)
	return true
}

// stamp returns the send time of a datagram: now, and later than of any before,
// since answers name a datagram by it.
func (r *Reporter) stamp(now model.Time) model.Time {
	r.sent = max(now, r.sent+1)
	return r.sent
}

// completed makes the datagram at this index of the ring ready, and begins the
// next.
func (r *Reporter) completed(now model.Time, at int) {
	r.stats.Datagrams++
	r.stats.Bytes += model.Bytes(len(r.ring[at]))
	r.ready++
	r.lastCompleted = now
	next := (at + 1) % len(r.ring)
	r.ring[next] = r.ring[next][:cap(r.ring[next])]
	r.writer.Begin(r.ring[next])
}

// Tick completes a datagram that has lingered, resends what was refused, and
// sends a beacon with the next number after a silence. A host calls it about as
// often as Config.Linger.
func (r *Reporter) Tick(now model.Time) {
	if r.writer.Count() > 0 && now >= r.due {
		r.Flush(now)
	}
	if now >= r.resendAfter {
		r.resend(now)
	}
	if r.cfg.BeaconInterval > 0 && r.stats.Packed > 0 && r.ready == 0 && r.writer.Count() == 0 &&
		now.Sub(r.lastCompleted) >= r.cfg.BeaconInterval {
		r.complete(now)
	}
}

// PendingReports returns how many reports are in the current datagram.
func (r *Reporter) PendingReports() int { return r.writer.Count() }

// ReadyDatagrams returns how many datagrams the host can send.
func (r *Reporter) ReadyDatagrams() int { return r.ready }

// Datagram returns the i-th of the ready datagrams, the oldest being 0. It is
// valid until it is released.
func (r *Reporter) Datagram(i int) []byte {
	if i < 0 || i >= r.ready {
		panic(fmt.Sprintf("reporter: datagram %d of %d", i, r.ready))
	}
	return r.ring[(r.oldest+i)%len(r.ring)]
}

// Release returns the n oldest datagrams to the ring: the host has sent or
// dropped them.
func (r *Reporter) Release(n int) {
	if n < 0 || n > r.ready {
		panic(fmt.Sprintf("reporter: release %d of %d", n, r.ready))
	}
	r.oldest = (r.oldest + n) % len(r.ring)
	r.ready -= n
}

// Stats returns the current counters.
func (r *Reporter) Stats() Stats { return r.stats }
