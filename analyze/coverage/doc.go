// Package coverage keeps the state of every port that labels report: the newest,
// its history, its age, and the share of the fabric that was labelled in each
// window. It also decides which ports should label more often. Labels are
// written by inswitch/label; the controller transports reports and commands.
// Origin: docs/papers.md#int-label. Manual: docs/labels.md.
package coverage
