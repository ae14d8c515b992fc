// Package live plays a simulated fabric for as long as somebody watches: traffic
// without end, all telemetry on, every report through DTA into memory, and a
// controller that reads it from there. A director breaks something from time to
// time. The controller sees reports only; that a fault was put in is known to
// the director alone, who compares.
package live
