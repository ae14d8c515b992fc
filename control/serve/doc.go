// Package serve is Weft on a real fabric: reports come in over sockets, into the
// collector's memory and from there to the controller, whose clock is the
// wall's; what it finds is kept in a store and shown by the API. The store is
// given by who opens one; the analyses are analyze's. Manual: docs/serve.md.
package serve
