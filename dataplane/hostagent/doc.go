// Package hostagent watches a host by its kernel's own counters: it takes snapshots,
// counts and logs what inhost/evidence says of them, and reports connections that are slow
// to the controller, which diagnoses them. It reads only.
// Guide: docs/agent.md#what-the-host-itself-shows.
package hostagent
