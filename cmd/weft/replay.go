package main

import (
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
	"github.com/weft-telemetry/weft/store/embedded"
)

// replayFlags are those of weft replay.
type replayFlags struct {
	config   string
	topology string
	store    string
	spans    []string
	to       string
	toINT    string
	speed    string
}

func (a *app) replayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay [FILE…]",
		Short: "Play recorded reports again: analyse them, or send them to a service",
		Long: `Play recorded reports again. Files are what weft serve (record.file) and weft
collect (--record) wrote, or captures by tcpdump and its kin, pcap or pcapng. Of
them DTA and INT reports (by their UDP ports) and ERSPAN mirrors are used; with
--span also plain packets that one switch mirrored. Several files are played as
one, in the order of their times.

With --config or --topology everything that weft serve does with reports is done
with those of the files, by their clock and as fast as it goes: told is what was
found, and with --store it is kept in a DuckDB file that weft store reads and
weft serve shows. The exit code is 3 if there is an incident.

With --to they are sent to the sockets of a service that runs, at the pace of the
recording or --speed times as fast. Reports keep their times: a service takes
those of the past for late.

Without either it tells what the files have.`,
		Example: `  weft replay reports.pcapng
  weft replay reports.pcapng --config /etc/weft/serve.yaml --store replay.duckdb
  weft replay mirrors.pcap --topology fabric.yaml -o json
  weft replay --span leaf0=leaf0.pcap --span spine1=spine1.pcap --topology fabric.yaml
  weft replay reports*.pcapng --to udp://127.0.0.1:40040 --speed max`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, args) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.config, "config", "", "configuration of weft serve: its fabric, units of INT reports, addresses of switches")
	fl.StringVar(&f.topology, "topology", "", "file of the fabric's topology, instead of the configuration's")
	fl.StringVar(&f.store, "store", "", "DuckDB file that records are written to; left out: none")
	fl.StringArrayVar(&f.spans, "span", nil, "file of plain packets that one switch mirrored, SWITCH=FILE; may be repeated")
	fl.StringVar(&f.to, "to", "", "send DTA reports to this address, udp://HOST:PORT")
	fl.StringVar(&f.toINT, "to-int", "", "send INT reports to this address, udp://HOST:PORT")
	fl.StringVar(&f.speed, "speed", "1", "with --to: recorded seconds in one of the wall, or max")
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
	switch send := f.to != "" || f.toINT != ""; {
	case send && (analyse || f.store != ""):
		return usagef("--to and --to-int send to a service, which has a configuration and a store of its own; want them, or --config, --topology and --store")
	case !send && cmd.Flags().Changed("speed"):
		return usagef("--speed is for --to and --to-int; what is analysed here goes as fast as it can")
	case !analyse && f.store != "":
		return usagef("--store %s: what is kept there must be analysed first, want --config or --topology", f.store)
	case send:
		return f.send(a, cmd, inputs)
	case analyse:
		return f.analyse(a, cmd, inputs)
	}
	def := serve.DefaultConfig()
	s, err := capture.Look(def.Ports(), inputs...)
	if err != nil {
		return usageError{err}
	}
	return a.printSurvey(cmd.OutOrStdout(), &s)
}

// inputs are the files of the command line.
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
		return nil, usagef("no files, want recordings or captures; weft serve --record-file makes one")
	}
	return list, nil
}

// target reads udp://HOST:PORT.
func target(flag, text string) (netip.AddrPort, error) {
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
	var cfg capture.SendConfig
	if cfg.To[capture.DTA], err = target("to", f.to); err != nil {
		return err
	}
	if cfg.To[capture.INT], err = target("to-int", f.toINT); err != nil {
		return err
	}
	if f.speed != "max" {
		cfg.Speed, err = strconv.ParseFloat(f.speed, 64)
		if err != nil || !(cfg.Speed > 0) {
			return usagef("--speed %q, want a number above 0, or max", f.speed)
		}
	}
	def := serve.DefaultConfig()
	in, err := capture.Open(def.Ports(), inputs...)
	if err != nil {
		return usageError{err}
	}
	defer in.Close()
	began := time.Now()
	sent, err := capture.Send(cmd.Context(), in, cfg)
	if err != nil {
		return err
	}
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), struct {
			capture.Sent
			Took time.Duration `json:"took_ns"`
		}{sent, time.Since(began)})
	}
	for k, n := range sent.Datagrams {
		if n > 0 {
			fmt.Fprintf(cmd.OutOrStdout(), "%d %s reports sent to %v\n", n, strings.ToUpper(capture.Kind(k).String()), cfg.To[k])
		}
	}
	for k, n := range sent.Left {
		if n > 0 {
			fmt.Fprintf(cmd.OutOrStdout(), "%d packets left out: %v\n", n, leftOut[k])
		}
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%v of the recording in %v\n", sent.Span, time.Since(began).Round(time.Millisecond))
	return err
}

// leftOut says why packets are not sent.
var leftOut = [capture.NumKinds]string{
	capture.Other: "no reports", capture.DTA: "DTA reports, for which there is no --to", capture.INT: "INT reports, for which there is no --to-int",
	capture.ERSPAN: "mirrors, which only --config plays", capture.SPAN: "mirrored packets, which only --config plays",
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
	look, err := capture.Look(cfg.Ports(), inputs...)
	if err != nil {
		return usageError{err}
	}
	var keep serve.Store
	if f.store != "" {
		s, err := embedded.Open(f.store, embedded.DefaultConfig())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		keep = s
	}
	r, err := serve.NewReplay(cmd.Context(), cfg, look.Kinds, keep)
	if err != nil {
		return usageError{err}
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	in, err := capture.Open(cfg.Ports(), inputs...)
	if err != nil {
		return err
	}
	defer in.Close()
	found, err := r.Run(cmd.Context(), in)
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
