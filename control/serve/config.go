package serve

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/alerts"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/flowreduce"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/control/oidc"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/store"
)

// Config is the configuration of a service. Settings documents each field and its
// names.
type Config struct {
	Topology string // file

	// Roles are what this process does; none: all of it, alone.
	Roles []string
	// Stream is how members of a cluster reach each other.
	Stream struct {
		URL string // of NATS servers, or embedded:ADDRESS:PORT
		Dir string // of an embedded server's files
		// Cluster is where an embedded server listens for others, and Routes are where they
		// all do; both empty: it is alone.
		Cluster     string
		Routes      []string
		Partitions  int    // of the flows
		Member      string // name of this process; empty: host and process number
		Lease       time.Duration
		Replicas    int
		Credentials string
		Token       string
		TLSCA       string
		Metrics     string // address of this member's metrics; empty: none
	}

	// Sources are the configurations of all report sources.
	Sources  map[source.Kind]source.Config
	Switches []Switch
	Jobs     []control.Job
	Record   capture.Config // without a path nothing is recorded

	Controller struct {
		Slot        time.Duration
		Step        time.Duration
		SilentAfter time.Duration
		// ReportTimeout is how long the analyses wait for missing reports. A collector
		// that shares its machine is not scheduled for tenths of a second at times, and
		// reads the reports of that time afterwards. Nothing waits where every switch
		// has reported.
		ReportTimeout time.Duration
		// TimeWindow is how far the time of a report may be from the collector's clock.
		TimeWindow time.Duration
		// FlowMemory, TraceMemory and DiagnosisMemory bound what analyses hold of
		// reports; FlowCells and MaxFlows bound a flowset, and the flows that are
		// followed. MaxFlows of 0 follows the memory.
		FlowMemory, TraceMemory, DiagnosisMemory model.Bytes
		FlowCells, MaxFlows                      int
		// Partitions is the number of parts of the flows that are analysed at once; 0: as
		// many as suit the machine.
		Partitions int
		// KeepFlows is the number of flows of a slot that are stored one by one.
		KeepFlows int
		// Flows is how many flows of a switch in a slot the lists are sized for.
		Flows int
	}
	// Memory bounds the process. A limit of 0 is the sum of all other bounds.
	Memory struct{ Limit model.Bytes }
	Store  struct {
		Path      string // a DuckDB file, or clickhouse://user@host:9000/database
		Password  string // of ClickHouse
		MaxSize   model.Bytes
		Memory    model.Bytes
		Hot       model.Bytes
		Queue     int
		Repair    bool
		Retention store.Retention
	}
	API struct {
		Listen    string
		Token     string
		TokenFile string
		TLSCert   string
		TLSKey    string
		Hosts     []string
		Pprof     string
		Users     []api.User
		OIDC      oidc.Config
		Tenants   []api.Tenant

		HealthListen        string
		MaxConnections      int
		ReservedConnections int
		AddressConnections  int
		TokenFailures       int
		AuditFile           string
		AuditMaxSize        model.Bytes
	}
	Alerts alerts.Config
	Log    Log
}

// Log configures the log.
type Log struct {
	Level  string
	Format string
}

// level is what Level names.
func (l Log) level() (v slog.Level) {
	_ = v.UnmarshalText([]byte(l.Level)) // checked when it was set
	return v
}

// Logger makes the log, and the variable of its level.
func (l Log) Logger(w io.Writer) (*slog.Logger, *slog.LevelVar) {
	level := &slog.LevelVar{}
	level.Set(l.level())
	o := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o)), level
	}
	return slog.New(slog.NewTextHandler(w, o)), level
}

// Switch is what the topology does not contain of a switch.
type Switch struct {
	Name   string
	Values map[string]string // by key, of source.Source.SwitchKeys
}

// DefaultConfig listens on loopback.
func DefaultConfig() (c Config) {
	c.Sources = sources.DefaultConfigs()
	c.Record = capture.DefaultConfig()
	c.Stream.Dir, c.Stream.Partitions, c.Stream.Lease, c.Stream.Replicas = "weft-stream", 8, 800*time.Millisecond, 1
	c.Controller.Slot, c.Controller.Step = 10*time.Millisecond, time.Millisecond
	c.Controller.SilentAfter, c.Controller.ReportTimeout = 10*time.Second, 200*time.Millisecond
	c.Controller.TimeWindow = time.Minute
	c.Controller.FlowMemory, c.Controller.TraceMemory, c.Controller.DiagnosisMemory = 256*model.MiB, 256*model.MiB, 128*model.MiB
	c.Controller.FlowCells, c.Controller.Flows, c.Controller.KeepFlows = 1<<20, 10_000, flowreduce.DefaultConfig().Keep
	c.Store.Path, c.Store.Repair = "weft.duckdb", true
	c.Store.MaxSize, c.Store.Memory, c.Store.Hot, c.Store.Queue = 10*model.GB, 512*model.MiB, 256*model.MiB, 200_000
	c.Store.Retention = store.DefaultRetention()
	a := api.DefaultConfig()
	c.API.Listen, c.API.TokenFailures, c.API.AuditMaxSize = a.Listen, a.TokenFailures, a.AuditMaxSize
	c.API.MaxConnections, c.API.ReservedConnections, c.API.AddressConnections = a.MaxConnections, a.ReservedConnections, a.AddressConnections
	c.Alerts = alerts.DefaultConfig()
	c.Log.Level, c.Log.Format = "info", "text"
	return c
}

