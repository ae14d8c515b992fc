// Package portwatch turns exported labels into the state of every port, and closes
// the loop of adaptive labelling: it stores labels, ends coverage windows, and sets
// the label rates of ports. It computes nothing itself; analyze/coverage does.
// Origin: docs/papers.md#int-label. Manual: docs/labels.md.
package portwatch
