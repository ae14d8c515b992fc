package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/dataplane/convert"
	"github.com/weft-telemetry/weft/dataplane/sonic"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/sflow"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/live"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
	"github.com/weft-telemetry/weft/wire/dta"
)

// sentFaultDuration is how long faults of a fabric last whose reports are sent: a
// service waits 200 ms for missing reports, and closes incidents after as long.
const sentFaultDuration = 3 * time.Second

// reportFlags say where the reports of a fabric without a controller go.
type reportFlags struct {
	record string // file
	send   string // address
	clock  string // start of the fabric's clocks
	speakFlags

	formats                      []string // of reports that leave, beside DTA
	sendINT                      string   // address
	labelsAsINT, mirrorsAsERSPAN bool     // by formats
}

// given reports whether the fabric only reports.
func (f *reportFlags) given() bool { return f.record != "" || f.realTime() }

// realTime reports whether someone takes the reports as they are made.
func (f *reportFlags) realTime() bool { return f.send != "" || f.gnmi != "" || f.otlp != "" }

// reportingFabric is the fabric of a demo or of a scenario, not made yet.
type reportingFabric struct {
	topology  *file.Document
	scenario  bool
	newWeft   func(start time.Time, send live.Send) (*live.Reporters, error)
	newSONiC  func(start time.Time, out sonic.Outlets) (*live.Reporters, error)
	faultTime time.Duration // between faults
}

// demoReports has a fabric without a controller report: to a file, to a service, or
// both.
func (a *app) demoReports(ctx context.Context, cmd *cobra.Command, f *demoFlags) (err error) {
	f.export.Seed = f.Seed
	if f.scenario == "" {
		doc, err := live.DemoTopology(f.Config)
		if err != nil {
			return err
		}
		return a.report(ctx, cmd, &f.reportFlags, &reportingFabric{
			topology: doc, faultTime: f.every,
			newWeft: func(start time.Time, send live.Send) (*live.Reporters, error) {
				return live.NewReporters(f.Config, start, send)
			},
			newSONiC: func(start time.Time, out sonic.Outlets) (*live.Reporters, error) {
				return live.NewSONiC(f.Config, f.export, start, out)
			},
		})
	}
	s, err := f.readScenario(cmd)
	if err != nil {
		return err
	}
	return a.report(ctx, cmd, &f.reportFlags, scenarioReports(s, f.export))
}

// scenarioReports is the fabric of a scenario.
func scenarioReports(s *scenario.Scenario, export sonic.Config) *reportingFabric {
	return &reportingFabric{
		topology: s.Topology, scenario: true,
		newWeft: func(start time.Time, send live.Send) (*live.Reporters, error) {
			return live.NewScenarioReporters(s, start, send)
		},
		newSONiC: func(start time.Time, out sonic.Outlets) (*live.Reporters, error) {
			return live.NewScenarioSONiC(s, export, start, out)
		},
	}
}

// report runs a fabric and hands its reports on.
func (a *app) report(ctx context.Context, cmd *cobra.Command, f *reportFlags, fabric *reportingFabric) (err error) {
	var to netip.AddrPort
	if f.send != "" {
		if to, err = parseTarget("send", "udp://"+strings.TrimPrefix(f.send, "udp://")); err != nil {
			return err
		}
	}
	if err := checkWritable("record", f.record); err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	out := &reportOutput{to: to, kind: sources.DTA.Kind, port: dta.Port, listen: "dta.listen", fabric: fabric.topology.Fabric}
	speech, err := f.open(ctx, out.fabric)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, speech.close()) }()
	if f.speak != "" {
		out.kind, out.port, out.listen = sflow.Source.Kind, sflowPort, "sflow.listen"
		out.unheard = f.gnmi != "" || f.otlp != ""
		if f.send != "" || f.record != "" {
			speech.out.SFlow = out.send
		}
	}
	if a.format != "json" {
		speech.print(w, fabric.scenario)
	}
	if fabric.scenario {
		if err := speech.awaitSubscribers(ctx); err != nil {
			return err
		}
	}
	start := time.Now().Truncate(time.Second)
	if f.clock != "" {
		if start, err = time.Parse(time.RFC3339, f.clock); err != nil {
			return usagef("--clock %q, want a time such as 2026-01-02T15:04:05Z", f.clock)
		}
	}
	var r *live.Reporters
	if f.speak != "" {
		r, err = fabric.newSONiC(start, speech.out)
	} else {
		r, err = fabric.newWeft(start, out.send)
	}
	switch {
	case err != nil && fabric.scenario:
		return usageError{err}
	case err != nil:
		return err
	}
	if f.convertsReports() {
		r.Convert(f.labelsAsINT, f.mirrorsAsERSPAN, out.sendConverted)
	}
	if f.record != "" {
		if out.file, err = capture.NewWriter(f.record); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, out.file.Close()) }()
	}
	if to.IsValid() {
		if out.conn, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to)); err != nil {
			return err
		}
		defer out.conn.Close()
		closeConverted, err := out.dialConverted(f)
		if err != nil {
			return err
		}
		defer closeConverted()
	}
	topology, err := f.writeTopology(r.Topology())
	if err != nil {
		return err
	}
	injected := func(one *live.Injected) {
		if a.format != "json" {
			fmt.Fprintf(w, "%12v  injected %s: %s\n", time.Duration(one.At).Round(time.Millisecond), one.Kind, one.What)
		}
	}
	if !f.realTime() {
		err = r.Record(ctx, injected)
	} else {
		if a.format != "json" {
			fmt.Fprintf(w, "%s report%s in real time. Ctrl-C stops them.\n\n", nodeCount(out.fabric), out.destination())
		}
		err = r.RunRealTime(ctx, live.RealTime{
			Every: fabric.faultTime, For: sentFaultDuration, Injected: injected, Behind: func(by time.Duration) {
				fmt.Fprintf(cmd.ErrOrStderr(), "weft: the simulation is %s behind the wall clock; a lower --rate or --load helps\n", by.Round(time.Second))
			},
		})
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	if err := speech.close(); err != nil {
		return err
	}
	done := reportedRun{
		Datagrams: out.datagrams, Refused: out.refused, Bytes: out.bytes, Simulated: r.Elapsed(), Record: f.record, Topology: topology, Sent: f.send,
		spokenRun: speech.result(),
	}
	if a.format == "json" {
		return printJSON(w, done)
	}
	return done.print(w)
}

