package inswitch

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/label"
)

// Actions is what a program wants done about one event. Programs call the
// methods; hosts and tests read the fields.
//
// A host carries them out when the program returns, before the next program
// runs, in this order: reports, clones, sends, changes of the packet, timers,
// verdict. Reports and clones thus show the packet as the program saw it.
//
// What an action points to (keys, data, contents, lists of ports) stays the
// program's: it must not change before Observe returns, and the host copies
// what it keeps. An action that makes no sense at a stage, or is impossible, is
// not done, and counted by the host.
//
// The memory is used again for every event, so that nothing is allocated.
type Actions struct {
	Verdict     Verdict
	Changes     Changes
	DSCP        uint8        // under ChangeDSCP
	ECN         uint8        // under ChangeECN
	LabelItem   label.Item   // under PushLabel
	LabelParams label.Params // under PushLabel

	Reports []dta.Report
	Clones  []Clone
	Sends   []Send
	Timers  []TimerRequest

	pending bool
}

// Verdict says how it goes on with a packet.
type Verdict uint8

// Verdicts. All but Pass end the packet's way here: programs behind do not see
// it.
const (
	Pass     Verdict = iota
	Drop             // lost, and counted so
	Consumed         // the program has used it up, as it does with a poll; no loss
)

// Changes of a packet, as a set. A host makes them in the order of the
// constants.
type Changes uint8

// The changes.
const (
	ChangeDSCP Changes = 1 << iota
	ChangeECN
	StripLabels
	PushLabel
)

// Has reports whether a change is wanted.
func (c Changes) Has(x Changes) bool { return c&x != 0 }

// Clone sends copies of the packet, labels and all, out of ports of the
// program's choice.
type Clone struct {
	Ports   []model.PortID
	Limit   int32 // cut to this many bytes; 0: whole
	Control bool  // by the queue that PFC never pauses, else by its own class
}

// Send sends a packet of the switch's own. The host writes the Ethernet
// header, and for IP those of IP and, under model.UDP, of UDP.
type Send struct {
	Ports     []model.PortID // a copy by each; none: by the one Key is routed to
	EtherType uint16         // of a packet that is not IP, else 0
	Key       model.FlowKey  // of an IP packet
	Content   []byte         // what follows the last header that the host writes
	TTL       uint8          // 0 means 64
	DSCP      uint8
	Priority  model.Priority
	Control   bool // by the queue that PFC never pauses
}

// TimerRequest asks for an event at Timer.
type TimerRequest struct {
	Delay time.Duration // by the switch's clock, from this event on
	Timer TimerID
}

// Drop ends the packet: it is lost.
func (a *Actions) Drop() { a.Verdict, a.pending = Drop, true }

// Consume ends the packet: the program has used it up.
func (a *Actions) Consume() { a.Verdict, a.pending = Consumed, true }

// SetDSCP rewrites the code point, 6 bits, of the first IP header.
func (a *Actions) SetDSCP(v uint8) { a.DSCP, a.Changes, a.pending = v&63, a.Changes|ChangeDSCP, true }

// SetECN rewrites the congestion bits of the first IP header.
func (a *Actions) SetECN(v uint8) { a.ECN, a.Changes, a.pending = v&3, a.Changes|ChangeECN, true }

// PushLabel puts a label on the packet, which grows by label.FirstGrowth or
// label.ItemSize, and returns it for the program to fill in. Ask
// Packet.CanPushLabel first: a label that finds no room is counted by the host,
// and the program learns nothing.
func (a *Actions) PushLabel(how label.Params) *label.Item {
	a.Changes |= PushLabel
	a.LabelItem, a.LabelParams, a.pending = label.Item{}, how, true
	return &a.LabelItem
}

// StripLabels takes all labels off. Read them with Packet.Labels before; a report may
// point into them.
func (a *Actions) StripLabels() { a.Changes, a.pending = a.Changes|StripLabels, true }

// Clone sends copies of the packet.
func (a *Actions) Clone(c Clone) { a.Clones, a.pending = append(a.Clones, c), true }

// Send sends a packet of the switch's own.
func (a *Actions) Send(s Send) { a.Sends, a.pending = append(a.Sends, s), true }

// Report sends a report to the collector.
func (a *Actions) Report(r dta.Report) { a.Reports, a.pending = append(a.Reports, r), true }

// SetTimer asks for an event at Timer when the switch's clock has gone on by d.
func (a *Actions) SetTimer(d time.Duration, id TimerID) {
	a.Timers, a.pending = append(a.Timers, TimerRequest{d, id}), true
}

// Pending reports whether anything is to be done.
func (a *Actions) Pending() bool { return a.pending }

// Reset forgets all actions and keeps the memory.
func (a *Actions) Reset() {
	a.Verdict, a.Changes, a.pending = Pass, 0, false
	a.Reports, a.Clones, a.Sends, a.Timers = a.Reports[:0], a.Clones[:0], a.Sends[:0], a.Timers[:0]
}
