package inswitch

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/label"
)

// Actions are what a program requests in response to one event. Programs call
// the methods; hosts and tests read the fields.
//
// A host carries them out when the program returns, before the next program
// runs, in this order: reports, clones, sends, changes of the packet, timers,
// verdict. Reports and clones thus show the packet before the changes.
//
// What an action points to (keys, data, contents, lists of ports) remains the
// program's: it must not change before Observe returns, and the host copies
// what it keeps. The host refuses and counts an action that is impossible, or
// not allowed at a stage.
//
// The memory is reused for every event, so that nothing is allocated.
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

// Verdict is what happens to a packet after a program.
type Verdict uint8

// Verdicts. After any but Pass, later programs do not see the packet.
const (
	Pass     Verdict = iota
	Drop             // discarded, and counted as a drop
	Consumed         // the program has consumed it, such as a poll; not a drop
)

// Changes is a set of changes to a packet. A host makes them in the order of the
// constants.
type Changes uint8

// The changes.
const (
	ChangeDSCP Changes = 1 << iota
	ChangeECN
	StripLabels
	PushLabel
)

// Has reports whether a change is requested.
func (c Changes) Has(x Changes) bool { return c&x != 0 }

// Clone sends copies of the packet, labels included, out of the given ports.
type Clone struct {
	Ports   []model.PortID
	Limit   int32 // truncate to this many bytes; 0: whole packet
	Control bool  // use the queue that PFC never pauses, else the packet's priority
}

// Send sends a packet that the switch originates. The host writes the Ethernet
// header, and for IP the IP header and, under model.UDP, the UDP header.
type Send struct {
	Ports     []model.PortID // one copy each; none: the port that Key is routed to
	EtherType uint16         // of a packet that is not IP, else 0
	Key       model.FlowKey  // of an IP packet
	Content   []byte         // the bytes after the last header that the host writes
	TTL       uint8          // 0 means 64
	DSCP      uint8
	Priority  model.Priority
	Control   bool // use the queue that PFC never pauses
}

// TimerRequest asks for an event at Timer.
type TimerRequest struct {
	Delay time.Duration // from this event on, by the switch's clock
	Timer TimerID
}

// Drop discards the packet.
func (a *Actions) Drop() { a.Verdict, a.pending = Drop, true }

// Consume removes the packet without counting a drop: it was for the program.
func (a *Actions) Consume() { a.Verdict, a.pending = Consumed, true }

// SetDSCP rewrites the DSCP, 6 bits, of the first IP header.
func (a *Actions) SetDSCP(v uint8) { a.DSCP, a.Changes, a.pending = v&63, a.Changes|ChangeDSCP, true }

// SetECN rewrites the ECN bits of the first IP header.
func (a *Actions) SetECN(v uint8) { a.ECN, a.Changes, a.pending = v&3, a.Changes|ChangeECN, true }

// PushLabel puts a label on the packet, which grows by label.FirstGrowth or
// label.ItemSize, and returns it for the program to fill in. Ask
// Packet.CanPushLabel first: the host counts a label that cannot be pushed, and
// the program is not notified.
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

// Send sends a packet that the switch originates.
func (a *Actions) Send(s Send) { a.Sends, a.pending = append(a.Sends, s), true }

// Report sends a report to the collector.
func (a *Actions) Report(r dta.Report) { a.Reports, a.pending = append(a.Reports, r), true }

// SetTimer requests an event at Timer after d, by the switch's clock.
func (a *Actions) SetTimer(d time.Duration, id TimerID) {
	a.Timers, a.pending = append(a.Timers, TimerRequest{d, id}), true
}

// Pending reports whether any action was requested.
func (a *Actions) Pending() bool { return a.pending }

// Reset removes all actions and keeps the memory.
func (a *Actions) Reset() {
	a.Verdict, a.Changes, a.pending = Pass, 0, false
	a.Reports, a.Clones, a.Sends, a.Timers = a.Reports[:0], a.Clones[:0], a.Sends[:0], a.Timers[:0]
}
