package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
	"github.com/weft-telemetry/weft/dataplane/hostagent"
	"github.com/weft-telemetry/weft/model"
)

// hostWatchFlags are the flags of weft agent --host.
type hostWatchFlags struct {
	host, drops   bool
	every         time.Duration
	server, token string
}

func (f *hostWatchFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.host, "host", false, "watch this machine as a host, by its own counters")
	fl.BoolVar(&f.drops, "drops", false, dropsHelp)
	fl.DurationVar(&f.every, "every", hostagent.DefaultConfig().Every, "with --host: time between two looks at the counters")
	fl.StringVar(&f.server, "server", "", "with --host: URL of the controller that diagnoses slow connections; empty: none does")
	fl.StringVar(&f.token, "token", "", "with --host: API token of the controller; also WEFT_TOKEN")
}

func (f *hostWatchFlags) run(cmd *cobra.Command, status string) error {
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	cfg, deps := hostagent.DefaultConfig(), hostagent.Deps{Log: log}
	cfg.Every = f.every
	cfg.Again = max(cfg.Again, cfg.Every)
	if f.server != "" {
		token := f.token
		if token == "" {
			token = os.Getenv(tokenVariable)
		}
		c, err := client.New(f.server, token, &http.Client{Timeout: 10 * time.Second})
		if err != nil {
			return usageError{err}
		}
		deps.Report = func(ctx context.Context, flow model.FlowKey) error {
			_, err := c.ReportSlowFlow(ctx, api.SlowFlowReport{Flow: flow}, 0)
			return err
		}
	}
	read, end, err := hostReader(f.drops)
	if err != nil {
		return err
	}
	defer end()
	deps.Read = read
	a, err := hostagent.New(cfg, deps)
	if err != nil {
		return usageError{err}
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	log.Info("watching this host", "every", cfg.Every, "diagnoses by", f.server, "drops", f.drops)
	return serveMetrics(ctx, status, a, a.Run)
}