// writeTopology writes the topology beside a recording: reports.pcapng has
// reports.topology.yaml. It returns its name; empty without a recording.
func (f *reportFlags) writeTopology(doc *file.Document) (string, error) {
	if f.record == "" {
		return "", nil
	}
	name := strings.TrimSuffix(f.record, filepath.Ext(f.record)) + ".topology.yaml"
	w, err := os.Create(name)
	if err != nil {
		return "", err
	}
	return name, errors.Join(file.Write(w, file.YAML, doc), w.Close())
}

// nodeCount says how many switches and hosts a fabric has.
func nodeCount(f *topo.Fabric) string {
	return plural.Count(len(f.Switches()), "switch") + " and " + plural.Count(len(f.Hosts()), "host")
}

// reportOutput takes the datagrams of a fabric.
type reportOutput struct {
	fabric *topo.Fabric
	file   *capture.Writer // nil: not recorded
	conn   *net.UDPConn    // nil: not sent
	to     netip.AddrPort
	kind   source.Kind
	port   uint16                      // of kind
	listen string                      // the service's setting
	conns  map[convert.Format]net.Conn // of converted reports
	// unheard has datagrams that no service takes counted instead of ending the run: targets are there
	// before the service that asks them.
	unheard bool

	datagrams, refused uint64
	bytes              model.Bytes
}

// collectorAddress is the destination of recorded reports that are not sent.
var collectorAddress = netip.AddrFrom4([4]byte{192, 0, 2, 1})

// sflowPort is the port of sFlow by convention.
const sflowPort = 6343

// destination says where datagrams go; empty: nowhere.
func (o *reportOutput) destination() string {
	if o.conn == nil {
		return ""
	}
	return fmt.Sprintf(" to %v", o.to)
}

func (o *reportOutput) send(at model.Time, from model.NodeID, datagram []byte) error {
	to := o.to
	if !to.IsValid() {
		to = netip.AddrPortFrom(collectorAddress, o.port)
	}
	if err := o.recordPacket(o.kind, at, from, o.port, to, datagram); err != nil {
		return err
	}
	if o.conn == nil {
		return nil
	}
	switch _, err := o.conn.Write(datagram); {
	case errors.Is(err, syscall.ECONNREFUSED) && o.unheard:
		o.refused++
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("reports to %v: %w; is weft serve running there? %s is its address", o.to, err, o.listen)
	case err != nil:
		return fmt.Errorf("reports to %v: %w", o.to, err)
	}
	return nil
}

// recordPacket counts a packet of a node's port, and records it.
func (o *reportOutput) recordPacket(kind source.Kind, at model.Time, from model.NodeID, port uint16, to netip.AddrPort, payload []byte) error {
	o.datagrams++
	o.bytes += model.Bytes(len(payload))
	if o.file == nil {
		return nil
	}
	return o.file.WriteDatagram(kind, at, netip.AddrPortFrom(o.fabric.Node(from).IPv4.Netip(), port), to, payload)
}

// reportedRun is what a fabric has reported.
type reportedRun struct {
	Datagrams uint64        `json:"datagrams"`
	Refused   uint64        `json:"refused,omitempty"` // datagrams that no service took
	Bytes     model.Bytes   `json:"bytes"`
	Simulated time.Duration `json:"simulated_ns"`
	Record    string        `json:"record,omitempty"`
	Topology  string        `json:"topology,omitempty"`
	Sent      string        `json:"sent_to,omitempty"`
	spokenRun
}

func (r *reportedRun) print(w io.Writer) error {
	fmt.Fprintf(w, "\n%s (%s) of %s of the fabric", plural.Count(r.Datagrams, "datagram"), model.FormatBytes(r.Bytes),
		model.FormatDuration(r.Simulated))
	if r.Sent != "" {
		fmt.Fprintf(w, ", sent to %s", r.Sent)
	}
	if r.Refused > 0 {
		fmt.Fprintf(w, " (%d refused: no service listened)", r.Refused)
	}
	fmt.Fprint(w, r.spokenRun.text())
	if r.Record == "" {
		_, err := fmt.Fprintln(w, ".\nweft incidents shows what the service found.")
		return err
	}
	_, err := fmt.Fprintf(w, `, recorded in %s.
The topology is in %s. See what Weft finds in the recording:
  weft replay %s --topology %s
`, r.Record, r.Topology, r.Record, r.Topology)
	return err
}
