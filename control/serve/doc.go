// Package serve is Weft on a real fabric: control/core with sockets or a recording
// as input. Reports arrive over sockets in collector memory and from there at the
// controller, whose clock is the wall clock; findings are stored and served by the
// API. The caller provides the store; the analyses are analyze's.
// Manual: docs/serve.md.
package serve
