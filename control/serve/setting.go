package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/model"
)

// Setting is one value of a Config: the key in the file, which is also the name
// of a flag (with dashes) and of a variable (WEFT_…, in capitals).
type Setting struct {
	Key    string
	About  string
	Reload bool // SIGHUP takes a new value
	secret bool
	at     func(c *Config) any // a pointer into c
}

// Flag is the setting's name on the command line.
func (s *Setting) Flag() string { return strings.NewReplacer(".", "-", "_", "-").Replace(s.Key) }

// Env is the setting's name in the environment.
func (s *Setting) Env() string { return "WEFT_" + strings.ToUpper(strings.ReplaceAll(s.Key, ".", "_")) }

// settings are all values that are one word. Retention, switches, jobs and
// tenants are in the file alone.
var settings = allSettings()

// topSettings is how many settings are in no section. They come first.
const topSettings = 2

// allSettings are the settings of the service, with those of the sources after
// the topology and the role.
func allSettings() []Setting {
	list := slices.Clone(serviceSettings[:topSettings])
	for _, src := range sources.All() {
		for i, one := range src.NewConfig().Settings() {
			list = append(list, Setting{
				Key: string(src.Kind) + "." + one.Key, About: one.About, Reload: one.Reload,
				at: func(c *Config) any { return c.Sources[src.Kind].Settings()[i].Value },
			})
		}
	}
	return append(list, serviceSettings[topSettings:]...)
}

