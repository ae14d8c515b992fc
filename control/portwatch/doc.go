// Package portwatch turns exported labels into the state of every port, and closes
// the loop of adaptive labelling: it stores labels, ends coverage windows, sets
// the label rates of ports, and has ports probed that send nothing. It computes
// nothing itself; analyze/coverage does.
// Origin: docs/papers.md#int-label. Manual: docs/labels.md.
package portwatch
