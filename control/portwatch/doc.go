// Package portwatch turns the exports of labels into what is known of every
// port, and closes the loop of adaptive labelling: it files labels, ends a window
// of coverage from time to time, and tells switches which ports shall label more
// often. It computes nothing itself; analyze/coverage does.
// Origin: docs/papers.md#int-label. Manual: docs/labels.md.
package portwatch
