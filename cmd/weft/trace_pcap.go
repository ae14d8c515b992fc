package main

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/tracewatch"
	"github.com/weft-telemetry/weft/ingest/erspan"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// capturedFlags say where captured mirrors come from.
type capturedFlags struct {
	pcap  string
	topo  string
	pads  []string
	debug uint8
}

func (f *capturedFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.pcap, "pcap", "", "read ERSPAN mirrors from this pcap or pcapng file instead of playing a scenario")
	fl.StringVar(&f.topo, "topology", "", "with --pcap: topology of the fabric; mirrors come from the addresses of its switches")
	fl.StringSliceVar(&f.pads, "pad", nil, "with --pcap: a switch that puts so many bytes between GRE and the frame, whatever its header says, as 10.0.0.1=12")
	fl.Uint8Var(&f.debug, "debug-mark", 1, "with --pcap: bits of the DSCP field that mark a packet")
}

// play shows the mirrors of the file to a watch.
func (f *capturedFlags) play(quiet time.Duration, all bool, check func(*tracewatch.Watch) error) (*tracewatch.Watch, *topo.Fabric, string, error) {
	cfg := erspan.Config{Debug: f.debug, Pads: map[model.Addr]int{}}
	for _, text := range f.pads {
		addr, n, ok := strings.Cut(text, "=")
		a, err := netip.ParseAddr(addr)
		pad, err2 := strconv.Atoi(n)
		if !ok || err != nil || err2 != nil || pad < 0 || pad > 1000 {
			return nil, nil, "", usagef("--pad %q, want an address and a number of bytes, as 10.0.0.1=12", text)
		}
		cfg.Pads[model.AddrOf(a)] = pad
	}
	routes, note, err := f.routes(cfg)
	if err != nil {
		return nil, nil, "", err
	}
	fabric := routes.Fabric()
	watch := tracewatch.DefaultConfig(topo.NewIntent(routes))
	watch.Trace.Ports = false // ERSPAN does not tell the out port
	watch.Window, watch.Periods, watch.All, watch.Memory = 0, 1<<16, all || f.topo == "", 512*model.MiB
	if quiet > 0 {
		watch.Trace.Close, watch.Trace.Settle = quiet, quiet
	}
	w, err := tracewatch.New(watch, nil, tracewatch.Output{})
	if err != nil {
		return nil, nil, "", err
	}
	if err := check(w); err != nil {
		return nil, nil, "", err
	}
	cfg.Own = f.topo != ""
	cfg.Switch = func(a model.Addr) (model.NodeID, bool) {
		id, ok := fabric.ByAddr(a)
		return id, ok && fabric.Node(id).Role.IsSwitch()
	}
	d, err := erspan.NewDecoder(cfg)
	if err != nil {
		return nil, nil, "", err
	}
	last := model.Time(0)
	if err := d.File(f.pcap, func(at model.Time, m *mirror.Mirror) {
		last = max(last, at)
		w.Add(at, m)
	}); err != nil {
		return nil, nil, "", err
	}
	// Whoever captured waited for what was underway, or nobody could judge.
	w.Advance(last.Add(watch.Trace.Close))
	w.Finish()
	return w, fabric, note + account(d.Stats()), nil
}

// routes are those of the topology. Without one there is a fabric of the
// switches that sent mirrors, without links: it gives them names.
func (f *capturedFlags) routes(cfg erspan.Config) (*topo.Routes, string, error) {
	if f.topo != "" {
		doc, err := file.Read(f.topo)
		if err != nil {
			return nil, "", err
		}
		r, err := doc.Routes()
		return r, "", err
	}
	seen := map[model.Addr]bool{}
	b := topo.NewBuilder("captured")
	cfg.Switch = func(a model.Addr) (model.NodeID, bool) {
		if !seen[a] && len(seen) < topo.MaxNodes {
			seen[a] = true
			node := topo.NodeSpec{Name: a.String(), Role: topo.Spine, Pod: topo.NoPod}
			if a.Is4() {
				node.IPv4 = a.Netip()
			} else {
				node.IPv6 = a.Netip()
			}
			b.AddNode(node)
		}
		return 0, false
	}
	d, err := erspan.NewDecoder(cfg)
	if err != nil {
		return nil, "", err
	}
	if err := d.File(f.pcap, func(model.Time, *mirror.Mirror) {}); err != nil {
		return nil, "", err
	}
	if len(seen) == 0 {
		return nil, "", fmt.Errorf("%s: no mirrors, want ERSPAN packets; %s", f.pcap, account(d.Stats()))
	}
	fabric, err := b.Build()
	if err != nil {
		return nil, "", err
	}
	r, err := topo.NewRoutes(fabric, topo.RouteConfig{})
	return r, "no topology: where packets should go is not known, so none can be missing\n", err
}

// account says what became of the packets of a file.
func account(s erspan.Stats) string {
	text := fmt.Sprintf("%d packets, %d mirrors", s.Packets, s.Mirrors)
	for _, one := range []struct {
		n    uint64
		what string
	}{
		{s.Other, "of something else"},
		{s.NotIP, "not IP"},
		{s.Fragment, "fragments"},
		{s.Unsupported, "of an unsupported kind of GRE"},
		{s.NoMirror, "GRE without a mirror"},
		{s.Version, "of an unfitting version"},
		{s.Short, "too short"},
		{s.Unknown, "from addresses of no switch"},
		{s.Empty, "without a frame"},
		{s.Missing, "mirrors missing by their numbers"},
		{s.Late, "mirrors out of order"},
	} {
		if one.n > 0 {
			text += fmt.Sprintf(", %d %s", one.n, one.what)
		}
	}
	return text
}
