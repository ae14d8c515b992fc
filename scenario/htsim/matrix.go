// Package htsim reads the connection matrices (.cm) of the htsim simulators,
// csg-htsim and uet-htsim: flows, the triggers that start them, and failed
// links. Their topologies are read by topo/file; running a matrix is scenario's
// work.
//
// docs/files.md describes the format and the intended differences.
package htsim

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// Matrix is a connection matrix.
type Matrix struct {
	File        string
	Nodes       int
	Connections []Connection
	Triggers    map[uint32]*Trigger
	Failures    []Failure
	Notes       []string // what the reader of a result must know
}

// Connection is a flow. It starts at Start, or by a trigger.
type Connection struct {
	Line     int
	Src, Dst int
	ID       uint32 // 0: none
	Start    model.Time
	Size     model.Bytes
	// Numbers of triggers; 0: none.
	Trigger, SendDone, RecvDone uint32
}

// TriggerKind says what a trigger does when it is activated.
type TriggerKind uint8

// Kinds of triggers.
const (
	Oneshot   TriggerKind = iota + 1 // starts all its flows
	Multishot                        // starts the next one of its flows
	Barrier                          // starts all its flows when it has been activated Count times
)

// Trigger starts flows when others are done.
type Trigger struct {
	Line  int
	Kind  TriggerKind
	Count int
}

// Failure is a link that is down for the whole run.
type Failure struct {
	Line   int
	Tier   topo.Role // of the switch: ToR or Leaf
	Switch int       // number in its tier
	Link   int       // number of the uplink, from 0
}

// maxNumber is the largest number in a matrix that Weft accepts.
const maxNumber = math.MaxInt32

// section counts the items of one kind against what the header says.
type section struct{ said, line, found int }

// Parse reads a connection matrix. Every error is a *fileerror.Error.
func Parse(name string, data []byte) (*Matrix, error) {
	p := parser{m: &Matrix{File: name, Triggers: make(map[uint32]*Trigger)}, ids: make(map[uint32]int)}
	p.sections = map[string]*section{"Connections": {}, "Triggers": {}, "Failures": {}}
	for text := range strings.Lines(string(data)) {
		p.line++
		words := strings.Fields(text)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := p.item(words); err != nil {
			return nil, err
		}
	}
	return p.m, p.finish()
}

type parser struct {
	m        *Matrix
	line     int
	sections map[string]*section
	ids      map[uint32]int // lines of the flows
	prio     bool
}

func (p *parser) errorf(format string, args ...any) error {
	return fileerror.Errorf(p.m.File, max(p.line, 1), format, args...)
}

func (p *parser) item(words []string) error {
	switch words[0] {
	case "Nodes":
		n, err := p.header(words)
		if err == nil && (n < 2 || n > topo.MaxNodes) {
			err = p.errorf("Nodes %d, want from 2 to %d", n, topo.MaxNodes)
		}
		p.m.Nodes = n
		return err
	case "Connections", "Triggers", "Failures":
		n, err := p.header(words)
		s := p.sections[words[0]]
		s.said, s.line = n, p.line
		return err
	case "trigger":
		p.sections["Triggers"].found++
		return p.trigger(words[1:])
	case "failure":
		p.sections["Failures"].found++
		return p.failure(words[1:])
	}
	if !strings.Contains(words[0], "->") {
		return p.errorf("unknown word %q, want a connection such as 0->1, trigger or failure", words[0])
	}
	if p.sections["Connections"].found++; p.sections["Connections"].found > traffic.MaxFlows {
		return p.errorf("more than %d connections, want fewer", traffic.MaxFlows)
	}
	return p.connection(words)
}

func (p *parser) header(words []string) (int, error) {
	if len(words) != 2 {
		return 0, p.errorf("%s with %d values, want one number", words[0], len(words)-1)
	}
	return p.number(words[0], words[1], 0)
}

func (p *parser) number(what, word string, least int) (int, error) {
	n, err := strconv.ParseUint(word, 10, 63)
	if err != nil || n < uint64(least) || n > maxNumber {
		return 0, p.errorf("%s %q, want a whole number from %d to %d", what, word, least, maxNumber)
	}
	return int(n), nil
}

