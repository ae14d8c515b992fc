// Package evidence says what a host's own counters show, without any switch: whether it
// is this host, its NIC, the cable, congestion in the fabric, or the peer that makes
// flows slow. It compares two snapshots; dataplane/hostcounters takes them.
// Guide: docs/agent.md#what-the-host-itself-shows.
package evidence
