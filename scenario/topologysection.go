package scenario

import (
	"bytes"
	"strings"

	"github.com/weft-telemetry/weft/topo/file"
)

// TopologySection returns the section topology of a scenario file for a topology.
func TopologySection(doc *file.Document) (string, error) {
	var text bytes.Buffer
	if err := file.Write(&text, file.YAML, doc); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("topology:\n")
	for line := range strings.Lines(text.String()) {
		b.WriteString("  " + line)
	}
	return b.String(), nil
}
