// Package label puts the state of egress ports into user packets and strips it
// at the last switch, which reports it. No extra packet is sent: a port that
// carries traffic is reported once per interval, an idle port is not.
//
// analyze/coverage evaluates the reports. Origin: docs/papers.md#int-label.
// Layout: docs/formats/label.md. Manual: docs/labels.md.
package label
