// Package label puts the state of egress ports into user packets as they pass
// and takes it out again at the last switch, which reports it. No packet is
// sent for it: a port that carries traffic is heard of once per interval, one
// that carries none is not.
//
// What the collector makes of the reports is analyze/coverage's work.
// Origin: docs/papers.md#int-label. Layout: docs/formats/label.md. Manual:
// docs/labels.md.
package label
