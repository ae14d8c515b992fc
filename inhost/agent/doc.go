// Package agent notices at the sending host that a flow suffers, and asks for
// the reason: it makes the polling packet that switches pass on to the cause.
// It watches round-trip times, the age of what is not acknowledged (in a
// deadlock nothing ever is), rates and completion times; it can also poll
// flows in turn without a complaint.
//
// What switches do with the packet is inswitch/epoch's work.
// Origin: docs/papers.md#hawkeye. Layout: docs/formats/poll.md.
package agent
