// Package discover makes a topology of what the nodes of a fabric say about their
// neighbours by LLDP, and says what does not fit together. It sends nothing: lldpd's answers
// are read here, those of gNMI targets in ingest/gnmi.
package discover
