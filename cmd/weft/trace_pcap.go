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

// captureFlags select ERSPAN mirrors from a capture file.
type captureFlags struct {
	pcap  string
	topo  string
	pads  []string
	debug uint8
}

func (f *captureFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.pcap, "pcap", "", "read ERSPAN mirrors from this pcap or pcapng file")
	fl.StringVar(&f.topo, "topology", "", "with --pcap: topology file; a mirror's source address identifies its switch")
	fl.StringSliceVar(&f.pads, "pad", nil,
		"with --pcap: ADDRESS=BYTES of padding that a switch inserts between the GRE header and the frame, e.g. 10.0.0.1=12")
	fl.Uint8Var(&f.debug, "debug-mark", 1, "with --pcap: DSCP bits that mark a packet for debugging")
}

// assemble reads the mirrors of the file into traces. A trace is complete after
// quiet without a mirror; check runs before the file is read.
func (f *captureFlags) assemble(quiet time.Duration, all bool, check func(*tracewatch.Watch) error) (
	*tracewatch.Watch, *topo.Fabric, string, error,
) {
	cfg := erspan.Config{Debug: f.debug, Pads: map[model.Addr]int{}}
	for _, text := range f.pads {
		addr, n, ok := strings.Cut(text, "=")
		a, err := netip.ParseAddr(addr)
		pad, err2 := strconv.Atoi(n)
		if !ok || err != nil || err2 != nil || pad < 0 || pad > 1000 {
			return nil, nil, "", usagef("--pad %q, want ADDRESS=BYTES such as 10.0.0.1=12", text)
		}
		cfg.Pads[model.AddrOf(a)] = pad
	}
	routes, note, err := f.routes(cfg)
	if err != nil {
		return nil, nil, "", err
	}
	fabric := routes.Fabric()
	watch := tracewatch.DefaultConfig(topo.NewIntent(routes))
	watch.Trace.OutPorts = false // ERSPAN does not carry the egress port
	watch.Window, watch.Periods, watch.All, watch.Memory = 0, 1<<16, all || f.topo == "", 512*model.MiB
	if quiet > 0 {
		watch.Trace.CloseAfter, watch.Trace.RouteSettle = quiet, quiet
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
	// The capture is assumed to include all mirrors in flight when it ended;
	// otherwise no trace could be judged complete.
	w.Advance(last.Add(watch.Trace.CloseAfter))
	w.Finish()
	return w, fabric, note + decodeSummary(d.Stats()), nil
}

// routes returns the topology's routes. Without a topology it builds a fabric of
// the switches that sent mirrors, without links, which only names them.
func (f *captureFlags) routes(cfg erspan.Config) (*topo.Routes, string, error) {
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
		return nil, "", fmt.Errorf("%s: no mirrors, want ERSPAN packets; %s", f.pcap, decodeSummary(d.Stats()))
	}
	fabric, err := b.Build()
	if err != nil {
		return nil, "", err
	}
	r, err := topo.NewRoutes(fabric, topo.RouteConfig{})
	return r, "no topology: intended routes are unknown, so drops cannot be detected\n", err
}

// decodeSummary counts a file's packets by how they were decoded.
func decodeSummary(s erspan.Stats) string {
	text := fmt.Sprintf("%d packets, %d mirrors", s.Packets, s.Mirrors)
	for _, one := range []struct {
		n    uint64
		what string
	}{
		{s.Other, "other packets"},
		{s.NotIP, "not IP"},
		{s.Fragment, "fragments"},
		{s.Unsupported, "with an unsupported GRE header"},
		{s.NoMirror, "GRE without a mirror"},
		{s.Version, "with a wrong ERSPAN version"},
		{s.Short, "truncated"},
		{s.Unknown, "from unknown switch addresses"},
		{s.Empty, "without a frame"},
		{s.Missing, "mirrors missing by sequence number"},
		{s.Late, "mirrors out of order"},
	} {
		if one.n > 0 {
			text += fmt.Sprintf(", %d %s", one.n, one.what)
		}
	}
	return text
}
