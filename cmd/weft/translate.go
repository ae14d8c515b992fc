package main

import (
	"errors"
	"net"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/collector"
)

func (a *app) translateCommand() *cobra.Command {
	cfg := collector.DefaultConfig()
	f := collectFlags{listen: cfg.Listen.String()}
	source := cfg.Source.String()
	cmd := &cobra.Command{
		Use:   "translate --to HOST:PORT…",
		Short: "Take reports and write them to collectors over RDMA",
		Long: `Take reports of Direct Telemetry Access and write them into the memory of one
or more collectors over RoCEv2, as the last switch before a collector does in
the paper. Keys and lists are spread over the collectors.

Connections are set up with weft collect --rocev2, and set up anew when either
side was away. While a collector cannot keep up, reporters are told so.`,
		Example: `  weft translate --to 127.0.0.1:1337
  weft translate --to 10.0.0.51:1337 --to 10.0.0.52:1337 --source 10.0.0.1:4791 --listen 10.0.0.1:40040`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(cfg.Collectors) == 0 {
				return usagef("--to is missing: want the address where a collector sets up connections")
			}
			for _, to := range cfg.Collectors {
				if _, _, err := net.SplitHostPort(to); err != nil {
					return usagef("--to %q, want HOST:PORT", to)
				}
			}
			if err := errors.Join(f.apply(&cfg), addrPort("source", source, &cfg.Source)); err != nil {
				return usageError{err}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return runCollector(ctx, cfg, capture.Config{}, cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&cfg.Collectors, "to", nil, "address where a collector sets up connections")
	fl.StringVar(&cfg.Name, "name", cfg.Name, "of this translator; a second one of the same name takes its place")
	fl.StringVar(&source, "source", source, "address that RoCEv2 packets bear; a network card answers to port 4791")
	fl.StringVar(&f.listen, "listen", f.listen, "address that takes reports")
	fl.StringVar(&f.status, "status", "", "address that serves /status and /metrics; empty for none")
	fl.IntVar(&cfg.Workers, "workers", cfg.Workers, "sockets that share the port")
	fl.Float64Var(&cfg.Rate, "rate", 0, "reports per second that are let through; reporters are told of the others")
	fl.StringArrayVar(&f.slowPaths, "slow-paths", nil, "put paths whose hops sum up to more than ABOVE on a list, SHIFT:BITS:ABOVE:LIST")
	return cmd
}
