// Package model holds the types that all packages of Weft share: ids, units,
// device time, and the FlowKey that names a flow. It computes nothing about a
// fabric and imports no other package of Weft; a type belongs here once two
// top-level folders need it.
package model
