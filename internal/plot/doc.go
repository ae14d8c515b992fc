// Package plot draws plots as SVG, without any third party: Chart for a whole
// plot in one call, Frame, Scale and SVG for those who draw on their own. The
// same data gives the same bytes.
package plot
