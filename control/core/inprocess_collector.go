package core

import (
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// InProcessCollector is a collector without sockets and clocks: datagrams are put in by hand,
// go through a translator into memory of this process, and come out of its
// lists. One goroutine uses it.
type InProcessCollector struct {
	intake *translate.Intake
	router *translate.Router
	trans  *translate.Translator
	memory *translate.Memory
	inbox  *Inbox
	answer []byte
}

// NewInProcessCollector makes a line with memory for lists. Reports are gathered into batches
// for at most so long. Close must follow.
func NewInProcessCollector(lists list.Config, wait time.Duration) (_ *InProcessCollector, err error) {
	l := &InProcessCollector{intake: translate.NewIntake(translate.DefaultReporters)}
	rings, err := list.Open("", lists)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = rings.Region().Close()
		}
	}()
	l.memory = &translate.Memory{Lists: []*list.Table{rings}}
	local, err := translate.NewLocal(l.memory, 0, false, nil)
	if err != nil {
		return nil, err
	}
	gather := translate.DefaultConfig()
	gather.ListWait = wait
	if l.trans, err = translate.New(gather, local.Plan, local); err != nil {
		return nil, err
	}
	l.router = translate.NewRouter(translate.Limiter{}, l.trans)
	l.inbox, err = NewInbox(l.memory)
	return l, err
}

// Receive takes a datagram. Answers to reporters are made and go nowhere.
func (l *InProcessCollector) Receive(at model.Time, from netip.AddrPort, datagram []byte) {
	l.answer = l.intake.Take(at, from, datagram, l.router, l.answer[:0])
	l.router.Flush(at)
}

// Poll gives what has come since, and has waited for its batch long enough by
// now, to take, which must not keep the data.
func (l *InProcessCollector) Poll(now model.Time, take func(list dta.ListID, data []byte)) error {
	l.trans.Tick(now)
	_, err := l.inbox.Poll(take)
	return err
}

// Drain gives everything to take, at the end.
func (l *InProcessCollector) Drain(now model.Time, take func(list dta.ListID, data []byte)) error {
	l.trans.Drain(now)
	_, err := l.inbox.Poll(take)
	return err
}

// Intake accounts for datagrams and reports.
func (l *InProcessCollector) Intake() translate.IntakeStats { return l.intake.Stats() }

// Stored is how many reports are in memory, or being gathered.
func (l *InProcessCollector) Stored() uint64 { return l.intake.Stored() }

// Lost is how many reports were overwritten before they were polled.
func (l *InProcessCollector) Lost() uint64 { return l.inbox.Lost() }

// Close frees the memory.
func (l *InProcessCollector) Close() error { return l.memory.Lists[0].Region().Close() }
