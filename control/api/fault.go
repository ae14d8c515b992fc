package api

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// FaultKind is a kind of fault that the lab can inject.
type FaultKind struct {
	Kind   string `json:"kind"`
	Title  string `json:"title"`
	About  string `json:"about" doc:"Effect of the fault and the expected diagnosis"`
	Target string `json:"target" enum:"link,switch,host,fabric" doc:"What the fault applies to"`
}

// FaultRequest describes a fault to inject.
type FaultRequest struct {
	Kind       string       `json:"kind" minLength:"1" maxLength:"64"`
	Node       string       `json:"node,omitempty" maxLength:"256" doc:"The switch or host; for a link, one of its ends"`
	Port       model.PortID `json:"port,omitempty" doc:"Number of the link's port at that node"`
	Interface  string       `json:"interface,omitempty" maxLength:"256" doc:"Interface name of that port, e.g. Ethernet8; alternative to port"`
	DurationMs int          `json:"duration_ms,omitempty" minimum:"1" maximum:"3600000" doc:"Simulated time; default: the kind's usual duration"`
}

// Fault is an injected fault and its detection.
type Fault struct {
	ID       string       `json:"id"`
	Request  FaultRequest `json:"request"`
	By       string       `json:"by" enum:"director,user"`
	State    string       `json:"state" enum:"waiting,active,ended"`
	Begin    time.Time    `json:"begin"`
	End      *time.Time   `json:"end,omitempty"`
	Verdict  string       `json:"verdict" enum:"pending,right,wrong,missed" doc:"Whether the incident names the right cause and location"`
	Want     string       `json:"want" doc:"Expected cause"`
	Got      string       `json:"got,omitempty" doc:"Detected cause"`
	FoundMs  *float64     `json:"found_after_ms,omitempty" doc:"Simulated time from injection to the incident"`
	Incident string       `json:"incident_id,omitempty"`
}

// errNoLab answers all lab routes of a controller that does not run a demo.
var errNoLab = fmt.Errorf("lab: fault injection and pace need a simulated fabric (weft demo): %w", ErrNotFound)

func (s *Server) faultRoutes() {
	get(s, "/faults/kinds", "list-fault-kinds", "Lab", "List the faults that can be injected (demo only)",
		func(context.Context, *struct{}) (Page[FaultKind], error) {
			if s.deps.Lab == nil {
				return Page[FaultKind]{}, errNoLab
			}
			return Page[FaultKind]{Items: s.deps.Lab.FaultKinds()}, nil
		})
	get(s, "/faults", "list-faults", "Lab", "List injected faults and their detection, newest first",
		func(context.Context, *struct{}) (Page[Fault], error) {
			if s.deps.Lab == nil {
				return Page[Fault]{}, errNoLab
			}
			return Page[Fault]{Items: s.deps.Lab.Faults()}, nil
		})
	type injectInput struct{ Body FaultRequest }
	post(s, "/faults", "inject-fault", "Lab", "Inject a fault",
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

// checkFault validates a request and fills in the number and interface of its port.
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
	if _, ok := f.ByName(r.Node); !ok {
		return fmt.Errorf("fault %s at node %q, want a %s of this fabric: %w", r.Kind, r.Node, kinds[i].Target, ErrInvalid)
	}
	if kinds[i].Target == "link" {
		at, err := PortRef{Node: r.Node, Port: r.Port, Interface: r.Interface}.resolvePort(f)
		if err != nil {
			return fmt.Errorf("fault %s: %w: %w", r.Kind, err, ErrInvalid)
		}
		r.Port, r.Interface = at.Port, f.Port(at).Name
	}
	return nil
}