// DTA is the configuration of the DTA source.
func (c *Config) DTA() *sources.DTAConfig { return c.Sources[sources.DTA.Kind].(*sources.DTAConfig) }

func bad(key, format string, args ...any) error { return source.Errorf(key, format, args...) }

// Check returns a source.KeyError for the first invalid value. It reads nothing
// outside of the configuration.
func (c *Config) Check() error {
	switch {
	case c.Topology == "":
		return bad("topology", "none, want the topology file of the fabric; weft topo gen writes one")
	case len(c.Roles) > 0 && c.Stream.URL == "":
		return bad("role", "%s without stream.url, want nats://HOST:4222 or embedded:127.0.0.1:4222", strings.Join(c.Roles, ","))
	case c.Stream.Partitions < 1 || c.Stream.Partitions > 512:
		return bad("stream.partitions", "%d, want 1 to 512", c.Stream.Partitions)
	case c.Stream.Lease < 200*time.Millisecond:
		return bad("stream.lease", "%v, want at least 200ms", c.Stream.Lease)
	case c.Stream.Cluster != "" && !strings.HasPrefix(c.Stream.URL, "embedded:"):
		return bad("stream.cluster", "%s with stream.url %q, want it with embedded:ADDRESS:PORT", c.Stream.Cluster, c.Stream.URL)
	case c.Stream.Cluster != "" && (len(c.Stream.Routes) == 0 || c.Stream.Member == ""):
		return bad("stream.cluster", "%s without stream.routes or stream.member, want where all servers listen for each other, and a name that stays when this process starts again", c.Stream.Cluster)
	case len(c.Stream.Routes) > 0 && c.Stream.Cluster == "":
		return bad("stream.routes", "%s without stream.cluster, want where the embedded server listens for others", strings.Join(c.Stream.Routes, ","))
	case c.Stream.Replicas > 1 && c.Stream.Cluster == "" && strings.HasPrefix(c.Stream.URL, "embedded:"):
		return bad("stream.replicas", "%d with an embedded server that is alone, want 1, or stream.cluster and stream.routes", c.Stream.Replicas)
	case c.Controller.Slot <= 0 || c.Controller.Step <= 0 || c.Controller.Step > time.Second:
		return bad("controller", "slot %v, step %v; want both above 0, and a step of at most 1s", c.Controller.Slot, c.Controller.Step)
	case c.Controller.SilentAfter <= 0:
		return bad("controller.silent_after", "%v, want above 0", c.Controller.SilentAfter)
	case c.Controller.ReportTimeout <= 0 || c.Controller.ReportTimeout > time.Minute:
		return bad("controller.report_timeout", "%v, want above 0 and at most 1m", c.Controller.ReportTimeout)
	case c.Controller.TimeWindow < time.Second:
		return bad("controller.time_window", "%v, want at least 1s", c.Controller.TimeWindow)
	case c.Controller.FlowMemory < 16*model.MiB:
		return bad("controller.flow_memory", "%v, want at least 16MiB", c.Controller.FlowMemory)
	case c.Controller.TraceMemory < 16*model.MiB:
		return bad("controller.trace_memory", "%v, want at least 16MiB", c.Controller.TraceMemory)
	case c.Controller.DiagnosisMemory < 16*model.MiB:
		return bad("controller.diagnosis_memory", "%v, want at least 16MiB", c.Controller.DiagnosisMemory)
	case c.Controller.FlowCells < 1 || int64(c.Controller.FlowCells) > math.MaxUint32:
		return bad("controller.flow_cells", "%d, want 1 to %d", c.Controller.FlowCells, uint32(math.MaxUint32))
	case c.Controller.Flows < 1 || c.Controller.Flows > maxSlotFlows:
		return bad("controller.flows", "%d, want 1 to %d", c.Controller.Flows, maxSlotFlows)
	case c.Controller.MaxFlows < 0:
		return bad("controller.max_flows", "%d, want 0 or more", c.Controller.MaxFlows)
	case c.Controller.Partitions < 0 || c.Controller.Partitions > flowwatch.MaxPartitions:
		return bad("controller.partitions", "%d, want 0 to %d", c.Controller.Partitions, flowwatch.MaxPartitions)
	case c.Controller.KeepFlows < 1:
		return bad("controller.keep_flows", "%d, want at least 1", c.Controller.KeepFlows)
	case c.Store.Path == "":
		return bad("store.path", "none, want a file, or clickhouse://host:9000/database")
	case c.Store.Hot < 0:
		return bad("store.hot", "%v, want 0 (none) or more", c.Store.Hot)
	case c.Store.Queue < 1000:
		return bad("store.queue", "%d, want at least 1000", c.Store.Queue)
	case c.API.Token != "" && c.API.TokenFile != "":
		return bad("api.token_file", "given with api.token, want one of them")
	case c.Log.Format != "text" && c.Log.Format != "json":
		return bad("log.format", "%q, want text or json", c.Log.Format)
	}
	for _, r := range c.Roles {
		if !slices.Contains(Roles, r) {
			return bad("role", "%q, want %s", r, strings.Join(Roles, ", "))
		}
	}
	if err := c.checkSources(); err != nil {
		return err
	}
	if err := c.Record.Check(); err != nil {
		return err
	}
	if err := c.Store.Retention.Check(); err != nil {
		return bad("store.retention", "%s", strings.TrimPrefix(err.Error(), "retention: "))
	}
	if err := c.Alerts.Check(); err != nil {
		var e *alerts.KeyError
		if errors.As(err, &e) {
			return bad("alerts."+e.Key, "%s", e.Msg)
		}
		return err
	}
	if err := c.checkAlertJobs(); err != nil {
		return err
	}
	return c.checkOpen()
}

