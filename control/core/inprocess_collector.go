package core

import (
	"errors"
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/control/livestate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// InProcessCollector is a collector without sockets and clocks: the caller hands
// it datagrams, which go through a translator into memory of this process and
// are read from its lists. One goroutine uses it.
type InProcessCollector struct {
	intake     *translate.Intake
	router     *translate.Router
	translator *translate.Translator
	memory     *translate.Memory
	inbox      *Inbox
	answer     []byte
}

// NewInProcessCollector makes a collector with memory for lists and for keyed
// reports. Reports wait for their batch to fill for at most maxWait. Close must follow.
func NewInProcessCollector(lists list.Config, keyed livestate.Plan, maxWait time.Duration) (_ *InProcessCollector, err error) {
	c := &InProcessCollector{intake: translate.NewIntake(translate.DefaultReporters), memory: &translate.Memory{}}
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	rings, err := list.Open("", lists)
	if err != nil {
		return nil, err
	}
	c.memory.Lists = []*list.Table{rings}
	if err := keyed.Open(c.memory); err != nil {
		return nil, err
	}
	local, err := translate.NewLocalWriter(c.memory, 0, false, nil)
	if err != nil {
		return nil, err
	}
	cfg := translate.DefaultConfig()
	cfg.ListWait, cfg.Rows = maxWait, inProcessRows
	if c.translator, err = translate.New(cfg, local.Plan, local); err != nil {
		return nil, err
	}
	c.router = translate.NewRouter(translate.Limiter{}, c.translator)
	c.inbox, err = NewInbox(c.memory)
	return c, err
}

// inProcessRows is for the postcards of packets in flight, four rows each: it has few
// that share one if a hundred flows have some.
const inProcessRows = 1 << 14

// Memory is what reports are written to. It may be read until Close.
func (c *InProcessCollector) Memory() *translate.Memory { return c.memory }

// Receive takes a datagram. The answer to its reporter is discarded.
func (c *InProcessCollector) Receive(at model.Time, from netip.AddrPort, datagram []byte) {
	c.answer = c.intake.HandleDatagram(at, from, datagram, c.router, c.answer[:0])
	c.router.Flush(at)
}

// Poll hands every new report whose batch is full, or has waited long enough, to
// read, which must not keep the data.
func (c *InProcessCollector) Poll(now model.Time, read func(list dta.ListID, data []byte)) error {
	c.translator.Tick(now)
	_, err := c.inbox.Poll(read)
	return err
}

// Drain hands all remaining reports to read, at the end.
func (c *InProcessCollector) Drain(now model.Time, read func(list dta.ListID, data []byte)) error {
	c.translator.Drain(now)
	_, err := c.inbox.Poll(read)
	return err
}

// Intake accounts for datagrams and reports.
func (c *InProcessCollector) Intake() translate.IntakeStats { return c.intake.Stats() }

// Stored returns how many reports are in memory or in a batch that fills.
func (c *InProcessCollector) Stored() uint64 { return c.intake.Stored() }

// Lost returns how many reports were overwritten before they were polled.
func (c *InProcessCollector) Lost() uint64 { return c.inbox.Lost() }

// Close frees the memory.
func (c *InProcessCollector) Close() (err error) {
	for _, r := range c.memory.Regions() {
		err = errors.Join(err, r.Close())
	}
	return err
}
