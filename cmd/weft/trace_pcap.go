package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/analyze/filter"
	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/tracepcap"
	"github.com/weft-telemetry/weft/control/tracewatch"
	"github.com/weft-telemetry/weft/ingest/erspan"
	"github.com/weft-telemetry/weft/internal/plural"
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
	watch.Window, watch.Periods, watch.KeepAll, watch.Memory = 0, 1<<16, all || f.topo == "", 512*model.MiB
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
	cfg.WeftReports = f.topo != ""
	cfg.Switch = func(a model.Addr) (model.NodeID, bool) {
		id, ok := fabric.ByAddr(a)
		return id, ok && fabric.Node(id).Role.IsSwitch()
	}
	d, err := erspan.NewDecoder(cfg)
	if err != nil {
		return nil, nil, "", err
	}
	last := model.Time(0)
	if err := d.DecodeFile(f.pcap, func(at model.Time, m *mirror.Mirror) {
		last = max(last, at)
		w.AddMirror(at, m)
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
	if err := d.DecodeFile(f.pcap, func(model.Time, *mirror.Mirror) {}); err != nil {
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
	text := plural.Count(s.Packets, "packet") + ", " + plural.Count(s.Mirrors, "mirror")
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
		{s.Truncated, "truncated"},
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

// captureList is the traces of a capture file and what they show.
type captureList struct {
	Note        string             `json:"note"`
	Mirrors     uint64             `json:"mirrors"`
	Traces      uint64             `json:"traces"`
	Fates       map[string]uint64  `json:"fates"`
	LostMirrors uint64             `json:"lost_mirrors"`
	Malformed   uint64             `json:"malformed"`
	ClosedEarly uint64             `json:"closed_early"`
	Evicted     uint64             `json:"evicted"` // traces that the memory could not hold
	Findings    []captureFinding   `json:"findings"`
	Matched     int                `json:"matched"`
	Items       []api.TraceSummary `json:"items"`
}

// captureFinding is a trace.Finding with the names of its switches.
type captureFinding struct {
	Kind        string         `json:"kind"`
	Switch      string         `json:"switch"`
	Next        string         `json:"next,omitempty"`
	Loop        []string       `json:"loop,omitempty"`
	Flow        *model.FlowKey `json:"flow,omitempty"`
	Lost        uint64         `json:"lost"` // packets last seen at Switch, or that looped
	Packets     uint64         `json:"packets"`
	Probability float64        `json:"probability"` // that lost mirrors explain it
}

// runCapture assembles and lists the traces of a capture file.
func (f *traceFlags) runCapture(a *app, cmd *cobra.Command) error {
	from, to, err := f.timeRange.parseCapture()
	if err != nil {
		return err
	}
	check := func(w *tracewatch.Watch) error {
		_, err := w.QueryTraces(f.query.Filter, 0, 0, f.fields()...)
		return err
	}
	w, fabric, note, err := f.capture.assemble(f.close, cmd.Flags().Changed("filter"), check)
	if err != nil {
		return filterUsage(err)
	}
	got, err := w.QueryTraces(f.query.Filter, from, to, f.fields()...)
	if err != nil {
		return filterUsage(err)
	}
	if f.pcapng != "" {
		if err := writeTraces(f.pcapng, f.query.Filter, got, fabric); err != nil {
			return err
		}
	}
	list := newCaptureList(w, fabric, got, f.query.Limit)
	list.Note = note
	t := &target{flags: &f.targetFlags}
	out := cmd.OutOrStdout()
	switch {
	case f.show > len(got.Traces):
		return usagef("--show %d, want at most %d, the number of traces", f.show, len(got.Traces))
	case a.format == "json":
		err = printJSON(out, list)
	case f.show > 0:
		err = printTrace(out, t, newTraceDetail(got.Traces[f.show-1], fabric))
	default:
		err = f.printCapture(out, t, list)
		if err == nil && len(got.Traces) == 1 {
			fmt.Fprintln(out)
			err = printTrace(out, t, newTraceDetail(got.Traces[0], fabric))
		}
	}
	if err == nil && len(list.Findings) > 0 {
		err = errFault
	}
	return err
}

// parseCapture returns the range of a capture file's times.
func (f *rangeFlags) parseCapture() (from, to model.Time, err error) {
	if f.last != "" {
		return 0, 0, usagef("--last needs a controller or a scenario; want --from and --to with --pcap")
	}
	r, err := f.parse(&target{})
	to = forever
	if !r.From.IsZero() {
		from = model.TimeOf(r.From)
	}
	if !r.To.IsZero() {
		to = model.TimeOf(r.To)
	}
	return from, to, err
}

// forever is after every instant.
const forever = model.Time(math.MaxInt64)

func newCaptureList(w *tracewatch.Watch, f *topo.Fabric, got *tracewatch.Traces, top int) *captureList {
	s := w.Stats()
	list := &captureList{
		Mirrors: s.Mirrors, Traces: s.Closed, Malformed: s.Malformed + s.Unreadable, ClosedEarly: s.Stats.Evicted,
		Evicted: got.Evicted, Matched: len(got.Traces), Fates: map[string]uint64{},
		Findings: []captureFinding{}, Items: []api.TraceSummary{},
	}
	sum := func(name string) (n uint64) {
		points, _ := w.QueryCounter(name, 0, forever) // built-in counters
		for _, p := range points {
			n += p.Count
		}
		return n
	}
	list.LostMirrors = sum("lost-mirrors")
	known := uint64(0)
	for _, name := range []string{"arrived", traceLost, "looped", "unsettled"} {
		list.Fates[name] = sum(name)
		known += list.Fates[name]
	}
	list.Fates["unknown"] = sum("traces") - known
	for _, x := range w.Findings() {
		one := captureFinding{
			Kind: x.Kind.String(), Switch: nodeName(f,
				x.Switch), Flow: x.Flow, Lost: x.Ended, Packets: x.Packets, Probability: x.Chance,
		}
		if x.Known {
			one.Next = nodeName(f, x.Next)
		}
		for _, id := range x.Switches {
			one.Loop = append(one.Loop, nodeName(f, id))
		}
		list.Findings = append(list.Findings, one)
	}
	for i, t := range got.Traces {
		if top > 0 && i == top {
			break
		}
		one := newTraceDetail(t, f).TraceSummary
		one.Fields = got.Rows[i]
		list.Items = append(list.Items, one)
	}
	return list
}

// newTraceDetail describes a trace as the API does.
func newTraceDetail(t *trace.Trace, f *topo.Fabric) *api.Trace {
	r := t.Record(f)
	one := &api.Trace{TraceSummary: api.TraceSummary{
		ID: strconv.FormatUint(r.ID, 10), Time: r.Time, Flow: api.FlowRef{Flow: r.Flow}, End: r.End, Why: r.Why,
		LatencyNs: int64(r.Latency), LostMirrors: r.LostMirrors,
	}}
	for i := range r.Hops {
		h := &r.Hops[i]
		one.Path = append(one.Path, h.Switch)
		hop := api.TraceHop{
			Time: h.Time, Switch: h.Switch, In: h.In, Out: h.Out, TTL: h.TTL, DSCP: h.DSCP, ECN: h.ECN, Depth: h.Depth,
		}
		if i > 0 {
			hop.SinceNs = int64(h.Time.Sub(r.Hops[i-1].Time))
		}
		one.Hops = append(one.Hops, hop)
	}
	return one
}

func (f *traceFlags) printCapture(w io.Writer, t *target, list *captureList) error {
	fmt.Fprintln(w, list.Note)
	fmt.Fprintf(w, "%s of %s: %d arrived, %d lost, %d looped, %d unsettled, %d unknown\n",
		plural.Count(list.Traces, "trace"), plural.Count(list.Mirrors,
			"mirror"), list.Fates["arrived"], list.Fates[traceLost],
		list.Fates["looped"], list.Fates["unsettled"], list.Fates["unknown"])
	if list.LostMirrors+list.Malformed+list.ClosedEarly > 0 {
		fmt.Fprintf(w, "%s lost, %d malformed; %s closed early\n", plural.Count(list.LostMirrors, "mirror"), list.Malformed,
			plural.Count(list.ClosedEarly, "trace"))
	}
	if err := printCaptureFindings(w, list.Findings); err != nil {
		return err
	}
	more := ""
	if len(list.Items) < list.Matched {
		more = fmt.Sprintf(", the first %d", len(list.Items))
	}
	if list.Evicted > 0 {
		more += fmt.Sprintf("; %d discarded (memory full)", list.Evicted)
	}
	fmt.Fprintf(w, "\ntraces: %d%s\n", list.Matched, more)
	switch {
	case list.Matched == 0:
		return nil
	case f.query.Fields != "":
		return printTraceFields(w, f.fields(), list.Items)
	}
	return printTraceRows(w, t, list.Items)
}

func printCaptureFindings(w io.Writer, list []captureFinding) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "\nno faulty switch or link found")
		return err
	}
	fmt.Fprintln(w, "\nfindings")
	var t table
	t.row("FINDING", "SWITCH", "NEXT", "LOST", "OF", "PROBABILITY OF CHANCE", "FLOW")
	for _, f := range list {
		at, flow := f.Switch, "-"
		if len(f.Loop) > 0 {
			at = strings.Join(f.Loop, " > ")
		}
		if f.Flow != nil {
			flow = f.Flow.String()
		}
		t.row(f.Kind, at, dash(f.Next), f.Lost, f.Packets, fmt.Sprintf("%.1e", f.Probability), flow)
	}
	return t.print(w)
}

// filterUsage is a usage error, with a mark under the error in a filter.
func filterUsage(err error) error {
	var e *filter.Error
	if errors.As(err, &e) {
		return usagef("%w\n%s", err, e.Underline())
	}
	return usageError{err}
}

// writeTraces writes traces to a pcapng file.
func writeTraces(path, text string, got *tracewatch.Traces, f *topo.Fabric) error {
	return writeFile(path, func(file io.Writer) error {
		w := tracepcap.NewWriter(file, "traces: "+text)
		for _, t := range got.Traces {
			r := t.Record(f)
			if err := w.Write(&r); err != nil {
				return err
			}
		}
		return w.Flush()
	})
}

func nodeName(f *topo.Fabric, id model.NodeID) string {
	if f.HasNode(id) {
		return f.Node(id).Name
	}
	return fmt.Sprintf("node %d", id)
}