// checkAlertJobs returns an error for a target of alerts that names a job which jobs does not
// have: it would never receive anything.
func (c *Config) checkAlertJobs() error {
	for i := range c.Alerts.Targets {
		for _, name := range c.Alerts.Targets[i].Jobs {
			if !slices.ContainsFunc(c.Jobs, func(j control.Job) bool { return j.Name == name }) {
				return bad("alerts.targets", "job %q of target %d is not in jobs, want the name of one of them", name, i+1)
			}
		}
	}
	return nil
}

// maxSlotFlows is ten times what the largest switches have in a slot.
const maxSlotFlows = 1_000_000

// checkSources returns the first error of a source, or of two that share an
// address.
func (c *Config) checkSources() error {
	addresses := map[string]source.Kind{}
	for _, src := range sources.All() {
		cfg := c.Sources[src.Kind]
		if err := cfg.Check(); err != nil {
			return err
		}
		a := cfg.Address()
		if other, taken := addresses[a]; taken && a != "" && !strings.HasSuffix(a, ":0") {
			return bad(string(src.Kind)+".listen", "%v is also %s.listen; want another port", a, other)
		}
		addresses[a] = src.Kind
	}
	return nil
}

// checkOpen requires a token where the address is not loopback.
func (c *Config) checkOpen() error {
	host, port, err := net.SplitHostPort(c.API.Listen)
	if _, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil {
		return bad("api.listen", "%q, want ADDRESS:PORT", c.API.Listen)
	}
	ip, err := netip.ParseAddr(host)
	if local := host == "localhost" || err == nil && ip.IsLoopback(); !local && c.API.Token == "" && c.API.TokenFile == "" {
		return bad("api.listen", "%s is not a loopback address, want api.token or api.token_file with it", c.API.Listen)
	}
	return nil
}

// api is the configuration of the API. It reads the token file.
func (c *Config) api() (api.Config, error) {
	a := api.DefaultConfig()
	a.Listen, a.Token, a.TLSCert, a.TLSKey = c.API.Listen, c.API.Token, c.API.TLSCert, c.API.TLSKey
	a.Hosts, a.Pprof, a.Users, a.Tenants = c.API.Hosts, c.API.Pprof, c.API.Users, c.API.Tenants
	a.OIDC = c.API.OIDC
	a.HealthListen, a.TokenFailures = c.API.HealthListen, c.API.TokenFailures
	a.MaxConnections, a.ReservedConnections, a.AddressConnections = c.API.MaxConnections, c.API.ReservedConnections, c.API.AddressConnections
	a.AuditFile, a.AuditMaxSize = c.API.AuditFile, c.API.AuditMaxSize
	if c.API.TokenFile != "" {
		b, err := os.ReadFile(c.API.TokenFile)
		if err != nil {
			return a, fmt.Errorf("api.token_file: %w", err)
		}
		if a.Token = strings.TrimSpace(string(b)); a.Token == "" {
			return a, fmt.Errorf("api.token_file: %s is empty, want a token in it", c.API.TokenFile)
		}
	}
	return a, nil
}

// clone copies a configuration so that changes of one do not show in the other.
func (c *Config) clone() Config {
	n := *c
	n.Store.Retention = maps.Clone(c.Store.Retention)
	n.Sources = map[source.Kind]source.Config{}
	for kind, src := range c.Sources {
		n.Sources[kind] = src.Clone()
	}
	return n
}
