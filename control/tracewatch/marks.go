package tracewatch

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/analyze/filter"
	"github.com/weft-telemetry/weft/analyze/filter/headers"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Marker has hosts set the debug mark on packets that match a filter. A second Mark
// of a host adds to the first; Unmark removes a filter with the same text.
type Marker interface {
	Mark(host model.NodeID, f *filter.Filter[headers.Frame]) error
	Unmark(host model.NodeID, f *filter.Filter[headers.Frame]) error
}

// Mark is a request of EnableDebug.
type Mark struct {
	Servers []string `json:"servers"`
	Filter  string   `json:"filter"`
}

// ErrNoMarker is returned where hosts cannot mark packets.
var ErrNoMarker = errors.New("tracewatch: no host marks packets here")

// EnableDebug has servers mark the packets that match a filter, from now on. No
// server means all.
func (w *Watch) EnableDebug(servers []string, text string) error {
	hosts, f, err := w.resolveMark(servers, text)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.marks) >= w.cfg.MaxNamed {
		return fmt.Errorf("%w debug mark beside %d", ErrFull, w.cfg.MaxNamed)
	}
	done := Mark{Filter: f.String()}
	for _, id := range hosts {
		if w.isMarked(id, done.Filter) {
			continue
		}
		if err = w.marker.Mark(id, f); err != nil {
			err = fmt.Errorf("mark packets of %s: %w", w.fabric.Node(id).Name, err)
			break
		}
		done.Servers = append(done.Servers, w.fabric.Node(id).Name)
	}
	if len(done.Servers) > 0 { // the servers before the failed one do mark
		w.marks = append(w.marks, done)
	}
	return err
}

// DisableDebug ends what EnableDebug started with the same filter. No server means
// all.
func (w *Watch) DisableDebug(servers []string, text string) error {
	hosts, f, err := w.resolveMark(servers, text)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	canonical := f.String()
	for _, id := range hosts {
		if !w.isMarked(id, canonical) {
			continue
		}
		name := w.fabric.Node(id).Name
		if err := w.marker.Unmark(id, f); err != nil {
			return fmt.Errorf("unmark packets of %s: %w", name, err)
		}
		for i := range w.marks {
			if w.marks[i].Filter == canonical {
				w.marks[i].Servers = slices.DeleteFunc(w.marks[i].Servers, func(s string) bool { return s == name })
			}
		}
	}
	w.marks = slices.DeleteFunc(w.marks, func(m Mark) bool { return len(m.Servers) == 0 })
	return nil
}

// Marks returns the active marks.
func (w *Watch) Marks() []Mark {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := slices.Clone(w.marks)
	for i := range list {
		list[i].Servers = slices.Clone(list[i].Servers)
	}
	return list
}

func (w *Watch) isMarked(id model.NodeID, canonical string) bool {
	name := w.fabric.Node(id).Name
	return slices.ContainsFunc(w.marks, func(m Mark) bool { return m.Filter == canonical && slices.Contains(m.Servers, name) })
}

// resolveMark resolves the arguments of both commands.
func (w *Watch) resolveMark(servers []string, text string) ([]model.NodeID, *filter.Filter[headers.Frame], error) {
	if w.marker == nil {
		return nil, nil, ErrNoMarker
	}
	f, err := w.packets.Parse(text)
	if err != nil {
		return nil, nil, err
	}
	if len(servers) == 0 {
		return w.fabric.Hosts(), f, nil
	}
	var hosts []model.NodeID
	for _, name := range servers {
		id, ok := w.fabric.ByName(name)
		if !ok || w.fabric.Node(id).Role != topo.Host {
			return nil, nil, fmt.Errorf("tracewatch: server %q, want the name of a host", name)
		}
		hosts = append(hosts, id)
	}
	return hosts, f, nil
}
