package coverage

import "github.com/weft-telemetry/weft/model"

// window is the ports labelled since the last EndWindow.
type window struct{ ports map[model.Port]bool }

func (w *window) addPort(p model.Port) {
	if w.ports == nil {
		w.ports = map[model.Port]bool{}
	}
	w.ports[p] = true
}

// Window is how much of the fabric was labelled in a time window.
type Window struct {
	Labelled int // of the active ports
	Active   int
}

// Coverage returns labelled over active ports: 1 if there were none.
func (w Window) Coverage() float64 {
	if w.Active == 0 {
		return 1
	}
	return float64(w.Labelled) / float64(w.Active)
}

// EndWindow ends a window, counts how many of its active ports were labelled, and
// starts the next one. The caller knows which ports carried traffic: from flow
// records, or from counters of the ports.
func (b *PortStates) EndWindow(active []model.Port) Window {
	w := Window{Active: len(active)}
	for _, p := range active {
		if b.win.ports[p] {
			w.Labelled++
		}
	}
	clear(b.win.ports)
	return w
}
