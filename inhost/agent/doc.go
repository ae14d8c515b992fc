// Package agent detects slow flows at the sending host and requests their
// diagnosis: it makes the polling packet that switches forward towards the
// cause. It watches round-trip times, the age of unacknowledged packets (in a
// deadlock none is ever acknowledged), rates and completion times; it can also
// poll flows periodically.
//
// inswitch/epoch handles the packet in switches. Origin:
// docs/papers.md#hawkeye. Layout: docs/formats/poll.md.
package agent
