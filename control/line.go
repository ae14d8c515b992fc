package control

import (
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Line is a collector without sockets and clocks: datagrams are put in by hand,
// go through a translator into memory of this process, and come out of its
// lists. One goroutine uses it.
type Line struct {
	intake *translate.Intake
	router *translate.Router
	trans  *translate.Translator
	memory *translate.Memory
	inbox  *Inbox
	answer []byte
}

// NewLine makes a line with memory for lists. Reports are gathered into batches
// for at most so long. Close must follow.
func NewLine(lists list.Config, wait time.Duration) (_ *Line, err error) {
	l := &Line{intake: translate.NewIntake(translate.DefaultReporters)}
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

// Put takes a datagram. Answers to reporters are made and go nowhere.
func (l *Line) Put(at model.Time, from netip.AddrPort, datagram []byte) {
	l.answer = l.intake.Take(at, from, datagram, l.router, l.answer[:0])
	l.router.Flush(at)
}

// Poll gives what has come since, and has waited for its batch long enough by
// now, to take, which must not keep the data.
func (l *Line) Poll(now model.Time, take func(list dta.ListID, data []byte)) error {
	l.trans.Tick(now)
	_, err := l.inbox.Poll(take)
	return err
}

// Drain gives everything to take, at the end.
func (l *Line) Drain(now model.Time, take func(list dta.ListID, data []byte)) error {
	l.trans.Drain(now)
	_, err := l.inbox.Poll(take)
	return err
}

// Intake accounts for datagrams and reports.
func (l *Line) Intake() translate.IntakeStats { return l.intake.Stats() }

// Stored is how many reports are in memory, or being gathered.
func (l *Line) Stored() uint64 { return l.intake.Stored() }

// Lost is how many reports were overwritten before they were polled.
func (l *Line) Lost() uint64 { return l.inbox.Lost() }

// Close frees the memory.
func (l *Line) Close() error { return l.memory.Lists[0].Region().Close() }
