// Package coverage keeps the state of every port that labels tell of: the
// newest, its history, its age, and how much of the fabric was heard of in
// each window. It also decides which ports should label more often. Labels are
// inswitch/label's; bringing reports and commands across is the controller's.
// Origin: docs/papers.md#int-label. Manual: docs/labels.md.
package coverage
