package dta

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
)

var polling = claim.Claim{
	ID: "dta-list-polling", Where: "figure 16",
	Says:      "collecting at half capacity in batches of 16 does not slow the reading of lists, nor does reading slow collecting: each has this share of its rate alone; entries are read faster than they are collected",
	Published: "no noticeable impact; 8 cores read all of the 1.2 G/s that batches of 16 bring",
	Run:       runPolling,
	Mutations: []claim.Mutation{lockFree},
}

// poller reads a ring over and over, as fast as it can.
type poller struct {
	t      *list.Table
	cursor list.Cursor
	buf    []byte
	sum    uint64    // of entries, so that they are really read
	lock   *spinLock // shared with the collector; nil: none
}

// spinLock is held by one at a time; others wait on their core.
type spinLock struct{ held atomic.Bool }

func (l *spinLock) acquire() {
	for l != nil && !l.held.CompareAndSwap(false, true) {
	}
}

func (l *spinLock) release() {
	if l != nil {
		l.held.Store(false)
	}
}

// poll reads at least a number of entries. When it has reached the head it starts
// again with the oldest, so it never waits for the writer.
func (p *poller) poll(entries int) error {
	for read := 0; read < entries; {
		raw, err := p.t.Read(p.buf[:0], &p.cursor, cap(p.buf)/4)
		if err != nil {
			return err
		}
		if len(raw) == 0 {
			lost := p.cursor.Lost
			if p.cursor, err = p.t.CursorAtOldest(0); err != nil {
				return err
			}
			p.cursor.Lost = lost
			continue
		}
		for i := 0; i+4 <= len(raw); i += 4 {
			p.sum += uint64(binary.LittleEndian.Uint32(raw[i:]))
		}
		read += len(raw) / 4
	}
	return nil
}

// collector appends batches of 16.
type collector struct {
	w     *list.Writer
	burst int // at half capacity: entries before it pauses for as long as they took
	ready [4 * ofSixteen]byte
	lock  *spinLock
}

func (c *collector) collect(entries int) error {
	c.lock.acquire()
	defer c.lock.release()
	for i := 0; i < entries; i += ofSixteen {
		c.ready[0]++
		if err := c.w.Append(0, c.ready[:]); err != nil {
			return err
		}
	}
	return nil
}

// collectAtHalfRate collects at half capacity until stop, once at least, and returns how many
// entries it appended and the CPU time of its thread.
func (c *collector) collectAtHalfRate(stop *atomic.Bool) (entries int, took time.Duration, err error) {
	for first := true; (first || !stop.Load()) && err == nil; first = false {
		work := claim.Thread(func() { err = c.collect(c.burst) })
		took += work
		if c.lock == nil || !stop.Load() { // what was appended after the reading is not beside it
			entries += c.burst
		}
		time.Sleep(work)
	}
	return entries, took, err
}

// readWhileCollecting reads while a collector runs and returns both rates, and
// how many million entries were collected per second of wall-clock time.
func readWhileCollecting(p *poller, c *collector, entries int) (read, collected, daily float64, err error) {
	var (
		stop     atomic.Bool
		worker   sync.WaitGroup
		appended int
		writing  time.Duration
		failed   error
	)
	start := time.Now()
	worker.Go(func() { appended, writing, failed = c.collectAtHalfRate(&stop) })
	reading := claim.Thread(func() {
		// Held for all of it, so that the collector waits whenever both run: if they took
		// turns, a busy machine that runs one at a time would hide the lock.
		p.lock.acquire()
		err = p.poll(entries)
		stop.Store(true)
		p.lock.release()
	})
	worker.Wait()
	daily = millions(appended, time.Since(start))
	if err == nil {
		err = failed
	}
	return millions(entries, reading), millions(appended, writing), daily, err
}

func runPolling(ctx context.Context, o claim.Options) (claim.Result, error) {
	entries := o.Pick(1<<27, 1<<26)
	const capacity = 1 << 20
	turns := rounds
	if o.Broken() {
		entries, turns = 1<<24, 1
	}
	res := claim.Result{Notes: []string{
		fmt.Sprintf("a ring of %d entries of 4 bytes, one core that reads and sums them and one that appends half of the time", capacity),
		"times are CPU times of each thread, so that other load on the machine matters little; the best of 5 rounds, alternating between alone and together",
		"the reader starts again with the oldest entry when it has read all, so that it is never idle, as in the paper",
		"passes if reading and collecting at the same time each have at least 0.8 of their rate alone, and a core reads faster than one collects through the translator, as Weft does",
		"ready-made batches are written to memory faster than a core reads: half of that rate is collected meanwhile",
	}}
	t, err := openLists(1, capacity, ofSixteen, 4)
	if err != nil {
		return res, err
	}
	defer t.Region().Close()
	p, c := &poller{t: t, buf: make([]byte, 0, 4*4096)}, &collector{w: t.Writer(0), burst: 2 * capacity}
	if err := c.collect(2 * capacity); err != nil {
		return res, err
	}
	together := (*spinLock)(nil)
	if o.Without(lockFree) {
		together = &spinLock{}
	}
	m := &timing{o: o}
	m.addTranslator(t, appendRun{batch: ofSixteen, entry: 4, spread: alone})
	rate, err := m.rates()
	if err != nil {
		return res, err
	}
	through := rate[0]
	var meanwhile, readAlone, readBeside, wroteAlone, wroteBeside float64
	for i := range turns {
		o.Report(float64(i)/float64(turns), "reading and collecting")
		p.lock, c.lock = nil, nil
		took := claim.Thread(func() { err = p.poll(entries) })
		if err != nil {
			return res, err
		}
		readAlone = max(readAlone, millions(entries, took))
		took = claim.Thread(func() { err = c.collect(entries) })
		if err != nil {
			return res, err
		}
		wroteAlone = max(wroteAlone, millions(entries, took))
		p.lock, c.lock = together, together
		read, wrote, daily, err := readWhileCollecting(p, c, entries)
		if err != nil {
			return res, err
		}
		meanwhile = max(meanwhile, daily)
		readBeside, wroteBeside = max(readBeside, read), max(wroteBeside, wrote)
	}
	table := claim.Table{
		Title:  "million entries a second of one core",
		Header: []string{"", "alone", "together", "share"},
	}
	row := func(name string, alone, both float64) float64 {
		table.Row(name, fmt.Sprintf("%.4g", alone), fmt.Sprintf("%.4g", both), fmt.Sprintf("%.2f", both/alone))
		return both / alone
	}
	reading, collecting := row("reading", readAlone, readBeside), row("collecting", wroteAlone, wroteBeside)
	table.Row("collecting through the translator", fmt.Sprintf("%.4g", through), "", "")
	res.Pass = reading >= 0.8 && collecting >= 0.8 && readBeside > through
	res.Measured = fmt.Sprintf("%.2f of reading and %.2f of collecting; a core reads %.4g M/s while %.4g M/s are collected, %.1f times what one collects through the translator", reading, collecting, readBeside, meanwhile, readBeside/through)
	res.Tables = []claim.Table{table}
	res.Plots = []claim.Plot{{Chart: plot.Chart{
		Title: "Reading lists while collecting", YTitle: "million entries/s", Groups: []string{"reading", "collecting"},
		Series: []plot.Series{
			{Name: "alone", Y: []float64{readAlone, wroteAlone}},
			{Name: "together", Y: []float64{readBeside, wroteBeside}},
		},
	}}}
	return res, ctx.Err()
}
