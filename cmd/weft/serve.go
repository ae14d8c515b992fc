package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/console"
	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/store/embedded"
	"github.com/weft-telemetry/weft/stream/inproc"
)

// configFlags are those of commands that go by a configuration.
type configFlags struct {
	file  string
	words map[string]*string // by key of the setting
}

// add gives every setting a flag of its own.
func (f *configFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.file, "config", "", "configuration file")
	f.words = map[string]*string{}
	def := serve.DefaultConfig()
	for _, s := range serve.Settings() {
		f.words[s.Key] = fl.String(s.Flag(), s.Value(&def), s.About)
		if s.Value(&def) == "false" {
			fl.Lookup(s.Flag()).NoOptDefVal = "true"
		}
	}
}

// load reads file, environment and flags.
func (f *configFlags) load(cmd *cobra.Command) (serve.Config, error) {
	src := serve.Source{File: f.file, Env: os.LookupEnv, Flags: map[string]string{}}
	for _, s := range serve.Settings() {
		if cmd.Flags().Changed(s.Flag()) {
			src.Flags[s.Key] = *f.words[s.Key]
		}
	}
	cfg, err := src.Load()
	if err != nil {
		return cfg, usageError{err}
	}
	return cfg, nil
}

func (a *app) serveCommand() *cobra.Command {
	var f configFlags
	var check, dump bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Watch a real fabric: take its reports, find faults, answer questions",
		Long: `Watch a real fabric. Switches report over UDP: DTA (Weft's own), INT telemetry
reports 2.0, and ERSPAN mirrors where raw sockets are allowed. What is found is
kept in a DuckDB file, and shown by the API and the page.

The configuration is a YAML file (deploy/serve.yaml). Every value that is one
word can also be given in the environment, WEFT_STORE_PATH for store.path, and
as a flag, --store-path; the flag wins, then the environment, then the file.

SIGHUP reads the configuration again: tokens, tenants, jobs, the content of the
certificate, retention, size and routes are taken, and what needs a restart is
named in the log. SIGTERM and SIGINT end it; what was received is analysed and
kept first.

Everything listens on loopback unless told otherwise.`,
		Example: `  weft serve --config /etc/weft/serve.yaml
  weft serve --config deploy/serve.yaml --check
  weft serve --topology fabric.yaml --store-path weft.duckdb --dump`,
		Args: argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.load(cmd)
			switch {
			case err != nil:
				return err
			case dump:
				return cfg.Dump(cmd.OutOrStdout())
			case check:
				plan, err := try(&cfg)
				if err != nil {
					return err
				}
				return printPlan(cmd.OutOrStdout(), a.format, plan)
			}
			return runServe(cmd, &f, cfg)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&check, "check", false, "only check the configuration and the files it names, and print the plan of lists")
	cmd.Flags().BoolVar(&dump, "dump", false, "only print the configuration as it would be used")
	return cmd
}

// storeConfig is what a configuration says of the store.
func storeConfig(cfg *serve.Config) embedded.Config {
	c := embedded.DefaultConfig()
	c.Retention, c.MaxSize, c.Memory, c.Hot = cfg.Store.Retention, cfg.Store.MaxSize, cfg.Store.Memory, cfg.Store.Hot
	return c
}

// try checks everything that needs neither sockets nor the store.
func try(cfg *serve.Config) (*serve.Plan, error) {
	plan, err := serve.Try(*cfg)
	if err := errors.Join(err, storeConfig(cfg).Check()); err != nil {
		return nil, usageError{err}
	}
	return plan, nil
}

// runServe serves until a signal ends it.
func runServe(cmd *cobra.Command, f *configFlags, cfg serve.Config) (err error) {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	defer serve.Spread()()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	log, level := cfg.Log.Logger(cmd.ErrOrStderr())
	// First what needs no store: a configuration that cannot work makes no file.
	if _, err := try(&cfg); err != nil {
		return err
	}
	store, err := embedded.Open(cfg.Store.Path, storeConfig(&cfg))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	reports, err := inproc.New(inproc.DefaultConfig())
	if err != nil {
		return err
	}
	s, err := serve.New(ctx, cfg, serve.Deps{Store: store, Stream: reports, Page: console.Files(), Build: readBuildInfo(), Log: log, Level: level})
	if err != nil {
		return err
	}
	log.Info("ready", "api", s.Addr(), "dta", s.Reports(), "int", s.INT(), "erspan", cfg.ERSPAN.Listen, "store", cfg.Store.Path, "topology", cfg.Topology)
	scheme := "http"
	if cfg.API.TLSCert != "" {
		scheme = "https"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Weft serves %s://%s/; reports to %s\n", scheme, s.Addr(), s.Reports())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for {
		select {
		case err := <-done:
			log.Info("ended")
			return err
		case <-hangups:
			reload(ctx, cmd, f, s, log)
		}
	}
}

// reload reads the configuration again. A bad one changes nothing.
func reload(ctx context.Context, cmd *cobra.Command, f *configFlags, s *serve.Service, log *slog.Logger) {
	cfg, err := f.load(cmd)
	if err != nil {
		log.Error("configuration is not taken", "error", err)
		return
	}
	restart, err := s.Reload(ctx, cfg)
	if err != nil {
		log.Error("configuration is not taken", "error", err)
		return
	}
	log.Info("configuration is taken")
	if len(restart) > 0 {
		log.Warn("a restart is needed for some of what has changed", "keys", restart)
	}
}

// printPlan prints which list takes what.
func printPlan(w io.Writer, format string, p *serve.Plan) error {
	if format == "json" {
		return printJSON(w, p)
	}
	fmt.Fprintf(w, "The configuration is fine. Reports go to %v, at most %d bytes of data each.\n\n", p.Listen, p.MaxData)
	var lists table
	lists.row("LISTS", "TAKE", "FORMAT", "REPORTED BY")
	for _, l := range p.Lists {
		span := fmt.Sprint(l.First)
		if l.Count > 1 {
			span = fmt.Sprintf("%d-%d", l.First, int(l.First)+l.Count-1)
		}
		lists.row(span, l.What, l.Format, l.Reports)
	}
	if err := lists.print(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	var switches table
	switches.row("SWITCH", "ID", "FLOWSETS TO", "INT NUMBER", "MIRRORS FROM")
	for _, s := range p.Switches {
		switches.row(s.Name, s.ID, s.Flowsets, s.INT, s.Address)
	}
	return switches.print(w)
}
