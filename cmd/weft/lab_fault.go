package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/dataplane/lab"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// inject injects a fault, and returns what repairs it.
type inject func(*lab.Lab) (repair func() error, err error)

// labFaults are the arguments of each kind after the node.
var labFaults = []struct{ kind, arguments string }{
	{"blackhole", "HOST"},
	{"misroute", "HOST PORT"},
	{"drop", "PORT SHARE"},
	{"corrupt", "PORT SHARE"},
	{"rate", "PORT RATE"},
	{"delay", "PORT TIME"},
	{"link-down", "PORT"},
}

// parseFault reads KIND NODE and the arguments of the kind.
func parseFault(f *topo.Fabric, args []string) (inject, error) {
	var forms []string
	known := false
	for _, k := range labFaults {
		known = known || k.kind == args[0] && len(args) == 2+len(strings.Fields(k.arguments))
		forms = append(forms, k.kind+" NODE "+k.arguments)
	}
	if !known {
		return nil, usagef("%s with %s, want %s", args[0], plural.Count(len(args)-1, "argument"), strings.Join(forms, ", "))
	}
	at, ok := f.ByName(args[1])
	if !ok {
		return nil, usagef("no node %q in the topology", args[1])
	}
	if args[0] == "blackhole" || args[0] == "misroute" {
		return parseRouteFault(f, at, args)
	}
	p := f.Node(at).PortByName(args[2])
	if p == nil {
		return nil, usagef("%s has no port %q", args[1], args[2])
	}
	port := model.Port{Node: at, Port: p.ID}
	if args[0] == "link-down" {
		return func(l *lab.Lab) (func() error, error) {
			return func() error { return l.SetLink(port, true) }, l.SetLink(port, false)
		}, nil
	}
	return parsePortFault(args[0], port, args[3])
}

func parseRouteFault(f *topo.Fabric, at model.NodeID, args []string) (inject, error) {
	host, ok := f.ByName(args[2])
	if !ok || f.Node(host).Role != topo.Host {
		return nil, usagef("no host %q in the topology", args[2])
	}
	if args[0] == "blackhole" {
		return func(l *lab.Lab) (func() error, error) {
			return func() error { return l.RestoreRoute(at, host) }, l.Blackhole(at, host)
		}, nil
	}
	p := f.Node(at).PortByName(args[3])
	if p == nil {
		return nil, usagef("%s has no port %q", args[1], args[3])
	}
	return func(l *lab.Lab) (func() error, error) {
		return func() error { return l.RestoreRoute(at, host) }, l.Misroute(at, host, p.ID)
	}, nil
}

// parsePortFault reads the amount of a fault of a port.
func parsePortFault(kind string, port model.Port, amount string) (inject, error) {
	switch kind {
	case "rate":
		rate, err := model.ParseRate(amount)
		if err != nil {
			return nil, usageError{err}
		}
		return func(l *lab.Lab) (func() error, error) { return l.LimitRate(port, rate) }, nil
	case "delay":
		delay, err := time.ParseDuration(amount)
		if err != nil || delay <= 0 {
			return nil, usagef("a delay of %q, want a time such as 5ms", amount)
		}
		return func(l *lab.Lab) (func() error, error) { return l.Delay(port, delay) }, nil
	}
	share, err := strconv.ParseFloat(amount, 64)
	if err != nil || !(share > 0 && share <= 1) {
		return nil, usagef("a share of %q, want above 0 and at most 1", amount)
	}
	return func(l *lab.Lab) (func() error, error) {
		program := l.DropSilently
		if kind == "corrupt" {
			program = l.Corrupt
		}
		attached, err := program(port, share)
		if err != nil {
			return nil, err
		}
		return attached.Close, nil
	}, nil
}