var serviceSettings = []Setting{
	{Key: "topology", About: "file of the fabric's topology and intended routes", Reload: true, at: func(c *Config) any { return &c.Topology }},
	{Key: "role", About: "what this process does in a cluster: decode, analyze, lead, api, comma-separated; empty: everything, alone", at: func(c *Config) any { return &c.Roles }},

	{Key: "stream.url", About: "NATS servers of the cluster, comma-separated, or embedded:ADDRESS:PORT for one in this process", at: func(c *Config) any { return &c.Stream.URL }},
	{Key: "stream.dir", About: "directory of an embedded NATS server's files", at: func(c *Config) any { return &c.Stream.Dir }},
	{Key: "stream.cluster", About: "HOST:PORT where an embedded NATS server listens for the others of its cluster; empty: it is alone", at: func(c *Config) any { return &c.Stream.Cluster }},
	{Key: "stream.routes", About: "HOST:PORT of the stream.cluster of all embedded NATS servers, comma-separated; the same in all of them", at: func(c *Config) any { return &c.Stream.Routes }},
	{Key: "stream.partitions", About: "parts of the flows, by their hash, that analyzers share; the same in all members", at: func(c *Config) any { return &c.Stream.Partitions }},
	{Key: "stream.member", About: "name of this process among the members; empty: host name and process number", at: func(c *Config) any { return &c.Stream.Member }},
	{Key: "stream.lease", About: "after how long others take the work of a member that died; the same in all members", at: func(c *Config) any { return &c.Stream.Lease }},
	{Key: "stream.replicas", About: "NATS servers that store each message; the same in all members", at: func(c *Config) any { return &c.Stream.Replicas }},
	{Key: "stream.credentials", About: "file with the JWT and key of a NATS user; empty: none", at: func(c *Config) any { return &c.Stream.Credentials }},
	{Key: "stream.token", About: "token of the NATS servers, an embedded one included; empty: none", secret: true, at: func(c *Config) any { return &c.Stream.Token }},
	{Key: "stream.tls_ca", About: "PEM file of the NATS servers' CA; empty: the system's", at: func(c *Config) any { return &c.Stream.TLSCA }},
	{Key: "stream.metrics", About: "address of /metrics and /healthz of this member, without a token, for Prometheus; empty: none", at: func(c *Config) any { return &c.Stream.Metrics }},

	{Key: "record.file", About: "pcapng file that records every received report, for weft replay; empty: none", at: func(c *Config) any { return &c.Record.Path }},
	{Key: "record.max_size", About: "rotate the file at this size; 0: no limit", at: func(c *Config) any { return &c.Record.MaxSize }},
	{Key: "record.keep", About: "rotated files to keep; 0: all", at: func(c *Config) any { return &c.Record.Keep }},
	{Key: "record.queue", About: "memory for reports that wait for the disk; when it is full, new reports are counted and not recorded", at: func(c *Config) any { return &c.Record.Queue }},
	{Key: "record.rejected", About: "also record reports that were received and rejected", at: func(c *Config) any { return &c.Record.Rejected }},

	{Key: "controller.slot", About: "slot length of the switches' flowsets", at: func(c *Config) any { return &c.Controller.Slot }},
	{Key: "controller.step", About: "interval at which the controller reads reports", at: func(c *Config) any { return &c.Controller.Step }},
	{Key: "controller.silent_after", About: "mark a switch as silent after this long without reports", at: func(c *Config) any { return &c.Controller.SilentAfter }},
	{Key: "controller.time_window", About: "reject reports whose time is further than this from the collector's clock", at: func(c *Config) any { return &c.Controller.TimeWindow }},
	{Key: "controller.report_timeout", About: "wait this long for missing reports before analysing without them", at: func(c *Config) any { return &c.Controller.ReportTimeout }},

	{Key: "controller.flow_memory", About: "memory for flowsets, from their first chunk until they are decoded; beyond it the switch that holds most loses first", at: func(c *Config) any { return &c.Controller.FlowMemory }},
	{Key: "controller.flows", About: "flows of a switch in a slot that lists of flowsets are sized for: they hold two and a half such slots", at: func(c *Config) any { return &c.Controller.Flows }},
	{Key: "controller.flow_cells", About: "reject flowsets with more cells", at: func(c *Config) any { return &c.Controller.FlowCells }},
	{Key: "controller.max_flows", About: "flows that are followed from slot to slot; more are counted, not followed; 0: as many as the memory holds, from 131,072 to 1,048,576", at: func(c *Config) any { return &c.Controller.MaxFlows }},
	{Key: "controller.partitions", About: "parts of the flows, by their hash, that are analysed at once; no result depends on it; 0: one for each CPU, and at least 16", at: func(c *Config) any { return &c.Controller.Partitions }},
	{Key: "controller.keep_flows", About: "flows of a slot that are stored one by one; the sums of others are stored by host, job and path", at: func(c *Config) any { return &c.Controller.KeepFlows }},
	{Key: "controller.trace_memory", About: "memory for traces, open and kept", at: func(c *Config) any { return &c.Controller.TraceMemory }},
	{Key: "controller.diagnosis_memory", About: "memory for epochs of polled switches and their graphs", at: func(c *Config) any { return &c.Controller.DiagnosisMemory }},

	{Key: "memory.limit", About: "memory limit of the process, which all bounds together must fit; 0: their sum, and a quarter for the garbage collector", at: func(c *Config) any { return &c.Memory.Limit }},

	{Key: "store.path", About: "DuckDB file, or clickhouse://user@host:9000/database", at: func(c *Config) any { return &c.Store.Path }},
	{Key: "store.password", About: "password of ClickHouse", secret: true, at: func(c *Config) any { return &c.Store.Password }},
	{Key: "store.max_size", About: "delete the oldest records beyond this size; 0: no limit", Reload: true, at: func(c *Config) any { return &c.Store.MaxSize }},
	{Key: "store.hot", About: "memory for the cache of recent records, which answers most queries; 0 disables it", at: func(c *Config) any { return &c.Store.Hot }},
	{Key: "store.memory", About: "memory limit of DuckDB for cache and queries", at: func(c *Config) any { return &c.Store.Memory }},
	{Key: "store.repair", About: "set a damaged file aside, begin a new one and salvage what can be read; false: refuse to start", at: func(c *Config) any { return &c.Store.Repair }},
	{Key: "store.queue", About: "records that may wait for the store; more are shed and counted", at: func(c *Config) any { return &c.Store.Queue }},

	{Key: "api.listen", About: "address of the API and the console", at: func(c *Config) any { return &c.API.Listen }},
	{Key: "api.token", About: "operator token, at least 16 characters; empty: authentication disabled", Reload: true, secret: true, at: func(c *Config) any { return &c.API.Token }},
	{Key: "api.token_file", About: "file with the operator token", Reload: true, at: func(c *Config) any { return &c.API.TokenFile }},
	{Key: "api.oidc.issuer", About: "issuer (iss) of an OpenID Connect provider whose tokens are valid; empty: none", Reload: true, at: func(c *Config) any { return &c.API.OIDC.Issuer }},
	{Key: "api.oidc.audience", About: "audience (aud) that such a token must have", Reload: true, at: func(c *Config) any { return &c.API.OIDC.Audience }},
	{Key: "api.oidc.keys", About: "file with the provider's JSON Web Key Set; a reload reads it again", Reload: true, at: func(c *Config) any { return &c.API.OIDC.Keys }},
	{Key: "api.oidc.role_claim", About: "claim with viewer, operator or admin, or a list of them; empty: roles", Reload: true, at: func(c *Config) any { return &c.API.OIDC.RoleClaim }},
	{Key: "api.tls_cert", About: "PEM file of the certificate; a reload reads the file again, another name needs a restart", at: func(c *Config) any { return &c.API.TLSCert }},
	{Key: "api.tls_key", About: "PEM file of the certificate's key", at: func(c *Config) any { return &c.API.TLSKey }},
	{Key: "api.hosts", About: "DNS names of the API; IP addresses and localhost are always accepted, comma-separated", at: func(c *Config) any { return &c.API.Hosts }},
	{Key: "api.pprof", About: "loopback address of the Go profiler, which needs the operator token; empty: none", at: func(c *Config) any { return &c.API.Pprof }},
	{Key: "api.health_listen", About: "another address, of /healthz, /readyz and /metrics alone; empty: none", at: func(c *Config) any { return &c.API.HealthListen }},
	{Key: "api.max_connections", About: "open connections; for a new one the one that has waited longest is closed", at: func(c *Config) any { return &c.API.MaxConnections }},
	{Key: "api.reserved_connections", About: "connections of those that need a valid token", at: func(c *Config) any { return &c.API.ReservedConnections }},
	{Key: "api.address_connections", About: "connections of one client address without a valid token", at: func(c *Config) any { return &c.API.AddressConnections }},
	{Key: "api.token_failures", About: "wrong tokens of a client address before its checks are delayed", at: func(c *Config) any { return &c.API.TokenFailures }},
	{Key: "api.audit_file", About: "file with a line of JSON for every request that may change something; empty: none", at: func(c *Config) any { return &c.API.AuditFile }},
	{Key: "api.audit_max_size", About: "rotate the audit file at this size; three rotated files are kept", at: func(c *Config) any { return &c.API.AuditMaxSize }},

	{Key: "alerts.link", About: "URL of the console, for links in alerts; empty: none", Reload: true, at: func(c *Config) any { return &c.Alerts.Link }},
	{Key: "alerts.severity", About: "least severity of incidents that are sent: notice, warning or critical", Reload: true, at: func(c *Config) any { return &c.Alerts.Severity }},
	{Key: "alerts.queue", About: "alerts that may wait for a target; beyond it the oldest is dropped and counted", at: func(c *Config) any { return &c.Alerts.Queue }},
	{Key: "alerts.hold", About: "an alert fires at least this long, so that receivers which wait notify of short faults", Reload: true, at: func(c *Config) any { return &c.Alerts.Hold }},
	{Key: "alerts.repeat", About: "firing alerts are sent to Alertmanager again after this time, and end by themselves after three times of it", Reload: true, at: func(c *Config) any { return &c.Alerts.Repeat }},
	{Key: "alerts.timeout", About: "of one request to a target", Reload: true, at: func(c *Config) any { return &c.Alerts.Timeout }},
	{Key: "alerts.expire", About: "alerts that could not be delivered for this long are dropped and counted", Reload: true, at: func(c *Config) any { return &c.Alerts.Expire }},

	{Key: "log.level", About: "debug, info, warn or error", Reload: true, at: func(c *Config) any { return &c.Log.Level }},
	{Key: "log.format", About: "text or json", at: func(c *Config) any { return &c.Log.Format }},
}

