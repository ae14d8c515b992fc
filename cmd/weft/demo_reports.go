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

	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/sflow"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/live"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
	"github.com/weft-telemetry/weft/wire/dta"
)

// sentFaultDuration is how long faults of a fabric last whose reports are sent: a
// service waits 200 ms for missing reports, and closes incidents after as long.
const sentFaultDuration = 3 * time.Second

// demoReports has a fabric without a controller report: to a file, to a service, or
// both.
func (a *app) demoReports(ctx context.Context, cmd *cobra.Command, f *demoFlags) (err error) {
	var to netip.AddrPort
	if f.send != "" {
		if to, err = parseTarget("send", "udp://"+strings.TrimPrefix(f.send, "udp://")); err != nil {
			return err
		}
	}
	if err := checkWritable("record", f.record); err != nil {
		return err
	}
	out := &reportOutput{to: to, kind: sources.DTA.Kind, port: dta.Port, listen: "dta.listen"}
	if f.speak != "" {
		out.kind, out.port, out.listen = sflow.Source.Kind, sflowPort, "sflow.listen"
	}
	start := time.Now().Truncate(time.Second)
	if f.clock != "" {
		if start, err = time.Parse(time.RFC3339, f.clock); err != nil {
			return usagef("--clock %q, want a time such as 2026-01-02T15:04:05Z", f.clock)
		}
	}
	r, err := f.reporters(cmd, start, out.send)
	if err != nil {
		return err
	}
	out.fabric = r.Topology().Fabric
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
	}
	topology, err := f.writeTopology(r.Topology())
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	injected := func(one *live.Injected) {
		if a.format != "json" {
			fmt.Fprintf(w, "%12v  injected %s: %s\n", time.Duration(one.At).Round(time.Millisecond), one.Kind, one.What)
		}
	}
	if out.conn == nil {
		err = r.Record(ctx, injected)
	} else {
		if a.format != "json" {
			fmt.Fprintf(w, "%s report to %v in real time. Ctrl-C stops them.\n\n", nodeCount(out.fabric), to)
		}
		err = r.RunRealTime(ctx, live.RealTime{
			Every: f.every, For: sentFaultDuration, Injected: injected, Behind: func(by time.Duration) {
				fmt.Fprintf(cmd.ErrOrStderr(), "weft: the simulation is %s behind the wall clock; a lower --rate or --load helps\n", by.Round(time.Second))
			},
		})
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	done := reportedRun{Datagrams: out.datagrams, Bytes: out.bytes, Simulated: r.Elapsed(), Record: f.record, Topology: topology, Sent: f.send}
	if a.format == "json" {
		return printJSON(w, done)
	}
	return done.print(w)
}

// reporters makes the fabric of the demo or of the scenario.
func (f *demoFlags) reporters(cmd *cobra.Command, start time.Time, send live.Send) (*live.Reporters, error) {
	f.export.Seed = f.Seed
	switch {
	case f.scenario == "" && f.speak != "":
		return live.NewSONiC(f.Config, f.export, start, send)
	case f.scenario == "":
		return live.NewReporters(f.Config, start, send)
	}
	s, err := f.readScenario(cmd)
	if err != nil {
		return nil, err
	}
	var r *live.Reporters
	if f.speak != "" {
		r, err = live.NewScenarioSONiC(s, f.export, start, send)
	} else {
		r, err = live.NewScenarioReporters(s, start, send)
	}
	if err != nil {
		return nil, usageError{err}
	}
	return r, nil
}

// writeTopology writes the topology beside a recording: reports.pcapng has
// reports.topology.yaml. It returns its name; empty without a recording.
func (f *demoFlags) writeTopology(doc *file.Document) (string, error) {
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
	port   uint16 // of kind
	listen string // the service's setting

	datagrams uint64
	bytes     model.Bytes
}

// collectorAddress is the destination of recorded reports that are not sent.
var collectorAddress = netip.AddrFrom4([4]byte{192, 0, 2, 1})

// sflowPort is the port of sFlow by convention.
const sflowPort = 6343

func (o *reportOutput) send(at model.Time, from model.NodeID, datagram []byte) error {
	o.datagrams++
	o.bytes += model.Bytes(len(datagram))
	if o.file != nil {
		to := o.to
		if !to.IsValid() {
			to = netip.AddrPortFrom(collectorAddress, o.port)
		}
		src := netip.AddrPortFrom(o.fabric.Node(from).IPv4.Netip(), o.port)
		if err := o.file.WriteDatagram(o.kind, at, src, to, datagram); err != nil {
			return err
		}
	}
	if o.conn == nil {
		return nil
	}
	if _, err := o.conn.Write(datagram); errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("reports to %v: %w; is weft serve running there? %s is its address", o.to, err, o.listen)
	} else if err != nil {
		return fmt.Errorf("reports to %v: %w", o.to, err)
	}
	return nil
}

// reportedRun is what a fabric has reported.
type reportedRun struct {
	Datagrams uint64        `json:"datagrams"`
	Bytes     model.Bytes   `json:"bytes"`
	Simulated time.Duration `json:"simulated_ns"`
	Record    string        `json:"record,omitempty"`
	Topology  string        `json:"topology,omitempty"`
	Sent      string        `json:"sent_to,omitempty"`
}

func (r *reportedRun) print(w io.Writer) error {
	fmt.Fprintf(w, "\n%s (%s) of %s of the fabric", plural.Count(r.Datagrams, "datagram"), model.FormatBytes(r.Bytes),
		model.FormatDuration(r.Simulated))
	if r.Sent != "" {
		fmt.Fprintf(w, ", sent to %s", r.Sent)
	}
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
