// Package why answers why a flow, or a host, is slow: from the incidents, diagnoses,
// losses and port states that a controller has, in sentences with their evidence. It
// finds nothing itself.
package why
