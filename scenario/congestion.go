package scenario

import (
	"reflect"

	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/congestion"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// congestionSpec is the name of a congestion control, or a mapping that names
// it and changes some of its constants.
type congestionSpec struct{ params congestion.Params }

// decode reads the constants into the fields of the algorithm's Params: their
// yaml tags are the keys, so that a new algorithm needs nothing here.
func (p *congestionSpec) decode(v tree.Value, what string) error {
	if v.IsText() {
		a, err := findAlgorithm(v, what)
		if err == nil {
			p.params = a.Default()
		}
		return err
	}
	list, err := v.Entries(what)
	if err != nil {
		return err
	}
	var algorithm congestion.Algorithm
	// Algorithm and preset come first, in whatever order the file has them.
	for _, e := range list {
		if e.Key == "algorithm" {
			if algorithm, err = findAlgorithm(e.Value, e.Key); err != nil {
				return err
			}
		}
	}
	if algorithm.Name == "" {
		return v.Errorf("%s has no algorithm, want %s", what, congestion.Names())
	}
	p.params = algorithm.Default()
	for _, e := range list {
		if e.Key != "preset" {
			continue
		}
		name, err := e.Text(e.Key)
		if err != nil {
			return err
		}
		var ok bool
		p.params, ok = algorithm.Preset(name)
		if algorithm.PresetNames() == "" {
			return e.Errorf("%s has no presets", algorithm.Name)
		}
		if !ok {
			return e.Errorf("%s preset %q, want %s", algorithm.Name, name, algorithm.PresetNames())
		}
	}
	return p.decodeConstants(v, algorithm.Name)
}

func (p *congestionSpec) decodeConstants(v tree.Value, algorithm string) error {
	var name, preset string
	fields := map[string]any{"algorithm": &name, "preset": &preset}
	order := []string{"algorithm", "preset"}
	if p.params != nil {
		constants, keys := fieldsOf(reflect.ValueOf(p.params).Elem())
		for key, field := range constants {
			fields[key] = field
		}
		order = append(order, keys...)
	}
	if _, err := decodeFields(v, fields, order, algorithm); err != nil {
		return err
	}
	if p.params == nil {
		return nil
	}
	if err := p.params.Check(); err != nil {
		return v.Errorf("%s", trimPackageNames(err))
	}
	return nil
}

func findAlgorithm(v tree.Value, what string) (congestion.Algorithm, error) {
	name, err := v.Text(what)
	if err != nil {
		return congestion.Algorithm{}, err
	}
	a, ok := congestion.Find(name)
	if !ok {
		return a, v.Errorf("%s %q, want %s", what, name, congestion.Names())
	}
	return a, nil
}

// suitCongestion sets what the congestion control needs where the file does not
// say: windows for INT, and an echo of every mark. It rejects a file that says
// otherwise.
func (f *fabricSpec) suitCongestion(c *sim.Config) error {
	t := congestion.TraitsOf(c.Congestion)
	if t.INTMulti > 0 && !c.Window {
		if f.has("window") {
			return f.errorf("window", "window off with %s, want path or fabric: it measures queues in windows", t.Name)
		}
		c.Window = true
	}
	if t.EveryMark && c.CNPInterval > 0 {
		if f.has("cnp-interval") {
			return f.errorf("cnp-interval", "cnp-interval %v with %s, want 0: it counts every mark", c.CNPInterval, t.Name)
		}
		c.CNPInterval = 0
	}
	return nil
}

// checkINT rejects port rates that the INT header cannot encode.
func (f *fabricSpec) checkINT(c *sim.Config, fabric *topo.Fabric) error {
	t := congestion.TraitsOf(c.Congestion)
	if t.INTMulti == 0 {
		return nil
	}
	for _, id := range fabric.Switches() {
		for _, p := range fabric.Node(id).Ports {
			if !congestion.EncodableRate(p.Rate) {
				return f.errorf("congestion-control", "%s: port %d of %s has %v, want one of %v",
					t.Name, p.ID, fabric.Node(id).Name, p.Rate, congestion.LineRates)
			}
		}
	}
	return nil
}