// pairs calls set for each key and its value; keys of flags have none.
func (p *parser) pairs(words, flags []string, set func(key, value string) error) error {
	for i := 0; i < len(words); i++ {
		key, value := words[i], ""
		if !slices.Contains(flags, key) {
			if i++; i == len(words) {
				return p.errorf("%s has no value, want one", key)
			}
			value = words[i]
		}
		if err := set(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) connection(words []string) error {
	c := Connection{Line: p.line, Start: -1}
	src, dst, _ := strings.Cut(words[0], "->")
	var err error
	if c.Src, err = p.number("source", src, 0); err != nil {
		return err
	}
	if c.Dst, err = p.number("destination", dst, 0); err != nil {
		return err
	}
	err = p.pairs(words[1:], nil, func(key, value string) error {
		switch key {
		case "start":
			ps, err := strconv.ParseFloat(value, 64)
			if err != nil || !(ps >= 0 && ps <= float64(traffic.MaxTime)*1e3) {
				return p.errorf("start %q, want picoseconds from 0 to %d", value, int64(traffic.MaxTime)*1000)
			}
			c.Start = model.Time(math.Round(ps / 1e3))
			return nil
		case "size":
			n, err := strconv.ParseUint(value, 10, 63)
			if err != nil || n < 1 || n > uint64(traffic.MaxBytes) {
				return p.errorf("size %q, want bytes from 1 to %d", value, int64(traffic.MaxBytes))
			}
			c.Size = model.Bytes(n)
			return nil
		case "prio": // of the receiver's pulls in there; a pull needs a transport that Weft has not
			p.prio = true
			_, err := p.number(key, value, 0)
			return err
		}
		to := map[string]*uint32{"id": &c.ID, "trigger": &c.Trigger, "send_done_trigger": &c.SendDone, "recv_done_trigger": &c.RecvDone}[key]
		if to == nil {
			return p.errorf("unknown word %q, want id, start, size, trigger, send_done_trigger, recv_done_trigger or prio", key)
		}
		n, err := p.number(key, value, 1)
		*to = uint32(n)
		return err
	})
	if err != nil {
		return err
	}
	switch first := p.ids[c.ID]; {
	case c.Size == 0:
		return p.errorf("connection without a size, want one")
	case c.Src == c.Dst:
		return p.errorf("connection %d->%d, want two nodes", c.Src, c.Dst)
	case c.Start < 0 && c.Trigger == 0:
		return p.errorf("connection with neither start nor trigger, want one of them")
	case c.Start >= 0 && c.Trigger != 0:
		return p.errorf("connection with both start and trigger, want one of them")
	case c.ID != 0 && first != 0:
		return p.errorf("id %d again, the first one is on line %d, want different ones", c.ID, first)
	}
	c.Start = max(c.Start, 0)
	p.ids[c.ID] = p.line
	p.m.Connections = append(p.m.Connections, c)
	return nil
}

func (p *parser) trigger(words []string) error {
	t := &Trigger{Line: p.line}
	id := 0
	kinds := map[string]TriggerKind{"oneshot": Oneshot, "multishot": Multishot, "barrier": Barrier}
	err := p.pairs(words, []string{"oneshot", "multishot", "barrier"}, func(key, value string) (err error) {
		switch key {
		case "id":
			id, err = p.number(key, value, 1)
		case "count":
			t.Count, err = p.number(key, value, 1)
		default:
			if kinds[key] == 0 {
				return p.errorf("unknown word %q, want id, count, oneshot, multishot or barrier", key)
			}
			if t.Kind != 0 {
				return p.errorf("trigger of two kinds, want one")
			}
			t.Kind = kinds[key]
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case id == 0:
		return p.errorf("trigger without an id, want one")
	case t.Kind == 0:
		return p.errorf("trigger %d without a kind, want oneshot, multishot or barrier", id)
	case t.Kind == Barrier && t.Count == 0:
		return p.errorf("barrier %d without a count, want one", id)
	case p.m.Triggers[uint32(id)] != nil:
		return p.errorf("trigger %d again, the first one is on line %d, want it once", id, p.m.Triggers[uint32(id)].Line)
	}
	p.m.Triggers[uint32(id)] = t
	return nil
}

func (p *parser) failure(words []string) error {
	f := Failure{Line: p.line, Switch: -1, Link: -1}
	typed := false
	err := p.pairs(words, nil, func(key, value string) (err error) {
		switch key {
		case "switch_type":
			typed = true
			switch value {
			case "TOR":
				f.Tier = topo.ToR
			case "AGG":
				f.Tier = topo.Leaf
			default:
				return p.errorf("switch_type %q, want TOR or AGG, whose uplinks can fail", value)
			}
		case "switch_id":
			f.Switch, err = p.number(key, value, 0)
		case "link_id":
			f.Link, err = p.number(key, value, 0)
		default:
			return p.errorf("unknown word %q, want switch_type, switch_id or link_id", key)
		}
		return err
	})
	if err == nil && (!typed || f.Switch < 0 || f.Link < 0) {
		err = p.errorf("failure, want switch_type, switch_id and link_id")
	}
	p.m.Failures = append(p.m.Failures, f)
	return err
}

// finish checks what depends on the whole file.
func (p *parser) finish() error {
	if p.m.Nodes == 0 {
		return p.errorf("file ends without Nodes, want it")
	}
	if len(p.m.Connections) == 0 {
		return p.errorf("file ends without a connection, want at least one")
	}
	for _, name := range []string{"Connections", "Triggers", "Failures"} {
		if s := p.sections[name]; s.said != s.found {
			return fileerror.Errorf(p.m.File, max(s.line, 1), "%s %d, want %d, as many as follow", name, s.said, s.found)
		}
	}
	for i := range p.m.Connections {
		c := &p.m.Connections[i]
		if c.Src >= p.m.Nodes || c.Dst >= p.m.Nodes {
			return fileerror.Errorf(p.m.File, c.Line, "connection %d->%d, want nodes from 0 to %d", c.Src, c.Dst, p.m.Nodes-1)
		}
	}
	if p.prio {
		p.m.Notes = append(p.m.Notes, "prio has no effect: it orders a receiver's pulls, which RDMA does not have")
	}
	return p.m.checkTriggers()
}