// Settings returns all values that are one word.
func Settings() []Setting { return settings }

// Set sets the value of a setting. The error says what is wanted.
func (s *Setting) Set(c *Config, text string) error {
	text = strings.TrimSpace(text)
	bad := func(want string) error { return fmt.Errorf("%s %q, want %s", s.Key, text, want) }
	switch p := s.at(c).(type) {
	case *string:
		*p = text
		if s.Key == "log.level" {
			return level(text)
		}
	case *[]string:
		*p = nil
		for _, one := range strings.Split(text, ",") {
			if one = strings.TrimSpace(one); one != "" {
				*p = append(*p, one)
			}
		}
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return bad("a whole number")
		}
		*p = n
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return bad("true or false")
		}
		*p = b
	case *float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f != f {
			return bad("a number")
		}
		*p = f
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return bad("a duration such as 10ms")
		}
		*p = d
	case *model.Bytes:
		b, err := model.ParseBytes(text)
		if err != nil || b < 0 {
			return bad("a size such as 32MiB")
		}
		*p = b
	case *netip.AddrPort:
		*p = netip.AddrPort{}
		if text == "" {
			return nil
		}
		a, err := netip.ParseAddrPort(text)
		if err != nil {
			return bad("ADDRESS:PORT")
		}
		*p = a
	case *netip.Addr:
		*p = netip.Addr{}
		if text == "" {
			return nil
		}
		a, err := netip.ParseAddr(text)
		if err != nil {
			return bad("a local address, or 0.0.0.0")
		}
		*p = a
	case *[]netip.Prefix:
		list, err := source.ParsePrefixes(text)
		if err != nil {
			return bad("addresses or prefixes such as 10.0.0.0/24, comma-separated: " + err.Error())
		}
		*p = list
	default:
		return fmt.Errorf("%s: settings of type %T cannot be read", s.Key, p)
	}
	return nil
}

func level(text string) error {
	var l slog.Level
	if err := l.UnmarshalText([]byte(text)); err != nil {
		return errors.New("log.level " + strconv.Quote(text) + ", want debug, info, warn or error")
	}
	return nil
}

// Value is the present value as Set takes it.
func (s *Setting) Value(c *Config) string {
	switch p := s.at(c).(type) {
	case *[]string:
		return strings.Join(*p, ",")
	case *netip.AddrPort:
		if !p.IsValid() {
			return ""
		}
		return p.String()
	case *netip.Addr:
		if !p.IsValid() {
			return ""
		}
		return p.String()
	case *[]netip.Prefix:
		return source.FormatPrefixes(*p)
	case *string:
		return *p
	default:
		return strings.TrimPrefix(fmt.Sprintf("%v", deref(p)), "&")
	}
}

// deref returns the values that print well.
func deref(p any) any {
	switch p := p.(type) {
	case *int:
		return *p
	case *bool:
		return *p
	case *float64:
		return *p
	case *time.Duration:
		return *p
	case *model.Bytes:
		return *p
	}
	return p
}
