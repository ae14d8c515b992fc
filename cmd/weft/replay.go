package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/keyfile"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo/file"
	"github.com/weft-telemetry/weft/wire/dta"
)

// replayFlags are the flags of weft replay.
type replayFlags struct {
	config   string
	topology string
	stream   string
	store    string
	spans    []string
	to       map[source.Kind]*string // destinations, by flag
	keys     string
	speed    string
}

func (a *app) replayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay [FILE…]",
		Short: "Replay recorded reports: analyse them, or send them to a service",
		Long: `Replay recorded reports. The files are recordings of weft serve (record.file) and
weft collect (--record), or pcap and pcapng captures of tcpdump and similar tools.
DTA and INT reports (by UDP port) and ERSPAN mirrors are used; with --span also
plain packets mirrored by one switch. Several files are merged in time order.

With --config or --topology the reports are analysed as weft serve does, by the
clock of the recording and as fast as possible. It prints the findings; with --store
it also keeps them in a DuckDB file or in ClickHouse, for weft store and weft serve. The exit code is
3 if there is an incident of severity warning or critical.

With --to the reports are sent to a running weft serve, at the speed of the recording
or --speed times as fast. Reports keep their timestamps: weft serve rejects those that
are older than its controller.time_window. Where it requires MACs (dta.require), --keys
and --topology sign the reports as their reporters would.

Without any of these it prints a summary of the files.`,
		Example: `  weft replay reports.pcapng
  weft replay reports.pcapng --config /etc/weft/serve.yaml --store replay.duckdb
  weft replay mirrors.pcap --topology fabric.yaml -o json
  weft replay --span leaf0=leaf0.pcap --span spine1=spine1.pcap --topology fabric.yaml
  weft replay reports*.pcapng --to udp://127.0.0.1:40040 --speed max
  weft replay reports.pcapng --to udp://127.0.0.1:40040 --keys weft.keys --topology fabric.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, args) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.config, "config", "", "configuration file of weft serve: topology, INT units, switch addresses")
	fl.StringVar(&f.stream, "stream", "", "NATS servers of a cluster that analyses the reports: nats://HOST:PORT")
	fl.StringVar(&f.topology, "topology", "", "topology file, instead of the configuration's")
	fl.StringVar(&f.store, "store", "", "write records to this DuckDB file or clickhouse:// address (default: none)")
	fl.StringArrayVar(&f.spans, "span", nil, "SWITCH=FILE of plain packets mirrored by one switch; repeatable")
	f.to = map[source.Kind]*string{}
	for _, src := range udpSources() {
		f.to[src.Kind] = fl.String(sendFlag(src.Kind), "", "send "+src.Title+" to this address, udp://HOST:PORT")
	}
	fl.StringVar(&f.keys, "keys", "", "with --to: key file; DTA reports are signed anew with their reporters' keys; needs --topology for their ids")
	fl.StringVar(&f.speed, "speed", "1", "with --to: recorded seconds per real second, or max")
	return cmd
}

func (f *replayFlags) run(a *app, cmd *cobra.Command, args []string) error {
	inputs, err := f.inputs(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	cmd.SetContext(ctx)
	analyse := f.config != "" || f.topology != ""
	switch send := f.sends(); {
	case (f.keys != "") != (send && f.topology != ""):
		return usagef("--keys, --to and --topology together sign reports; --topology without --to analyses them")
	case send && (f.config != "" || f.store != ""):
		return usagef("the flags --to… send reports to a service, and cannot be combined with --config or --store")
	case !send && cmd.Flags().Changed("speed"):
		return usagef("--speed needs --to or another --to-KIND; an analysis runs as fast as possible")
	case !analyse && f.store != "":
		return usagef("--store %s needs --config or --topology, for the analysis", f.store)
	case send:
		return f.send(a, cmd, inputs)
	case analyse && f.stream != "":
		return f.forward(cmd, inputs)
	case analyse:
		return f.analyse(a, cmd, inputs)
	}
	def := serve.DefaultConfig()
	s, err := capture.Summarize(def.Ports(), inputs...)
	if err != nil {
		return usageError{err}
	}
	return a.printSurvey(cmd.OutOrStdout(), &s)
}

// inputs returns the files of the command line.
func (f *replayFlags) inputs(args []string) (list []capture.Input, err error) {
	for _, path := range args {
		list = append(list, capture.Input{Path: path})
	}
	for _, text := range f.spans {
		name, path, ok := strings.Cut(text, "=")
		if !ok || name == "" || path == "" {
			return nil, usagef("--span %q, want SWITCH=FILE", text)
		}
		list = append(list, capture.Input{Path: path, Switch: name})
	}
	if len(list) == 0 {
		return nil, usagef("no files, want recordings or captures; weft serve --record-file writes one")
	}
	return list, nil
}

// parseTarget parses udp://HOST:PORT.
func parseTarget(flag, text string) (netip.AddrPort, error) {
	if text == "" {
		return netip.AddrPort{}, nil
	}
	rest, ok := strings.CutPrefix(text, "udp://")
	to, err := netip.ParseAddrPort(rest)
	if !ok || err != nil {
		return to, usagef("--%s %q, want udp://ADDRESS:PORT", flag, text)
	}
	return to, nil
}

func (f *replayFlags) send(a *app, cmd *cobra.Command, inputs []capture.Input) (err error) {
	cfg := capture.SendConfig{To: map[source.Kind]netip.AddrPort{}}
	for kind, text := range f.to {
		if cfg.To[kind], err = parseTarget(sendFlag(kind), *text); err != nil {
			return err
		}
	}
	if f.speed != "max" {
		cfg.Speed, err = strconv.ParseFloat(f.speed, 64)
		if err != nil || !(cfg.Speed > 0) {
			return usagef("--speed %q, want a number above 0, or max", f.speed)
		}
	}
	if f.keys != "" {
		if cfg.Key, err = reporterKeys(f.topology, f.keys); err != nil {
			return usageError{err}
		}
	}
	def := serve.DefaultConfig()
	in, err := capture.Open(def.Ports(), inputs...)
	if err != nil {
		return usageError{err}
	}
	defer in.Close()
	start := time.Now()
	sent, err := capture.Send(cmd.Context(), in, cfg)
	if err != nil {
		return err
	}
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), struct {
			capture.SendStats
			Took time.Duration `json:"took_ns"`
		}{sent, time.Since(start)})
	}
	for _, k := range sources.Kinds() {
		if n := sent.Datagrams[k]; n > 0 {
			fmt.Fprintf(cmd.OutOrStdout(), "%d %s reports sent to %v\n", n, strings.ToUpper(string(k)), cfg.To[k])
		}
	}
	for _, k := range sources.Kinds() {
		if n := sent.Skipped[k]; n > 0 {
			fmt.Fprintf(cmd.OutOrStdout(), "%s skipped: %v\n", plural.Count(n, "packet"), skippedBecause(k))
		}
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s of the recording sent in %s\n", model.FormatDuration(sent.Span),
		model.FormatDuration(time.Since(start)))
	return err
}

// reporterKeys returns the key that each node of a topology signs with, or nil.
func reporterKeys(topology, path string) (func(model.NodeID) *dta.MAC, error) {
	doc, err := file.Read(topology)
	if err != nil {
		return nil, err
	}
	keys, err := keyfile.Read(path)
	if err != nil {
		return nil, err
	}
	macs := map[model.NodeID]*dta.MAC{}
	for _, n := range doc.Fabric.Nodes() {
		if list := keys.Keys(n.Name); len(list) > 0 {
			macs[n.ID] = dta.NewMAC(list[0].ID, list[0].Secret[:])
		}
	}
	return func(id model.NodeID) *dta.MAC { return macs[id] }, nil
}

// udpSources are the sources whose reports can be sent.
func udpSources() (list []source.Source) {
	for _, src := range sources.All() {
		if src.Proto == model.UDP && !src.Dials && !src.Streams {
			list = append(list, src)
		}
	}
	return list
}

// sendFlag is the flag of the address that reports of a kind are sent to.
func sendFlag(k source.Kind) string {
	if k == sources.DTA.Kind {
		return "to"
	}
	return "to-" + string(k)
}

// sends reports whether there is an address to send to.
func (f *replayFlags) sends() bool {
	for _, text := range f.to {
		if *text != "" {
			return true
		}
	}
	return false
}

// skippedBecause is why packets of a kind are not sent.
func skippedBecause(k source.Kind) string {
	src, known := sources.ByKind(k)
	switch {
	case known && src.Proto == model.UDP:
		return src.Title + ", want --" + sendFlag(k)
	case known:
		return src.Title + ", want --config"
	case k == source.SPAN:
		return "mirrored packets, want --config"
	}
	return "not reports"
}

func (f *replayFlags) analyse(a *app, cmd *cobra.Command, inputs []capture.Input) (err error) {
	src := serve.Source{File: f.config, Env: os.LookupEnv, Flags: map[string]string{}}
	if f.topology != "" {
		src.Flags["topology"] = f.topology
	}
	cfg, err := src.Load()
	if err != nil {
		return usageError{err}
	}
	var keep serve.Store
	if f.store != "" {
		s, err := openAnyStore(cmd.Context(), f.store)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		keep = s
	}
	found, err := analyseFiles(cmd.Context(), cfg, keep, inputs)
	if err != nil {
		return err
	}
	if a.format == "json" {
		err = printJSON(cmd.OutOrStdout(), found)
	} else {
		err = printFound(cmd.OutOrStdout(), found, f.store)
	}
	if err == nil && found.Faulty() {
		err = errFault
	}
	return err
}

// analyseFiles analyses recordings as weft serve does.
func analyseFiles(ctx context.Context, cfg serve.Config, keep serve.Store, inputs []capture.Input) (_ *serve.Summary, err error) {
	summary, err := capture.Summarize(cfg.Ports(), inputs...)
	if err != nil {
		return nil, usageError{err}
	}
	r, err := serve.NewReplay(ctx, cfg, summary.Kinds, keep)
	if err != nil {
		return nil, usageError{err}
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	in, err := capture.Open(cfg.Ports(), inputs...)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return r.Run(ctx, in)
}
