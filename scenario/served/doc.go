// Package served reads what a running controller knows of its fabric, over the API, in
// the form of a scenario: the topology, and the flows of a time range with their rates
// and paths. It knows nothing that an operator's own client could not read.
package served
