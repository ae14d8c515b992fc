// Package keyed encodes the keys and values of keyed reports: the newest state of a
// port (Key-Write), counters of hosts (Key-Increment) and postcards of flows
// (Postcarding). Every key, or value of a key that switches share, names the switch
// that may report it, so that a collector can compare it with the reporter. Transport
// is wire/dta's. Layout: docs/formats/keyed.md.
package keyed
