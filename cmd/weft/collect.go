package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/collect/count"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/collector"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// collectFlags are the flags of weft collect that are not yet a Config.
type collectFlags struct {
	listen, status string
	roce, control  string
	keyWrites      []string
	counts         string
	postcards      string
	lists          []string
	slowPaths      []string
	prototype      bool
	recordSize     string
}

func (a *app) collectCommand() *cobra.Command {
	cfg := collector.DefaultConfig()
	record := capture.DefaultConfig()
	f := collectFlags{listen: cfg.Listen.String(), status: cfg.Status.String(), control: cfg.Control.String()}
	cmd := &cobra.Command{
		Use:   "collect",
		Short: "Take reports into memory that can be queried",
		Long: `Take reports of Direct Telemetry Access into memory that can be queried.

Reports arrive over UDP, in Weft's own format or in either of the public
prototype's. With --dir the memories are files: they survive the process, and
weft query reads them while reports come in. The account of everything that was
lost is at the status address (/status, /metrics) and in weft collect status.

With --rocev2 the memories are written by translators over RDMA (weft translate,
or a switch) in place of reports: the address takes RoCEv2 packets as an RDMA
network card would.

The memories, unless flags say otherwise: newest values of 4 and 20 bytes,
counters, paths of 5 hops, 64 lists of events and 64 of whole datagrams.`,
		Example: `  weft collect --dir /var/lib/weft
  weft collect --key-write 4=1GiB --lists 1024:8:65536
  weft collect --prototype --listen 0.0.0.0:40040
  weft collect --rocev2 127.0.0.1:4791
  weft collect status`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(f.apply(&cfg), f.applyRecord(&record)); err != nil {
				return usageError{err}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return runCollector(ctx, cfg, record, cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", f.listen, "address that takes reports")
	fl.StringVar(&f.status, "status", f.status, "address that serves /status, /metrics, /notices; empty for none")
	fl.StringVar(&f.roce, "rocev2", "", "address that takes RoCEv2 writes in place of reports")
	fl.StringVar(&f.control, "control", f.control, "address where translators set up connections for --rocev2")
	fl.StringVar(&cfg.Memory.Dir, "dir", "", "directory for the memories' files; without it they end with the process")
	fl.IntVar(&cfg.Workers, "workers", cfg.Workers, "sockets that share the port")
	fl.Float64Var(&cfg.Rate, "rate", 0, "reports per second that are let through; reporters are told of the others")
	fl.Uint16Var(&cfg.AnswerPort, "answer-port", 0, "port for answers to reporters; 0 is the one they report from")
	fl.StringArrayVar(&f.keyWrites, "key-write", nil, "memory for the newest values, VALUE_BYTES=SIZE")
	fl.StringVar(&f.counts, "key-increment", "", "memory for counters, SIZE")
	fl.StringVar(&f.postcards, "postcards", "", "memory for paths, HOPS=SIZE")
	fl.StringArrayVar(&f.lists, "lists", nil, "lists of one shape, LISTS:ENTRY_BYTES:CAPACITY[:sized]")
	fl.StringArrayVar(&f.slowPaths, "slow-paths", nil, "put paths whose hops sum up to more than ABOVE on a list, SHIFT:BITS:ABOVE:LIST")
	fl.BoolVar(&f.prototype, "prototype", false, "lay the memories out as the public prototype does")
	fl.StringVar(&record.Path, "record", "", "pcapng file that every datagram is also written to, which weft replay plays")
	fl.StringVar(&f.recordSize, "record-size", record.MaxSize.String(), "a file of this size becomes an old one, with its time in its name; 0: no bound")
	fl.IntVar(&record.Keep, "record-keep", record.Keep, "old files that are kept; 0: all")
	fl.BoolVar(&record.Rejected, "record-rejected", false, "also write what was received and not taken")
	cmd.AddCommand(a.collectStatusCommand())
	return cmd
}

// runCollector runs a collector or translator until ctx ends, and records what it
// receives if a file is given.
func runCollector(ctx context.Context, cfg collector.Config, record capture.Config, stderr io.Writer) error {
	log := slog.New(slog.NewTextHandler(stderr, nil))
	var c *collector.Collector
	recorded := func() error { return nil }
	if record.Path != "" {
		r, err := capture.NewRecorder(record, log)
		if err != nil {
			return err
		}
		cfg.Tap = func(at model.Time, from netip.AddrPort, datagram []byte, stored bool) {
			r.Datagram(capture.DTA, stored, at, from, c.Addr(), datagram)
		}
		cfg.Recorded = r.Stats
		writing, end := context.WithCancel(context.WithoutCancel(ctx))
		done := make(chan error, 1)
		go func() { done <- r.Run(writing) }()
		recorded = func() error {
			end()
			err := <-done
			st := r.Stats()
			log.Info("recorded", "file", record.Path, "written", st.Written, "shed", st.Shed, "failed", st.Failed, "rejected", st.Left, "files", st.Files)
			return err
		}
	}
	c, err := collector.New(ctx, cfg, log)
	if err != nil {
		return errors.Join(err, recorded())
	}
	log.Info("ready", "listen", c.Addr(), "status", c.StatusAddr(), "control", c.Control(), "dir", cfg.Memory.Dir, "collectors", cfg.Collectors)
	return errors.Join(c.Run(ctx), recorded())
}

// applyRecord turns the flags into a Config.
func (f collectFlags) applyRecord(r *capture.Config) (err error) {
	if f.roce != "" && r.Path != "" {
		return errors.New("--record is of reports, and --rocev2 takes none")
	}
	if r.MaxSize, err = model.ParseBytes(f.recordSize); err != nil {
		return fmt.Errorf("--record-size: %w", err)
	}
	return r.Check()
}

// apply turns the flags into a Config.
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
	if err := errors.Join(f.applyMemory(&cfg.Memory), f.applySlowPaths(cfg)); err != nil {
		return err
	}
	return cfg.Check()
}

// applyMemory lays the memories out.
func (f collectFlags) applyMemory(m *collector.Memory) error {
	if f.prototype {
		if f.keyWrites != nil || f.counts != "" || f.postcards != "" || f.lists != nil {
			return errors.New("--prototype has memories of its own: leave out --key-write, --key-increment, --postcards and --lists")
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
		memory := collector.KeyWrite(value, size)
		if err := memory.Valid(); err != nil {
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
		if err := counts.Valid(); err != nil {
			return fmt.Errorf("--key-increment %q: %w", f.counts, err)
		}
		m.Counts = &counts
	}
	if f.postcards != "" {
		hops, size, err := numberAndSize(f.postcards)
		if err != nil {
			return fmt.Errorf("--postcards %q: want HOPS=SIZE, such as 5=1GiB", f.postcards)
		}
		postcards := collector.Postcards(hops, size)
		if err := postcards.Valid(); err != nil {
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
			cfg.Classes = append(cfg.Classes, list.Class{Lists: int(n[0]), Entry: int(n[1]), Capacity: int(n[2]), Sized: sized})
			if err := cfg.Valid(); err != nil {
				return fmt.Errorf("--lists %q: %w", s, err)
			}
		}
		m.Lists = []list.Config{cfg}
	}
	return nil
}

// applySlowPaths adds the queries. The lists that answers go to are known here
// if they are in a memory of one's own.
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

// addrPort parses the address of a flag; an empty one is none.
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

// numbers parses n numbers with colons between, and a word that may follow.
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
		Short: "Tell what a collector took and what it lost",
		Args:  arguments(0, 0),
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
			fmt.Fprintf(out, "listening on %v for %v, %d reports stored\n\n", st.Listen, st.Uptime.Round(time.Second), st.Stored())
			var memory table
			memory.row("MEMORY", "SIZE", "WRITES", "GEOMETRY")
			for _, m := range st.Memory {
				memory.row(m.Kind, model.Bytes(m.Bytes), m.Counts.Writes, string(m.Geometry))
			}
			if err := memory.print(out); err != nil {
				return err
			}
			fmt.Fprintln(out)
			losses := st.Losses()
			slices.SortStableFunc(losses, func(x, y collector.Loss) int { return int(min(1, y.Count)) - int(min(1, x.Count)) })
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
		return st, fmt.Errorf("ask the collector: %w; is weft collect running there? --at names another", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return st, fmt.Errorf("ask the collector at %s: %s", at, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(&st); err != nil {
		return st, fmt.Errorf("ask the collector at %s: %w", at, err)
	}
	return st, nil
}
