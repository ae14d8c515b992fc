package main

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/admission"
	"github.com/weft-telemetry/weft/ingest/collector"
	"github.com/weft-telemetry/weft/ingest/keyfile"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo/file"
	"github.com/weft-telemetry/weft/wire/dta"
)

// accessFlags say who may report to weft collect and weft translate, or write by
// RDMA.
type accessFlags struct {
	keys, topology, require string
	allow                   []string
	window                  time.Duration
}

func (f *accessFlags) register(fl *pflag.FlagSet) {
	fl.StringVar(&f.keys, "keys", "", "key file of reporters and translators (weft keys); SIGHUP reads it again")
	fl.StringVar(&f.topology, "topology", "", "admit reports of this topology's nodes only; --keys needs it to verify reports")
	fl.StringVar(&f.require, "require", "", "\"mac\" refuses reports without a MAC, also of nodes without a key")
	fl.StringSliceVar(&f.allow, "allow", nil, "admit these source prefixes only, such as 10.0.0.0/16")
	fl.DurationVar(&f.window, "time-window", 10*time.Second, "maximum age of a report with a MAC")
}

// access decides who may report, with keys that can be read again.
type access struct {
	ring   *keyfile.Ring // nil without --keys
	policy *admission.Policy
	doc    *file.Document // nil without --topology
}

// open reads the files and puts keys and gate into cfg. receives is false if
// reports come by RDMA only.
func (f *accessFlags) open(cfg *collector.Config, receives bool, log *slog.Logger) (*access, error) {
	a := &access{}
	var err error
	if cfg.Allow, err = source.ParsePrefixes(strings.Join(f.allow, ",")); err != nil {
		return nil, usagef("--allow: %w; want prefixes such as 10.0.0.0/16, or addresses", err)
	}
	if f.keys != "" {
		if a.ring, err = keyfile.Open(f.keys); err != nil {
			return nil, err
		}
		cfg.Keys = a.ring
	}
	if f.topology != "" {
		if a.doc, err = file.Read(f.topology); err != nil {
			return nil, err
		}
	}
	switch {
	case f.require != "" && f.require != "mac":
		return nil, usagef("--require %q, want mac", f.require)
	case !receives && (f.require != "" || a.doc != nil):
		return nil, usagef("--require and --topology are about reports, and --rocev2 receives none; with --keys all translators authenticate")
	case receives && a.ring != nil && a.doc == nil && len(cfg.Collectors) == 0:
		return nil, usagef("--keys needs --topology for the ids of its names")
	case f.require != "" && (a.ring == nil || a.doc == nil):
		return nil, usagef("--require mac needs --keys, and --topology for the ids of its names")
	case f.window <= 0:
		return nil, usagef("--time-window %v, want above 0", f.window)
	}
	if !receives || len(cfg.Allow) == 0 && a.doc == nil {
		return a, nil
	}
	guard, err := admission.NewGuard(admission.GuardConfig{Input: "dta", Allow: cfg.Allow, Log: log, Now: time.Now})
	if err != nil {
		return nil, err
	}
	policy := admission.Config{
		Guard: guard, RequireMAC: f.require != "", TimeWindow: f.window,
		// Lists have no fixed meaning here, unlike in weft serve.
		List: func(dta.ListID) (admission.Kind, model.NodeID) { return admission.Unplanned, 0 },
	}
	if a.doc != nil {
		nodes := a.doc.Fabric.Nodes()
		for i := range nodes {
			policy.Nodes = append(policy.Nodes, admission.Node{Name: nodes[i].Name, Switch: nodes[i].Role.IsSwitch(), Ports: len(nodes[i].Ports)})
		}
	}
	if a.policy, err = admission.New(policy); err != nil {
		return nil, err
	}
	a.setKeys()
	cfg.Gate = a.policy
	if a.doc == nil {
		cfg.Gate = addressGate{a.policy, guard}
	}
	return a, nil
}

// addressGate checks source addresses only: without a topology any node may
// report, in any format.
type addressGate struct {
	*admission.Policy
	guard *admission.Guard
}

// Datagram implements translate.Gate.
func (g addressGate) Datagram(now model.Time, from netip.AddrPort, _ *dta.Header, _ int) translate.Refusal {
	return g.guard.Datagram(now, from.Addr().Unmap())
}

// Prototype implements translate.Gate.
func (g addressGate) Prototype(now model.Time, from netip.AddrPort, _ int) translate.Refusal {
	return g.guard.Datagram(now, from.Addr().Unmap())
}

// setKeys gives the present keys of the topology's nodes to the policy.
func (a *access) setKeys() {
	if a.ring == nil || a.doc == nil {
		return
	}
	nodes := a.doc.Fabric.Nodes()
	keys := make([][]translate.GateKey, len(nodes))
	for i := range nodes {
		for _, k := range a.ring.Keys(nodes[i].Name) {
			keys[i] = append(keys[i], translate.GateKey(k))
		}
	}
	a.policy.SetKeys(keys)
}

// reloadKeys reads the key file, if there is one, again at every SIGHUP until ctx
// ends.
func (a *access) reloadKeys(ctx context.Context, log *slog.Logger) {
	if a.ring == nil {
		return
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
		}
		if err := a.ring.Reload(); err != nil {
			log.Error("SIGHUP: keys are as before", "error", err)
			continue
		}
		a.setKeys()
		log.Info("SIGHUP: keys were read again", "names", len(a.ring.File().Names()))
	}
}
