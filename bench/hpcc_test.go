package bench

import (
	"testing"

	"github.com/weft-telemetry/weft/scenario/hpcc"
)

// The files must be what the HPCC simulator reads: 320 hosts, 56 switches, 480
// links, and flows from two seconds on.
func TestHPCCFiles(t *testing.T) {
	config, err := writeHPCC(t.TempDir(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	c, err := hpcc.Read(config)
	if err != nil {
		t.Fatal(err)
	}
	s, err := hpcc.Build(c, hpcc.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	f := s.Fabric
	if len(f.Hosts()) != 320 || len(f.Switches()) != 56 || len(f.Links()) != 480 || len(s.Flows) != 1000 || s.Flows[0].Start < 2e9 {
		t.Errorf("%d hosts, %d switches, %d links, %d flows from %v; want 320, 56, 480, 1000 from +2s",
			len(f.Hosts()), len(f.Switches()), len(f.Links()), len(s.Flows), s.Flows[0].Start)
	}
}
