package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-telemetry/weft/collect/count"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/collector"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// collectFlags are the flags of weft collect before they are parsed into a Config.
type collectFlags struct {
	listen, status string
	roce, control  string
	keyWrites      []string
	counts         string
	postcards      string
	lists          []string
	slowPaths      []string
	heavyKeys      []string
	addRows        int
	prototype      bool
	recordSize     string
	access         accessFlags
}

func (a *app) collectCommand() *cobra.Command {
	cfg := collector.DefaultConfig()
	record := capture.DefaultConfig()
	f := collectFlags{listen: cfg.Listen.String(), status: cfg.Status.String(), control: cfg.Control.String()}
	cmd := &cobra.Command{
		Use:   "collect",
		Short: "Collect reports into memory that can be queried",
		Long: `Collect Direct Telemetry Access (DTA) reports into memory that can be queried.

Reports arrive over UDP, in Weft's DTA format or in either format of the public
prototype. With --dir the memories are files: they survive the process, and weft
query reads them while reports arrive. Losses are counted by stage and reason at
the status address (/status, /metrics) and in weft collect status.

With --rocev2 translators (weft translate, or a switch) write the memories over
RDMA: the address receives RoCEv2 packets as an RDMA NIC would, and no reports.
With --keys they must prove their key, which beyond loopback is demanded. Without
keys any verbs program may connect by RDMA_CM, too: the RDMA port of the first memory
is that of --control, that of the second one higher, and so on.

Default memories: newest values of 4 and 20 bytes, counters, paths of 5 hops,
64 lists of events and 64 lists of whole datagrams.`,
		Example: `  weft collect --dir /var/lib/weft
  weft collect --key-write 4=1GiB --lists 1024:8:65536
  weft collect --prototype --listen 0.0.0.0:40040
  weft collect --rocev2 127.0.0.1:4791
  weft collect --rocev2 10.0.0.51:4791 --control 10.0.0.51:1337 --keys weft.keys --allow 10.0.0.0/24
  weft collect --listen 10.0.0.51:40040 --topology fabric.yaml --keys weft.keys --require mac
  weft collect status`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			access, err := f.access.open(&cfg, f.roce == "", log)
			if err != nil {
				return err
			}
			if err := errors.Join(f.apply(&cfg), f.applyRecord(&record)); err != nil {
				return usageError{err}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return runCollector(ctx, cfg, record, access, log)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", f.listen, "UDP address that receives reports")
	fl.StringVar(&f.status, "status", f.status, "address that serves /status, /metrics, /notices; empty disables it")
	fl.StringVar(&f.roce, "rocev2", "", "UDP address that receives RoCEv2 writes instead of reports")
	fl.StringVar(&f.control, "control", f.control, "with --rocev2: address where translators connect")
	fl.StringVar(&cfg.Memory.Dir, "dir", "", "directory of the memory files (default: memory ends with the process)")
	fl.IntVar(&cfg.Workers, "workers", cfg.Workers, "number of sockets that share the port")
	fl.Float64Var(&cfg.Rate, "rate", 0, "rate limit in reports/s, 0 for none; excess is NACKed to the reporter")
	fl.Uint16Var(&cfg.AnswerPort, "answer-port", 0,
		"UDP port for replies to reporters; 0 means the source port of the report")
	fl.StringArrayVar(&f.keyWrites, "key-write", nil, "memory for the newest values, VALUE_BYTES=SIZE")
	fl.StringVar(&f.counts, "key-increment", "", "memory for counters, SIZE")
	fl.StringVar(&f.postcards, "postcards", "", "memory for paths, HOPS=SIZE")
	fl.StringArrayVar(&f.lists, "lists", nil, "lists of one layout, LISTS:ENTRY_BYTES:CAPACITY[:sized]")
	fl.StringArrayVar(&f.slowPaths, "slow-paths", nil, slowPathsHelp)
	f.registerAdditions(fl)
	fl.BoolVar(&f.prototype, "prototype", false, "use the memory layout of the public prototype")
	fl.StringVar(&record.Path, "record", "", "also write every datagram to this pcapng file, for weft replay")
	fl.StringVar(&f.recordSize, "record-size", record.MaxSize.String(),
		"rotate the recording at this size; 0 disables rotation")
	fl.IntVar(&record.Keep, "record-keep", record.Keep, "number of rotated files to keep; 0 keeps all")
	fl.BoolVar(&record.Rejected, "record-rejected", false, "also record rejected datagrams")
	fl.BoolVar(&cfg.Unauthenticated, "allow-unauthenticated", false,
		"with --rocev2 beyond loopback: admit translators without keys")
	f.access.register(fl)
	cmd.AddCommand(a.collectStatusCommand())
	return cmd
}

// slowPathsHelp describes --slow-paths of weft collect and weft translate.
const slowPathsHelp = "append paths whose hop values sum to more than ABOVE to a list, SHIFT:BITS:ABOVE:LIST"

// runCollector runs a collector or translator until ctx ends. With a record path
// it also records what it receives.
func runCollector(ctx context.Context, cfg collector.Config, record capture.Config, access *access, log *slog.Logger) error {
	var c *collector.Collector
	recorded := func() error { return nil }
	if record.Path != "" {
		r, err := capture.NewRecorder(record, log)
		if err != nil {
			return err
		}
		cfg.Tap = func(at model.Time, from netip.AddrPort, datagram []byte, stored bool) {
			r.RecordDatagram("dta", stored, at, from, c.Addr(), datagram)
		}
		cfg.Recorded = r.Stats
		writing, end := context.WithCancel(context.WithoutCancel(ctx))
		done := make(chan error, 1)
		go func() { done <- r.Run(writing) }()
		recorded = func() error {
			end()
			err := <-done
			st := r.Stats()
			log.Info("recorded", "file", record.Path, "written", st.Written, "shed", st.Shed, "failed", st.Failed,
				"rejected", st.Skipped, "files", st.Files)
			return err
		}
	}
	c, err := collector.New(ctx, cfg, log)
	if err != nil {
		return errors.Join(err, recorded())
	}
	log.Info("ready", "listen", c.Addr(), "status", c.StatusAddr(), "control", c.Control(), "dir", cfg.Memory.Dir,
		"collectors", cfg.Collectors)
	reloading, end := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { access.reloadKeys(reloading, log) })
	err = c.Run(ctx)
	end()
	wg.Wait()
	return errors.Join(err, recorded())
}

// applyRecord parses the recording's flags into r.
func (f collectFlags) applyRecord(r *capture.Config) (err error) {
	if f.roce != "" && r.Path != "" {
		return errors.New("--record writes reports, and --rocev2 receives none; want one of them")
	}
	if r.MaxSize, err = model.ParseBytes(f.recordSize); err != nil {
		return fmt.Errorf("--record-size: %w", err)
	}
	return r.Check()
}

// apply parses the flags into cfg.
func (f collectFlags) apply(cfg *collector.Config) error {
	cfg.Status, cfg.RoCE = netip.AddrPort{}, netip.AddrPort{}
	for _, x := range []struct {
		flag, value string
		to          *netip.AddrPort
	}{
		{"listen", f.listen, &cfg.Listen},
		{"status", f.status, &cfg.Status},
		{"rocev2", f.roce, &cfg.RoCE},
		{"control", f.control, &cfg.Control},
	} {
		if err := addrPort(x.flag, x.value, x.to); err != nil {
			return err
		}
	}
	switch _, err := translate.NewLimiter(cfg.Rate, cfg.Burst); {
	case cfg.Workers < 1 || cfg.Workers > collector.MaxWorkers:
		return fmt.Errorf("--workers %d, want 1 to %d", cfg.Workers, collector.MaxWorkers)
	case err != nil:
		return fmt.Errorf("--rate %v: %w", cfg.Rate, err)
	}
	if err := errors.Join(f.applyMemory(&cfg.Memory), f.applySlowPaths(cfg), f.applyAdditions(cfg)); err != nil {
		return err
	}
	return cfg.Validate()
}

// applyMemory parses the layout of the memories.
func (f collectFlags) applyMemory(m *collector.MemoryConfig) error {
	if f.prototype {
		if f.keyWrites != nil || f.counts != "" || f.postcards != "" || f.lists != nil {
			return errors.New("--prototype fixes the memory layout, and cannot be combined with --key-write, --key-increment, --postcards or --lists")
		}
		*m = collector.PrototypeMemory(m.Dir)
	}
	if f.keyWrites != nil {
		m.KeyWrites = nil
	}
	for _, s := range f.keyWrites {
		value, size, err := numberAndSize(s)
		if err != nil {
			return fmt.Errorf("--key-write %q: want VALUE_BYTES=SIZE, such as 4=1GiB", s)
		}
		memory := collector.KeyWriteConfig(value, size)
		if err := memory.Validate(); err != nil {
			return fmt.Errorf("--key-write %q: %w", s, err)
		}
		m.KeyWrites = append(m.KeyWrites, memory)
	}
	if f.counts != "" {
		size, err := model.ParseBytes(f.counts)
		if err != nil || size < 32 {
			return fmt.Errorf("--key-increment %q: want SIZE, such as 256MiB", f.counts)
		}
		counts := count.DefaultConfig(int64(size))
		if err := counts.Validate(); err != nil {
			return fmt.Errorf("--key-increment %q: %w", f.counts, err)
		}
		m.Counts = &counts
	}
	if f.postcards != "" {
		hops, size, err := numberAndSize(f.postcards)
		if err != nil {
			return fmt.Errorf("--postcards %q: want HOPS=SIZE, such as 5=1GiB", f.postcards)
		}
		postcards := collector.PostcardConfig(hops, size)
		if err := postcards.Validate(); err != nil {
			return fmt.Errorf("--postcards %q: %w", f.postcards, err)
		}
		m.Postcards = &postcards
	}
	if f.lists != nil {
		cfg := list.Config{Layout: list.Weft, Batch: 16}
		for _, s := range f.lists {
			n, sized, err := numbers(s, 3, "sized")
			if err != nil {
				return fmt.Errorf("--lists %q: want LISTS:ENTRY_BYTES:CAPACITY[:sized]", s)
			}
			cfg.Classes = append(cfg.Classes, list.Class{
				Lists: int(n[0]), Entry: int(n[1]), Capacity: int(n[2]),
				Sized: sized,
			})
			if err := cfg.Validate(); err != nil {
				return fmt.Errorf("--lists %q: %w", s, err)
			}
		}
		m.Lists = []list.Config{cfg}
	}
	return nil
}

// applySlowPaths adds the queries. Their result lists can be checked here only
// if they are in this process's memory.
func (f collectFlags) applySlowPaths(cfg *collector.Config) error {
	for _, s := range f.slowPaths {
		n, _, err := numbers(s, 4, "")
		if err != nil || n[0] > 31 || n[1] > 32 || n[3] > 1<<32-1 {
			return fmt.Errorf("--slow-paths %q: want SHIFT:BITS:ABOVE:LIST", s)
		}
		q := translate.Query{Shift: uint8(n[0]), Bits: uint8(n[1]), Above: n[2], List: dta.ListID(n[3])}
		if plan, err := cfg.Memory.Plan(); err == nil && len(cfg.Collectors) == 0 {
			if err := q.Check(plan); err != nil {
				return fmt.Errorf("--slow-paths %q: %w", s, err)
			}
		}
		cfg.Translate.Queries = append(cfg.Translate.Queries, q)
	}
	return nil
}

// registerAdditions registers the flags of weft collect and weft translate about
// Key-Increments.
func (f *collectFlags) registerAdditions(fl *pflag.FlagSet) {
	fl.StringArrayVar(&f.heavyKeys, "heavy-keys", nil, "append keys whose counter grows by ABOVE or more within a period to a list, ABOVE:PERIOD:LIST")
	fl.IntVar(&f.addRows, "add-rows", 0, "add up Key-Increments of a key for 10 ms before they are written, in this many rows; 0 writes each")
}

// applyAdditions applies the flags of registerAdditions.
func (f collectFlags) applyAdditions(cfg *collector.Config) error {
	if cfg.Translate.AddRows = f.addRows; f.addRows < 0 || f.addRows > 1<<24 {
		return fmt.Errorf("--add-rows %d: want 0 to %d", f.addRows, 1<<24)
	}
	for _, s := range f.heavyKeys {
		parts := strings.Split(s, ":")
		if len(parts) != 3 {
			return fmt.Errorf("--heavy-keys %q: want ABOVE:PERIOD:LIST", s)
		}
		above, err1 := strconv.ParseUint(parts[0], 10, 64)
		period, err2 := time.ParseDuration(parts[1])
		id, err3 := strconv.ParseUint(parts[2], 10, 32)
		if err := errors.Join(err1, err2, err3); err != nil {
			return fmt.Errorf("--heavy-keys %q: want ABOVE:PERIOD:LIST, such as 1000000:1s:5: %w", s, err)
		}
		q := translate.HeavyKeys{Above: above, Period: period, List: dta.ListID(id)}
		if plan, err := cfg.Memory.Plan(); err == nil && len(cfg.Collectors) == 0 {
			if err := q.Check(plan); err != nil {
				return fmt.Errorf("--heavy-keys %q: %w", s, err)
			}
		}
		cfg.Translate.Heavy = append(cfg.Translate.Heavy, q)
	}
	return nil
}

// addrPort parses the address of a flag; an empty value leaves to unchanged.
func addrPort(flag, value string, to *netip.AddrPort) (err error) {
	if value == "" {
		return nil
	}
	if *to, err = netip.ParseAddrPort(value); err != nil {
		return fmt.Errorf("--%s %q: want ADDRESS:PORT", flag, value)
	}
	return nil
}

// numberAndSize parses "4=1GiB".
func numberAndSize(s string) (int, int64, error) {
	n, size, ok := strings.Cut(s, "=")
	v, err := strconv.Atoi(n)
	b, err2 := model.ParseBytes(size)
	if !ok || err != nil || err2 != nil || v < 1 || b < 1 {
		return 0, 0, errors.New("malformed")
	}
	return v, int64(b), nil
}

// numbers parses n numbers separated by colons, and an optional last word.
func numbers(s string, n int, word string) (all []uint64, has bool, err error) {
	parts := strings.Split(s, ":")
	if word != "" && len(parts) == n+1 && parts[n] == word {
		parts, has = parts[:n], true
	}
	if len(parts) != n {
		return nil, false, errors.New("malformed")
	}
	for _, p := range parts {
		v, err := strconv.ParseUint(p, 10, 63)
		if err != nil {
			return nil, false, err
		}
		all = append(all, v)
	}
	return all, has, nil
}

func (a *app) collectStatusCommand() *cobra.Command {
	at := collector.DefaultConfig().Status.String()
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what a collector stored and what it lost",
		Args:  argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			st, err := fetchStatus(cmd.Context(), at)
			if err != nil {
				return err
			}
			if a.format == "json" {
				return printJSON(cmd.OutOrStdout(), struct {
					collector.Status
					Losses []collector.Loss `json:"losses"`
				}{st, st.Losses()})
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "listening on %v for %v, %d reports stored\n\n", st.Listen,
				model.FormatDuration(st.Uptime), st.Stored())
			var memory table
			memory.row("MEMORY", "SIZE", "WRITES", "GEOMETRY")
			for _, m := range st.Memory {
				memory.row(m.Kind, model.FormatBytes(model.Bytes(m.Bytes)), m.Counts.Writes, string(m.Geometry))
			}
			if err := memory.print(out); err != nil {
				return err
			}
			fmt.Fprintln(out)
			losses := st.Losses()
			slices.SortStableFunc(losses, func(x, y collector.Loss) int {
				return int(min(1, y.Count)) - int(min(1,
					x.Count))
			})
			var lost table
			lost.row("LOST", "", "STAGE", "REASON")
			for _, l := range losses {
				lost.row(l.Count, l.Unit, l.Stage, l.Reason)
			}
			return lost.print(out)
		},
	}
	cmd.Flags().StringVar(&at, "at", at, "the collector's status address")
	return cmd
}

func fetchStatus(ctx context.Context, at string) (st collector.Status, err error) {
	if _, _, err := net.SplitHostPort(at); err != nil {
		return st, usagef("--at %q, want ADDRESS:PORT", at)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/status", nil)
	if err != nil {
		return st, usageError{fmt.Errorf("--at %q: want ADDRESS:PORT", at)}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return st, fmt.Errorf("query the collector: %w; is weft collect running there? --at sets the address", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return st, fmt.Errorf("query the collector at %s: %s", at, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(&st); err != nil {
		return st, fmt.Errorf("query the collector at %s: %w", at, err)
	}
	return st, nil
}
