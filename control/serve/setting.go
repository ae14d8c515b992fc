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

// allSettings are the settings of the service, with those of the sources after
// the topology.
func allSettings() []Setting {
	list := slices.Clone(serviceSettings[:1])
	for _, src := range sources.All() {
		for i, one := range src.NewConfig().Settings() {
			list = append(list, Setting{
				Key: string(src.Kind) + "." + one.Key, About: one.About,
				at: func(c *Config) any { return c.Sources[src.Kind].Settings()[i].Value },
			})
		}
	}
	return append(list, serviceSettings[1:]...)
}

var serviceSettings = []Setting{
	{Key: "topology", About: "file of the fabric's topology and intended routes", Reload: true, at: func(c *Config) any { return &c.Topology }},

	{Key: "record.file", About: "pcapng file that every report is also written to as it came, which weft replay plays; empty: none", at: func(c *Config) any { return &c.Record.Path }},
	{Key: "record.max_size", About: "a file of this size becomes an old one, with its time in its name; 0: no bound", at: func(c *Config) any { return &c.Record.MaxSize }},
	{Key: "record.keep", About: "old files that are kept; 0: all", at: func(c *Config) any { return &c.Record.Keep }},
	{Key: "record.queue", About: "reports that may wait for the disk; the rest is not recorded, and counted", at: func(c *Config) any { return &c.Record.Queue }},
	{Key: "record.rejected", About: "also write what was received and not taken", at: func(c *Config) any { return &c.Record.Rejected }},

	{Key: "controller.slot", About: "slots of the switches' flowsets", at: func(c *Config) any { return &c.Controller.Slot }},
	{Key: "controller.step", About: "how often the controller looks", at: func(c *Config) any { return &c.Controller.Step }},
	{Key: "controller.silent", About: "a switch of which nothing was heard for so long is silent", at: func(c *Config) any { return &c.Controller.Silent }},
	{Key: "controller.patience", About: "how long reports may stay away before what there is is judged", at: func(c *Config) any { return &c.Controller.Patience }},

	{Key: "store.path", About: "DuckDB file", at: func(c *Config) any { return &c.Store.Path }},
	{Key: "store.max_size", About: "the oldest records go where more is kept; 0: no bound", Reload: true, at: func(c *Config) any { return &c.Store.MaxSize }},
	{Key: "store.hot", About: "memory for the newest records, which most answers are made of", at: func(c *Config) any { return &c.Store.Hot }},
	{Key: "store.memory", About: "what DuckDB may use for its cache and for queries", at: func(c *Config) any { return &c.Store.Memory }},
	{Key: "store.queue", About: "records that may wait for the store; the rest is shed and counted", at: func(c *Config) any { return &c.Store.Queue }},

	{Key: "api.listen", About: "address of the API and the page", at: func(c *Config) any { return &c.API.Listen }},
	{Key: "api.token", About: "the operator's token, 16 characters or more; empty: everybody is the operator", Reload: true, secret: true, at: func(c *Config) any { return &c.API.Token }},
	{Key: "api.token_file", About: "file that holds the operator's token", Reload: true, at: func(c *Config) any { return &c.API.TokenFile }},
	{Key: "api.tls_cert", About: "PEM file of the certificate; its content is read again, its name needs a restart", at: func(c *Config) any { return &c.API.TLSCert }},
	{Key: "api.tls_key", About: "PEM file of its key", at: func(c *Config) any { return &c.API.TLSKey }},
	{Key: "api.hosts", About: "names, beside addresses and localhost, that the API is asked by, with commas between", at: func(c *Config) any { return &c.API.Hosts }},
	{Key: "api.pprof", About: "loopback address of the Go profiler; empty: none", at: func(c *Config) any { return &c.API.Pprof }},

	{Key: "log.level", About: "debug, info, warn or error", Reload: true, at: func(c *Config) any { return &c.Log.Level }},
	{Key: "log.format", About: "text or json", at: func(c *Config) any { return &c.Log.Format }},
}

// Settings lists all values that are one word.
func Settings() []Setting { return settings }

// Set gives the setting a value. The error says what is wanted.
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
			return bad("a span of time such as 10ms")
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
			return bad("an address of this machine, or 0.0.0.0")
		}
		*p = a
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
	case *string:
		return *p
	default:
		return strings.TrimPrefix(fmt.Sprintf("%v", deref(p)), "&")
	}
}

// deref reads the pointers that print well.
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
