package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/collect/rdma"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/collector"
)

func (a *app) translateCommand() *cobra.Command {
	cfg := collector.DefaultConfig()
	f := collectFlags{listen: cfg.Listen.String()}
	source := cfg.Source.String()
	var regions []string
	cmd := &cobra.Command{
		Use:   "translate --to HOST:PORT…",
		Short: "Write reports to collectors over RDMA",
		Long: `Receive Direct Telemetry Access (DTA) reports and write them into the memory of
one or more collectors over RoCEv2, as the last-hop switch does in the paper. Keys
and lists are hashed over the collectors. With --replicas 2 each two of them, in the
order of --to, store the same; an unreachable one is left out until it returns.

The translator connects to weft collect --rocev2 and reconnects after either side
restarts. While a collector is overloaded, reports are NACKed to their reporters.

With --rdma-cm the collector is any program with an RDMA NIC, or the kernel's
RoCE: --to is its address and RDMA port, and the flags of memory give its geometry,
in this order: --key-write, --key-increment, --postcards, --lists. The collector sends address,
length and R_Key of each memory after it has accepted, or --region gives them.

With --keys translator and collector prove to each other that they have the key of
--name. With --topology the keys of its nodes verify the reports received, too.`,
		Example: `  weft translate --to 127.0.0.1:1337
  weft translate --to 10.0.0.51:1337 --source 10.0.0.1:0 --name translator0 --keys weft.keys
  weft translate --to 10.0.0.51:1337 --to 10.0.0.52:1337 --source 10.0.0.1:4791 --listen 10.0.0.1:40040
  weft translate --to 10.0.0.51:1337 --to 10.0.0.52:1337 --replicas 2 --source 10.0.0.1:0
  weft translate --rdma-cm --to 10.0.0.51:1337 --source 10.0.0.1:4791 --key-write 4=1GiB --lists 64:80:4096`,
		Args: argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(cfg.Collectors) == 0 {
				return usagef("--to is missing, want the --control address of a collector")
			}
			if err := f.applyRegions(&cfg, regions); err != nil {
				return usageError{err}
			}
			for _, to := range cfg.Collectors {
				if _, _, err := net.SplitHostPort(to); err != nil {
					return usagef("--to %q, want HOST:PORT", to)
				}
			}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			access, err := f.access.open(&cfg, true, log)
			if err != nil {
				return err
			}
			if err := errors.Join(f.apply(&cfg), addrPort("source", source, &cfg.Source)); err != nil {
				return usageError{err}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return runCollector(ctx, cfg, capture.Config{}, access, log)
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&cfg.Collectors, "to", nil, "--control address of a collector; repeatable")
	fl.IntVar(&cfg.Replicas, "replicas", 1, "how many collectors, one --to after the other, store the same reports")
	fl.DurationVar(&cfg.Patience, "patience", 500*time.Millisecond, "how long reports are refused while a lost connection is set up again, before its collector is left out")
	fl.StringVar(&cfg.Name, "name", cfg.Name, "name of this translator; a second one of the same name replaces it if it proves its key, or without keys comes from its address")
	fl.StringVar(&source, "source", source, "source address of RoCEv2 packets; a NIC replies to port 4791")
	fl.StringVar(&f.listen, "listen", f.listen, "UDP address that receives reports")
	fl.StringVar(&f.status, "status", "", "address that serves /status and /metrics; empty disables it")
	fl.IntVar(&cfg.Workers, "workers", cfg.Workers, "number of sockets that share the port")
	fl.Float64Var(&cfg.Rate, "rate", 0, "rate limit in reports/s, 0 for none; excess is NACKed to the reporter")
	fl.StringArrayVar(&f.slowPaths, "slow-paths", nil, slowPathsHelp)
	f.registerAdditions(fl)
	fl.BoolVar(&cfg.CM, "rdma-cm", false, "connect by RDMA_CM to a collector that is not Weft, whose memory has this geometry:")
	fl.StringArrayVar(&f.keyWrites, "key-write", nil, "with --rdma-cm: memory for the newest values, VALUE_BYTES=SIZE")
	fl.StringVar(&f.counts, "key-increment", "", "with --rdma-cm: memory for counters, SIZE")
	fl.StringVar(&f.postcards, "postcards", "", "with --rdma-cm: memory for paths, HOPS=SIZE")
	fl.StringArrayVar(&f.lists, "lists", nil, "with --rdma-cm: lists of one layout, LISTS:ENTRY_BYTES:CAPACITY[:sized]")
	fl.BoolVar(&f.prototype, "prototype", false, "with --rdma-cm: the memory layout of the public prototype")
	fl.StringArrayVar(&regions, "region", nil, "with --rdma-cm: a memory of the collector, ADDRESS:LENGTH:R_KEY in hexadecimal, instead of what it sends")
	f.access.register(fl)
	return cmd
}

// applyRegions checks the flags of the collector's memory, which go with --rdma-cm
// only, and parses its regions.
func (f collectFlags) applyRegions(cfg *collector.Config, regions []string) error {
	if !cfg.CM {
		if f.prototype || f.keyWrites != nil || f.counts != "" || f.postcards != "" || f.lists != nil || regions != nil {
			return errors.New("a geometry of memory without --rdma-cm; a collector that is Weft says it")
		}
		return nil
	}
	cfg.Memory = collector.MemoryConfig{}
	for _, s := range regions {
		var r rdma.Region
		if n, err := fmt.Sscanf(s, "%x:%x:%x", &r.Addr, &r.Length, &r.RKey); n != 3 || err != nil {
			return fmt.Errorf("--region %q, want ADDRESS:LENGTH:R_KEY in hexadecimal", s)
		}
		cfg.Regions = append(cfg.Regions, r)
	}
	return nil
}
