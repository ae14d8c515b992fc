package api

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// FaultKind is a fault that the lab can make.
type FaultKind struct {
	Kind   string `json:"kind"`
	Title  string `json:"title"`
	About  string `json:"about" doc:"What it does, and what should be found"`
	Target string `json:"target" enum:"link,switch,host,fabric" doc:"What it is put on"`
}

// FaultRequest asks for a fault.
type FaultRequest struct {
	Kind       string       `json:"kind" minLength:"1" maxLength:"64"`
	Node       string       `json:"node,omitempty" maxLength:"256" doc:"The switch or host; of a link one end"`
	Port       model.PortID `json:"port,omitempty" doc:"Of a link: the port at that end"`
	DurationMs int          `json:"duration_ms,omitempty" minimum:"1" maximum:"3600000" doc:"By the fabric's clock; absent: as long as the kind usually lasts"`
}

// Fault is a fault that was made, and what was found of it.
type Fault struct {
	ID       string       `json:"id"`
	Request  FaultRequest `json:"request"`
	By       string       `json:"by" enum:"director,user"`
	State    string       `json:"state" enum:"waiting,active,ended"`
	Begin    time.Time    `json:"begin"`
	End      *time.Time   `json:"end,omitempty"`
	Verdict  string       `json:"verdict" enum:"pending,right,wrong,missed" doc:"Whether the incident names the right cause and place"`
	Want     string       `json:"want" doc:"Cause that should be found"`
	Got      string       `json:"got,omitempty" doc:"Cause that was found"`
	FoundMs  *float64     `json:"found_after_ms,omitempty" doc:"From the fault's begin to the incident, by the fabric's clock"`
	Incident string       `json:"incident_id,omitempty"`
}

// errNoLab stands for every route of the lab outside of a demo.
var errNoLab = fmt.Errorf("lab: faults and pace are of a simulated fabric (weft demo), and this one is real: %w", ErrNotFound)

func (s *Server) faultRoutes() {
	get(s, "/faults/kinds", "list-fault-kinds", "Lab", "Faults that can be made; of a simulated fabric only",
		func(context.Context, *struct{}) (Page[FaultKind], error) {
			if s.deps.Lab == nil {
				return Page[FaultKind]{}, errNoLab
			}
			return Page[FaultKind]{Items: s.deps.Lab.FaultKinds()}, nil
		})
	get(s, "/faults", "list-faults", "Lab", "Faults that were made and what was found, newest first",
		func(context.Context, *struct{}) (Page[Fault], error) {
			if s.deps.Lab == nil {
				return Page[Fault]{}, errNoLab
			}
			return Page[Fault]{Items: s.deps.Lab.Faults()}, nil
		})
	type injectInput struct{ Body FaultRequest }
	post(s, "/faults", "inject-fault", "Lab", "Break something",
		func(ctx context.Context, in *injectInput) (Fault, error) {
			if s.deps.Lab == nil {
				return Fault{}, errNoLab
			}
			if err := s.checkFault(&in.Body); err != nil {
				return Fault{}, err
			}
			return s.deps.Lab.Inject(ctx, in.Body)
		})
}

func (s *Server) checkFault(r *FaultRequest) error {
	kinds := s.deps.Lab.FaultKinds()
	i := slices.IndexFunc(kinds, func(k FaultKind) bool { return k.Kind == r.Kind })
	if i < 0 {
		return fmt.Errorf("fault kind %q, want one of /faults/kinds: %w", r.Kind, ErrInvalid)
	}
	if kinds[i].Target == "fabric" {
		return nil
	}
	f := s.deps.Live.Fabric()
	id, ok := f.ByName(r.Node)
	if !ok {
		return fmt.Errorf("fault %s at node %q, want a %s of this fabric: %w", r.Kind, r.Node, kinds[i].Target, ErrInvalid)
	}
	if kinds[i].Target == "link" && f.Port(model.Port{Node: id, Port: r.Port}) == nil {
		return fmt.Errorf("fault %s at port %d of %s, want one from 1 to %d: %w", r.Kind, r.Port, r.Node, len(f.Node(id).Ports), ErrInvalid)
	}
	return nil
}
