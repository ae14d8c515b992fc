// Package admission decides who may report: whether a reporter is in the topology,
// its source address allowed, the list its own and the payload about itself, and
// whether a source sends more than its share. It counts refusals by reason and by
// source. MACs, sequence numbers and time windows are checked by
// collect/translate, which asks a Policy of this package for the rest.
// Manual: docs/serve.md.
package admission

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Node is a node of the topology that may report.
type Node struct {
	Name   string
	Switch bool // else a host
	Ports  int  // numbered from 1
	// Prefixes are where its reports come from; none: not known, so anywhere.
	Prefixes []netip.Prefix
}

// Kind is what a list holds.
type Kind uint8

// Kinds of lists.
const (
	Unplanned        Kind = iota // the topology's plan has no such list
	Flowset                      // chunks of the owner's flowsets
	Label                        // labels that a switch took off packets
	Mirror                       // packets that a switch mirrored
	Epoch                        // a switch's answers to polls
	DiagnosisRequest             // a host's polls
)

// Config configures a Policy.
type Config struct {
	Nodes []Node // by id
	// List returns what a list holds and, of flowsets, the switch that owns it.
	List func(l dta.ListID) (Kind, model.NodeID)
	// Attached reports whether a host is attached to a switch; nil: none is.
	Attached func(host model.Addr, sw model.NodeID) bool
	// Guard decides about sources, and counts all refusals.
	Guard *Guard
	// RequireMAC refuses reporters that do not authenticate.
	RequireMAC bool
	// TimeWindow is how far the send time of an authenticated datagram may be off.
	TimeWindow time.Duration
}

// Policy is a translate.Gate for the reporters of a topology.
type Policy struct {
	cfg        Config
	keys       atomic.Pointer[[][]translate.GateKey] // by id
	generation atomic.Uint64
}

var _ translate.Gate = (*Policy)(nil)

// New makes a policy without keys.
func New(cfg Config) (*Policy, error) {
	switch {
	case cfg.List == nil || cfg.Guard == nil:
		return nil, errors.New("admission: Config.List or Config.Guard is nil, want both")
	case cfg.TimeWindow <= 0:
		return nil, fmt.Errorf("admission: time window %v, want above 0", cfg.TimeWindow)
	}
	p := &Policy{cfg: cfg}
	p.SetKeys(nil)
	return p, nil
}

// SetKeys replaces the keys of all reporters, by id; nil: none has any. Workers use
// them from their next datagram on.
func (p *Policy) SetKeys(keys [][]translate.GateKey) {
	p.keys.Store(&keys)
	p.generation.Add(1)
}

// Keys is part of translate.Gate.
func (p *Policy) Keys(reporter model.NodeID) []translate.GateKey {
	keys := *p.keys.Load()
	if int64(reporter) >= int64(len(keys)) {
		return nil
	}
	return keys[reporter]
}

// Generation is part of translate.Gate.
func (p *Policy) Generation() uint64 { return p.generation.Load() }

// TimeWindow is part of translate.Gate.
func (p *Policy) TimeWindow() time.Duration { return p.cfg.TimeWindow }

// Datagram is part of translate.Gate. The rate comes first, so that a source that
// is refused for another reason spends its share, too.
func (p *Policy) Datagram(now model.Time, from netip.AddrPort, h *dta.Header, _ int) translate.Refusal {
	addr := from.Addr().Unmap()
	if why := p.cfg.Guard.Datagram(now, addr); why != translate.Admitted {
		return why
	}
	n := p.node(h.Reporter)
	switch {
	case n == nil:
		return translate.UnknownReporter
	case len(n.Prefixes) > 0 && !Contains(n.Prefixes, addr):
		return translate.AddressNotAllowed
	case p.cfg.RequireMAC && !h.Signed:
		return translate.NoMAC
	}
	return translate.Admitted
}

// Prototype is part of translate.Gate. The prototype's format names no reporter, so
// nothing of its reports could be checked.
func (p *Policy) Prototype(now model.Time, from netip.AddrPort, _ int) translate.Refusal {
	if why := p.cfg.Guard.Datagram(now, from.Addr().Unmap()); why != translate.Admitted {
		return why
	}
	return translate.PrototypeNotAllowed
}

// Refused is part of translate.Gate.
func (p *Policy) Refused(from netip.AddrPort, why translate.Refusal, reports int) {
	p.cfg.Guard.Refused(from.Addr().Unmap(), why, reports)
}

// Refusals returns the refusals so far.
func (p *Policy) Refusals() Counts { return p.cfg.Guard.Counts() }

// node returns a node of the topology, or nil.
func (p *Policy) node(id model.NodeID) *Node {
	if int64(id) >= int64(len(p.cfg.Nodes)) {
		return nil
	}
	return &p.cfg.Nodes[id]
}

// Contains reports whether one of the prefixes contains an address.
func Contains(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
