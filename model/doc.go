// Package model holds the words every room of Weft shares: ids, units, device
// time, and the FlowKey that names a flow. It computes nothing about a fabric
// and imports nothing of ours; a type belongs here once two rooms need it.
package model
