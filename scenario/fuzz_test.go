package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/weft-telemetry/weft/topo/file"
)

// FuzzParse: every input is read, or rejected with a file, a line and what is
// wanted; what is read has everything that Run uses without checking.
func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob("../examples/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range append(paths, "../docs/scenarios.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"duration": "1ms", "topology": {"generate": {"kind": "ring"}}, "expect": {"drops": 0}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := parse("in", in, nothing)
		if err != nil {
			var e *file.Error
			if !errors.As(err, &e) || e.File != "in" || e.Line < 1 {
				t.Fatalf("parse(%q) = %T %v; want a *file.Error with a line", in, err, err)
			}
			return
		}
		if s.Topology == nil || s.Topology.Fabric == nil || s.Duration <= 0 || s.Sim.Check() != nil {
			t.Fatalf("parse(%q) = %+v; want a fabric, a duration and good settings", in, s)
		}
		for _, f := range s.Faults {
			_ = f.Fault.String()
		}
	})
}
