// Package keyed encodes the keys and values of keyed reports: the newest state of a
// port (Key-Write) and counters of hosts (Key-Increment). Every key names the switch
// that may report it, so that a collector can compare it with the reporter. Transport
// is wire/dta's. Layout: docs/formats/keyed.md.
package keyed
