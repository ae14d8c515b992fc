// Package plot draws plots as SVG, without third-party code: Chart for a whole
// plot in one call, Frame, Scale and SVG for custom drawings. The same data
// gives the same bytes.
package plot
