package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/ingest/collector"
	"github.com/weft-telemetry/weft/ingest/udp"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

const (
	wireReports  = 1 << 19 // of each round, the same for all
	wireRounds   = 5
	wireDatagram = 1500 - 40 - 8
	wireName     = "reports over UDP into memory"
)

// wireBesidePeers feeds the same Key-Write reports to Weft over loopback,
// packed and one to a datagram, and to other stores, in turn. The clock runs
// until all reports of a round are stored, whatever a store waits for.
func wireBesidePeers(ctx context.Context) ([]Result, error) {
	rows := wireRows()
	type contender struct {
		peer  string
		goal  float64 // 0: Weft itself
		start func(context.Context) (*inserter, error)
		needs string // a program
		times int    // inserts of a round: a round of the fast one would else be too short to be told from chance
	}
	all := []contender{
		{start: func(ctx context.Context) (*inserter, error) { return startWeft(ctx, rows, wireDatagram, true) }, times: 8},
		{"one report per datagram, batched receive", 10, func(ctx context.Context) (*inserter, error) {
			return startWeft(ctx, rows, dta.HeaderSize+4+rowSize, false)
		}, "", 1},
		{"Redis, pipelined SET", 20, startRedis, "redis-server", 1},
		{"DuckDB, appender into a file", 4, startDuckDB, "", 1},
		{"ClickHouse, native batches into MergeTree", 4, startClickHouse, "clickhouse-server", 1},
	}
	var results []Result
	var sides []*inserter
	var names []contender
	defer func() {
		for _, s := range sides {
			s.close()
		}
	}()
	for _, c := range all {
		if c.needs != "" {
			if err := installed(c.needs); err != nil {
				results = append(results, skipped(wireName, "M/s", c.peer, c.goal, err.Error()))
				continue
			}
		}
		s, err := c.start(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.peer, err)
		}
		sides, names = append(sides, s), append(names, c)
	}
	rates := make([][]float64, len(sides))
	for range wireRounds {
		for i, s := range sides {
			start := time.Now()
			for range names[i].times {
				if err := errors.Join(ctx.Err(), s.insert(rows)); err != nil {
					return nil, fmt.Errorf("%s: %w", names[i].peer, err)
				}
			}
			rates[i] = append(rates[i], float64(names[i].times)*wireReports/time.Since(start).Seconds()/1e6)
		}
	}
	for i := range rates {
		slices.Sort(rates[i])
	}
	for i, c := range names[1:] {
		results = append(results, more(wireName, rates[0][wireRounds/2], "M/s", c.peer, rates[i+1][wireRounds/2], c.goal))
	}
	return results, nil
}

// wireRows is reports about distinct IPv4 flows.
func wireRows() []byte {
	r := rand.New(rand.NewPCG(1, 1))
	var rows []byte
	for i := range uint32(wireReports) {
		k := model.FlowKey{Src: model.Addr4(0x0a000000 | i), Dst: model.Addr4(0x0b000000 | r.Uint32()&0xffff), SrcPort: uint16(r.Uint32()), DstPort: 80, Proto: model.TCP}
		rows = k.AppendTo(rows)
		rows = binary.BigEndian.AppendUint32(rows, i)
	}
	return rows
}

// startWeft is a collector with one worker, and a reporter with datagrams of
// the given size. They are encoded beforehand: a reporter's work is done in
// switches. The reporter waits rather than overrun the collector's queue, so
// every report counts.
func startWeft(ctx context.Context, rows []byte, size int, offload bool) (*inserter, error) {
	cfg := collector.DefaultConfig()
	cfg.Listen, cfg.Status, cfg.Offload = netip.MustParseAddrPort("127.0.0.1:0"), netip.AddrPort{}, offload
	// The memory for 4-byte values that weft collect has unless told otherwise.
	cfg.Memory = collector.Memory{KeyWrites: collector.DefaultMemory().KeyWrites[:1]}
	c, err := collector.New(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	c.Memory().KeyWrites[0].Region().Touch()
	out, err := udp.Listen(udp.DefaultConfig(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	datagrams, err := pack(rows, size)
	if err != nil {
		cancel()
		return nil, errors.Join(err, <-done, out.Close())
	}
	var seq dta.Seq
	sent := uint64(0)
	stored := func() uint64 { return c.Status().Stored() }
	return &inserter{
		insert: func([]byte) error {
			// Reports on their way: as many as 16384 datagrams hold, which the
			// kernel's queue has room for. Packed, that is a whole round.
			ahead := 16384 * wireReports / uint64(len(datagrams))
			known := stored()
			for i := 0; i < len(datagrams); {
				end := min(i+64, len(datagrams))
				for _, d := range datagrams[i:end] {
					var h dta.Header
					if _, err := h.Parse(d); err != nil {
						return err
					}
					h.Seq = seq
					h.AppendTo(d[:0])
					seq += dta.Seq(h.Count)
					sent += uint64(h.Count)
				}
				for i < end {
					n, err := out.Send(c.Addr(), datagrams[i:end]...)
					if err != nil && !errors.Is(err, unix.EAGAIN) {
						return err
					}
					i += n
				}
				for sent-known > ahead {
					if known = stored(); sent-known > ahead {
						time.Sleep(20 * time.Microsecond)
					}
				}
			}
			for deadline := time.Now().Add(10 * time.Second); stored() < sent; time.Sleep(20 * time.Microsecond) {
				if time.Now().After(deadline) {
					return fmt.Errorf("%d of %d reports are missing: %+v", sent-stored(), sent, c.Status().Losses())
				}
			}
			return nil
		},
		close: func() { cancel(); <-done; _ = out.Close() },
	}, nil
}

// pack encodes rows as Key-Write reports with one copy, as the other stores keep
// one.
func pack(rows []byte, size int) (all [][]byte, err error) {
	w := dta.NewWriter(1, 0)
	w.Begin(make([]byte, size))
	for ; len(rows) > 0; rows = rows[rowSize:] {
		r := dta.Report{Primitive: dta.KeyWrite, Redundancy: 1, Key: rows[:keySize], Data: rows[keySize:rowSize]}
		err := w.Add(&r)
		if err == dta.ErrFull {
			all = append(all, w.Finish())
			w.Begin(make([]byte, size))
			err = w.Add(&r)
		}
		if err != nil {
			return nil, err
		}
	}
	return append(all, w.Finish()), nil
}
