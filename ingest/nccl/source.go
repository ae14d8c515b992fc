// Package nccl follows what NCCL writes about its collectives while jobs run: files of the
// Inspector and of PyTorch's flight recorder as they grow, and the RAS service of each job,
// which it asks over TCP. What the collectives say of a job is analyze/collectives's work.
// Manual: docs/jobs.md. Layouts: docs/formats/nccl.md.
package nccl

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/nccl"
)

// Source is NCCL.
var Source = source.Source{
	Kind: "nccl", Title: "NCCL records", Proto: model.UDP, Dials: true,
	NewConfig: func() source.Config { return &Config{Interval: 15 * time.Second, Timeout: 10 * time.Second} },
}

// Config is the section nccl of a service's configuration.
type Config struct {
	Files    []string // files and folders
	RAS      []string // HOST:PORT
	Interval time.Duration
	Timeout  time.Duration
	Hosts    string // file
	Ranks    string // file
}

// Settings is part of source.Config.
func (c *Config) Settings() []source.Setting {
	return []source.Setting{
		{Key: "files", About: "files and folders of the NCCL Inspector or of PyTorch's flight recorder, comma-separated, which are followed as they grow; empty: none", Value: &c.Files},
		{Key: "ras", About: "RAS services of jobs to ask, comma-separated: HOST:PORT, of NCCL port 28028; empty: none", Value: &c.RAS},
		{Key: "interval", About: "how often files are read and RAS services are asked", Value: &c.Interval},
		{Key: "timeout", About: "how long an answer of a RAS service may take", Value: &c.Timeout},
		{Key: "hosts", About: "file with a line NAME HOST for each name or address of NCCL's that the topology has otherwise; empty: none", Value: &c.Hosts},
		{Key: "ranks", About: "file with a line RANK HOST for each rank, for dumps of the flight recorder, which have no hosts; empty: none", Value: &c.Ranks},
	}
}

// Bounds of a configuration.
const (
	maxPaths   = 256
	maxTargets = 256
)

// Check is part of source.Config.
func (c *Config) Check() error {
	switch {
	case len(c.Files) > maxPaths:
		return source.Errorf("nccl.files", "%d paths, want at most %d", len(c.Files), maxPaths)
	case len(c.RAS) > maxTargets:
		return source.Errorf("nccl.ras", "%d addresses, want at most %d", len(c.RAS), maxTargets)
	case c.Interval < 10*time.Millisecond || c.Interval > time.Hour:
		return source.Errorf("nccl.interval", "%v, want 10ms to 1h", c.Interval)
	case c.Timeout < 10*time.Millisecond || c.Timeout > 5*time.Minute:
		return source.Errorf("nccl.timeout", "%v, want 10ms to 5m", c.Timeout)
	}
	for i, one := range c.RAS {
		host, port, err := net.SplitHostPort(one)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || host == "" || bad != nil || n == 0 {
			return source.Errorf("nccl.ras", "%q, want HOST:PORT", one)
		}
		if slices.Contains(c.RAS[:i], one) {
			return source.Errorf("nccl.ras", "%q is there twice, want it once", one)
		}
	}
	return nil
}

// Address is part of source.Config: the first of what is followed.
func (c *Config) Address() string {
	return strings.Join(slices.Concat(c.RAS, c.Files)[:min(1, len(c.RAS)+len(c.Files))], "")
}

// Ports is part of source.Config. Nothing comes unasked.
func (c *Config) Ports() []uint16 { return nil }

// Clone is part of source.Config.
func (c *Config) Clone() source.Config {
	n := *c
	n.Files, n.RAS = slices.Clone(c.Files), slices.Clone(c.RAS)
	return &n
}

// Sources is part of source.Adapter.
func (c *Config) Sources() source.Limits { return source.Limits{} }

// NewDecoder is part of source.Adapter.
func (c *Config) NewDecoder(_ *source.Fabric, out source.Output) (source.Decoder, error) {
	d := &decoder{take: out.Collectives}
	if d.take == nil { // of a replay
		d.take = func(*nccl.Dump) int { return 0 }
	}
	var err error
	if c.Hosts != "" {
		if d.hosts, err = readFile(c.Hosts, nccl.ReadNames); err != nil {
			return nil, source.Errorf("nccl.hosts", "%v", err)
		}
	}
	if c.Ranks != "" {
		if d.ranks, err = readFile(c.Ranks, nccl.ReadHosts); err != nil {
			return nil, source.Errorf("nccl.ranks", "%v", err)
		}
	}
	return d, nil
}

// OpenSocket is part of source.Adapter. It opens none: Run reads files, and dials.
func (c *Config) OpenSocket(d source.Decoder, _ source.Guard) (source.Listener, error) {
	inner, ok := source.Unprotected(d).(*decoder)
	if !ok {
		return nil, fmt.Errorf("nccl: decoder is a %T, want that of NewDecoder", d)
	}
	return newFollower(c, inner), nil
}

// readFile reads a file of the configuration.
func readFile[T any](name string, read func(r io.Reader) (T, error)) (v T, err error) {
	f, err := os.Open(name)
	if err != nil {
		return v, err
	}
	defer f.Close()
	if v, err = read(f); err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return v, err
}

// decoder names the hosts of records, hands them on and counts them. Several goroutines use it.
type decoder struct {
	take  func(d *nccl.Dump) (unknown int)
	hosts map[string]string // by NCCL's name
	ranks map[int]string    // by rank of the job

	in, out                    atomic.Uint64
	unknown, skipped, repeated atomic.Uint64
}

// Decode is part of source.Decoder. There are no datagrams.
func (d *decoder) Decode(model.Time, netip.AddrPort, []byte) bool { return false }

// add hands on what was read.
func (d *decoder) add(dump *nccl.Dump) {
	named := func(host string, rank int, ofJob bool) string {
		if host == "" && ofJob {
			host = d.ranks[rank]
		}
		if name, known := d.hosts[host]; known {
			return name
		}
		return host
	}
	for i := range dump.Records {
		r := &dump.Records[i]
		r.Host = named(r.Host, r.Rank, true)
	}
	for i := range dump.Members {
		m := &dump.Members[i]
		m.Host = named(m.Host, m.Rank, false)
	}
	n := uint64(len(dump.Records) + len(dump.Members))
	unknown := uint64(d.take(dump))
	d.in.Add(n + uint64(dump.Skipped+dump.Repeated))
	d.out.Add(n - min(n, unknown))
	d.unknown.Add(unknown)
	d.skipped.Add(uint64(dump.Skipped))
	d.repeated.Add(uint64(dump.Repeated))
}

// Counters is part of source.Decoder.
func (d *decoder) Counters() source.Counters {
	c := source.Counters{Unit: "collectives and ranks", In: d.in.Load(), Out: d.out.Load()}
	c.Add("unknown host", "of ranks on hosts that the topology does not have; see nccl.hosts", d.unknown.Load())
	c.Losses = append(c.Losses,
		source.Loss{Reason: "no collective", About: "sends, receives and proxies", Count: d.skipped.Load(), Expected: true},
		source.Loss{Reason: "coalesced", About: "further parts of one collective", Count: d.repeated.Load(), Expected: true})
	return c
}
