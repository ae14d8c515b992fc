// Package nats is a stream on NATS JetStream, for several processes: an embedded server,
// or a cluster by its URL. A partition is a subject of one JetStream stream, whose
// messages are deleted when they are acknowledged. Publishers send one batch of a
// partition at a time, so that its order holds whatever fails. Leases are keys of a
// key-value bucket that expire. Manual: docs/stream.md.
package nats
