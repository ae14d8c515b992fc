// Package traces plays a scenario whose switches mirror packets, beside a
// controller that gets the mirrors as they arrive. The controller sees reports
// and intended routes, nothing of the simulator's truth.
// Manual: docs/traces.md.
package traces
