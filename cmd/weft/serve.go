package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/console"
	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/proof"
	"github.com/weft-telemetry/weft/store/clickhouse"
	"github.com/weft-telemetry/weft/store/embedded"
	"github.com/weft-telemetry/weft/stream/inproc"
)

// configFlags are a configuration file and one flag for every setting.
type configFlags struct {
	file   string
	values map[string]*string // by key of the setting
}

// register adds a flag for every setting.
func (f *configFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.file, "config", "", "configuration file")
	f.values = map[string]*string{}
	def := serve.DefaultConfig()
	for _, s := range serve.Settings() {
		f.values[s.Key] = fl.String(s.Flag(), s.Value(&def), s.About)
		if s.Value(&def) == "false" {
			fl.Lookup(s.Flag()).NoOptDefVal = "true"
		}
	}
}

// load merges the file, the environment and the flags.
func (f *configFlags) load(cmd *cobra.Command) (serve.Config, error) {
	src := serve.Source{File: f.file, Env: os.LookupEnv, Flags: map[string]string{}}
	for _, s := range serve.Settings() {
		if cmd.Flags().Changed(s.Flag()) {
			src.Flags[s.Key] = *f.values[s.Key]
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
	var check, dump, members bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Monitor a fabric: receive reports, find faults, serve API and console",
		Long: `Monitor a fabric. Switches report over UDP: DTA, INT telemetry reports 2.0, and
ERSPAN mirrors where raw sockets are allowed. Findings are kept in a DuckDB file, or in
ClickHouse (--store-path clickhouse://host:9000/weft), and served by the API and the
console.

The configuration is a YAML file (deploy/serve.yaml). Every scalar value can also be
set in the environment (WEFT_STORE_PATH for store.path) and as a flag (--store-path).
Flags override the environment, which overrides the file.

SIGHUP reloads the configuration: tokens, tenants, jobs, certificates, retention,
sizes and routes take effect, and the log names settings that need a restart.
SIGTERM and SIGINT stop the service after it has analysed and stored what it
received.

With --role a process does a part of the work: docs/cluster.md. --cluster prints who
does what.

All sockets listen on loopback by default.`,
		Example: `  weft serve --config /etc/weft/serve.yaml
  weft serve --config deploy/serve.yaml --check
  weft serve --topology fabric.yaml --store-path weft.duckdb --dump`,
		Args: argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.load(cmd)
			switch {
			case err != nil:
				return err
			case members:
				return printCluster(cmd, a.format, &cfg)
			case dump:
				return cfg.Dump(cmd.OutOrStdout())
			case check:
				plan, err := dryRun(&cfg)
				if err != nil {
					return err
				}
				return printPlan(cmd.OutOrStdout(), a.format, plan)
			}
			if len(cfg.Roles) > 0 {
				return runRoles(cmd, cfg)
			}
			return runServe(cmd, &f, cfg)
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&check, "check", false, "check the configuration and its files, print the plan of lists and memory, and exit")
	cmd.Flags().BoolVar(&members, "cluster", false, "print who holds which part of a cluster's work (stream.url), and exit")
	cmd.Flags().BoolVar(&dump, "dump", false, "print the effective configuration and exit")
	return cmd
}

// storeConfig returns the store's part of a configuration.
func storeConfig(cfg *serve.Config) embedded.Config {
	c := embedded.DefaultConfig()
	c.Retention, c.MaxSize, c.Memory, c.CacheSize = cfg.Store.Retention, cfg.Store.MaxSize, cfg.Store.Memory, cfg.Store.Hot
	c.Repair = cfg.Store.Repair
	return c
}

// serviceStore is the store of a service.
type serviceStore interface {
	serve.Store
	Close() error
}

// openServiceStore opens the file or database that a configuration names.
func openServiceStore(ctx context.Context, cfg *serve.Config, log *slog.Logger) (serviceStore, error) {
	if clickhouse.IsURL(cfg.Store.Path) {
		c, err := clickHouseConfig(cfg.Store.Path, cfg.Store.Password)
		if err != nil {
			return nil, err
		}
		c.Retention = cfg.Store.Retention
		return clickhouse.Open(ctx, c)
	}
	c := storeConfig(cfg)
	c.Log = log
	return embedded.Open(cfg.Store.Path, c)
}

// clickHouseConfig is the configuration of a store in ClickHouse.
func clickHouseConfig(address, password string) (clickhouse.Config, error) {
	c, err := clickhouse.ParseURL(address)
	if err != nil {
		return c, usageError{err}
	}
	c.Password = password
	return c, nil
}

// dryRun checks everything that needs neither sockets nor the store.
func dryRun(cfg *serve.Config) (*serve.Plan, error) {
	plan, err := serve.DryRun(*cfg)
	if clickhouse.IsURL(cfg.Store.Path) {
		_, parseErr := clickhouse.ParseURL(cfg.Store.Path)
		err = errors.Join(err, parseErr)
	}
	if err := errors.Join(err, storeConfig(cfg).Check()); err != nil {
		return nil, usageError{err}
	}
	return plan, nil
}

// runServe serves until a signal ends it.
func runServe(cmd *cobra.Command, f *configFlags, cfg serve.Config) (err error) {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	defer serve.RaiseGOMAXPROCS()()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	log, level := cfg.Log.Logger(cmd.ErrOrStderr())
	// Check first what needs no store: an invalid configuration creates no file.
	if _, err := dryRun(&cfg); err != nil {
		return err
	}
	store, err := openServiceStore(ctx, &cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	reports, err := inproc.New(inproc.DefaultConfig())
	if err != nil {
		return err
	}
	s, err := serve.New(ctx, cfg, serve.Deps{
		Store: store, Stream: reports, Console: console.Files(),
		Build: readBuildInfo(), Log: log, Level: level, Prover: verdictProver(&cfg),
	})
	if err != nil {
		return err
	}
	log.Info("ready", "api", s.Addr(), "sources", s.SourceAddresses(), "store", cfg.Store.Path, "topology",
		cfg.Topology)
	scheme := "http"
	if cfg.API.TLSCert != "" {
		scheme = "https"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Console and API: %s://%s/    DTA reports: %s\n", scheme, s.Addr(), s.Reports())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for {
		select {
		case err := <-done:
			log.Info("stopped")
			return err
		case <-hangups:
			reload(ctx, cmd, f, s, log)
		}
	}
}

// reload reloads the configuration. An invalid one changes nothing.
func reload(ctx context.Context, cmd *cobra.Command, f *configFlags, s *serve.Service, log *slog.Logger) {
	cfg, err := f.load(cmd)
	if err != nil {
		log.Error("configuration rejected", "error", err)
		return
	}
	restart, err := s.Reload(ctx, cfg)
	if err != nil {
		log.Error("configuration rejected", "error", err)
		return
	}
	log.Info("configuration reloaded")
	if len(restart) > 0 {
		log.Warn("changed settings need a restart", "keys", restart)
	}
}

// printPlan prints the list plan: which list receives which reports.
func printPlan(w io.Writer, format string, p *serve.Plan) error {
	if format == "json" {
		return printJSON(w, p)
	}
	fmt.Fprintf(w, "The configuration is valid. Reports go to %v, at most %d bytes of data each.\n\n", p.Listen,
		p.MaxData)
	var lists table
	lists.row("LISTS", "CONTENT", "ENTRIES", "MEMORY", "FORMAT", "REPORTED BY")
	for _, l := range p.Lists {
		ids := fmt.Sprint(l.First)
		if l.Count > 1 {
			ids = fmt.Sprintf("%d-%d", l.First, int(l.First)+l.Count-1)
		}
		lists.row(ids, l.What, l.Entries, model.FormatBytes(model.Bytes(l.Bytes)), l.Format, l.Reports)
	}
	if err := lists.print(w); err != nil {
		return err
	}
	fl := p.Flowsets
	fmt.Fprintf(w, `
A slot of %d flows at one switch is %d chunks; its list holds %.1f such slots. All switches send %d chunks for
a slot; the receive buffers, of %s each, hold %d. Flows are analysed in %d partitions.
`, fl.Flows, fl.Chunks, fl.Held, fl.Chunks*len(p.Switches), model.FormatBytes(fl.Granted), fl.Buffered, p.Partitions)
	if fl.Granted < fl.Buffer {
		fmt.Fprintf(w, "WARNING: %s\n", serve.SmallBuffer(fl.Buffer, fl.Granted))
	}
	fmt.Fprintln(w)
	var memory table
	memory.row("MEMORY", "SETTING", "AT MOST")
	for _, m := range p.Memory {
		memory.row(m.What, m.Setting, model.FormatBytes(m.Bytes))
	}
	memory.row("sum", "", model.FormatBytes(p.MemorySum))
	memory.row("limit of the process", "memory.limit", model.FormatBytes(p.MemoryLimit))
	if err := memory.print(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	var switches table
	head := []any{"SWITCH", "ID", "FLOWSET LIST"}
	for _, k := range p.Sources {
		head = append(head, strings.ToUpper(string(k))+" IDENTIFIER")
	}
	switches.row(head...)
	for _, s := range p.Switches {
		row := []any{s.Name, s.ID, s.Flowsets}
		for _, k := range p.Sources {
			row = append(row, s.Identifiers[k])
		}
		switches.row(row...)
	}
	return switches.print(w)
}

// verdictProver returns what tests verdicts for a service: with the static routes of its
// topology, and default settings of switches, as none are known.
func verdictProver(cfg *serve.Config) *proof.Prover {
	s, err := scenario.ReadFabric(cfg.Topology)
	if err != nil {
		return &proof.Prover{} // the service says itself what is wrong with its file
	}
	return &proof.Prover{Settings: s}
}
