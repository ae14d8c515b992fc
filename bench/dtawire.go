package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/collector"
	"github.com/weft-telemetry/weft/ingest/udp"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

const (
	wireReports  = 1 << 19
	wireRounds   = 15
	wireDatagram = 1500 - 40 - 8
	wireName     = "reports over UDP into memory"
)

// peerStore is another store for reports.
type peerStore struct {
	name    string
	goal    float64 // the least ratio of Weft's rate to its
	program string  // that must be installed, or none
	reports int     // of a round: all where large batches are faster
	start   func(ctx context.Context, rows []byte) (*inserter, error)
}

var contenders = []peerStore{
	{
		"one report per datagram, batched receive", 10, "", wireReports / 8,
		func(ctx context.Context, rows []byte) (*inserter, error) {
			return startWeft(ctx, rows, dta.HeaderSize+4+rowSize, false)
		},
	},
	{"Redis, pipelined SET", 20, "redis-server", wireReports / 8, startRedis},
	{"DuckDB, appender into a file", 4, "", wireReports, startDuckDB},
	{"ClickHouse, native batches into MergeTree", 4, "clickhouse-server", wireReports, startClickHouse},
}

// compareWirePeers sends the same Key-Write reports to Weft over loopback, many to
// a datagram, and to each peer, in turn. The clock runs until all reports of a
// round are stored, whatever a store waits for. Only one peer runs at a time: some
// keep working when it is not their turn.
func compareWirePeers(ctx context.Context) (results []Result, err error) {
	rows := wireRows()
	weft, err := startWeft(ctx, rows, wireDatagram, true)
	if err != nil {
		return nil, err
	}
	defer weft.close()
	for _, c := range contenders {
		if c.program != "" {
			if err := installed(c.program); err != nil {
				results = append(results, skipped(wireName, "M/s", c.name, c.goal, err.Error()))
				continue
			}
		}
		ours, theirs, err := c.compare(ctx, weft, rows)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		results = append(results, comparePaired(wireName, ours, "M/s", c.name, theirs, c.goal))
	}
	return results, nil
}

// compare lets Weft and the peer store reports in turn, the peer a part of them
// in each round if it needs no more. A round of Weft's stores all of them twice,
// or it would be too short compared with the others'.
func (c peerStore) compare(ctx context.Context, weft *inserter, rows []byte) (ours, theirs []float64, err error) {
	s, err := c.start(ctx, rows)
	if err != nil {
		return nil, nil, err
	}
	defer s.close()
	if err := s.insert(0, wireReports); err != nil { // so that no key is new in a round
		return nil, nil, err
	}
	start := time.Now()
	clock := func() time.Duration { return time.Since(start) }
	from := 0
	return pairedRounds(ctx, wireRounds, clock,
		roundWork{ops: wireReports, times: 2, run: func() error { return weft.insert(0, wireReports) }},
		roundWork{ops: c.reports, times: 1, run: func() error {
			err := s.insert(from, from+c.reports)
			from = (from + c.reports) % wireReports
			return err
		}})
}

// wireRows returns reports about distinct IPv4 flows.
func wireRows() []byte {
	r := rand.New(rand.NewPCG(1, 1))
	var rows []byte
	for i := range uint32(wireReports) {
		k := model.FlowKey{
			Src: model.Addr4(0x0a000000 | i), Dst: model.Addr4(0x0b000000 | r.Uint32()&0xffff),
			SrcPort: uint16(r.Uint32()), DstPort: 80, Proto: model.TCP,
		}
		rows = k.AppendTo(rows)
		rows = binary.BigEndian.AppendUint32(rows, i)
	}
	return rows
}

// startWeft starts a collector with one worker, and a reporter with datagrams of
// the given size. They are encoded in advance: a reporter's work is done in
// switches. The reporter waits rather than overrun the collector's queue, so
// every report counts.
func startWeft(ctx context.Context, rows []byte, size int, offload bool) (*inserter, error) {
	all, err := pack(rows, size)
	if err != nil {
		return nil, err
	}
	l, err := openLoopback(ctx, offload, nil)
	if err != nil {
		return nil, err
	}
	var seq dta.Seq
	per := (wireReports + len(all) - 1) / len(all) // reports of a datagram
	return &inserter{
		insert: func(from, to int) error {
			datagrams := all[from/per : (to+per-1)/per]
			return l.send(datagrams, per, func(d []byte) error {
				var h dta.Header
				if _, err := h.Parse(d); err != nil {
					return err
				}
				h.Seq = seq
				h.AppendTo(d[:0])
				seq += dta.Seq(h.Count)
				return nil
			})
		},
		close: l.close,
	}, nil
}

// loopback is a collector with one worker and a socket that sends to it.
type loopback struct {
	c      *collector.Collector
	out    *udp.Conn
	cancel context.CancelFunc
	done   chan error
	sent   uint64 // reports
}

func openLoopback(ctx context.Context, offload bool, gate translate.Gate) (*loopback, error) {
	cfg := collector.DefaultConfig()
	cfg.Listen, cfg.Status, cfg.Offload = netip.MustParseAddrPort("127.0.0.1:0"), netip.AddrPort{}, offload
	cfg.Gate = gate
	// The default memory of weft collect for 4-byte values.
	cfg.Memory = collector.MemoryConfig{KeyWrites: collector.DefaultMemory().KeyWrites[:1]}
	c, err := collector.New(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	c.Memory().KeyWrites[0].Region().Prefault()
	out, err := udp.Listen(udp.DefaultConfig(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &loopback{c: c, out: out, cancel: cancel, done: make(chan error, 1)}
	go func() { l.done <- c.Run(ctx) }()
	return l, nil
}

func (l *loopback) close() {
	l.cancel()
	<-l.done
	_ = l.out.Close()
}

func (l *loopback) stored() uint64 { return l.c.Status().Stored() }

// send sends datagrams of at most per reports, each after ready has seen it, and
// waits until all are stored.
func (l *loopback) send(datagrams [][]byte, per int, ready func([]byte) error) error {
	// Reports in flight: as many as 16384 datagrams hold, which the kernel's queue
	// can hold. Packed, that is a whole round.
	ahead := uint64(16384 * per)
	known := l.stored()
	for i := 0; i < len(datagrams); {
		end := min(i+64, len(datagrams))
		for _, d := range datagrams[i:end] {
			if err := ready(d); err != nil {
				return err
			}
			l.sent += uint64(binary.BigEndian.Uint16(d[2:])) // the header's count
		}
		for i < end {
			n, err := l.out.Send(l.c.Addr(), datagrams[i:end]...)
			if err != nil && !errors.Is(err, unix.EAGAIN) {
				return err
			}
			i += n
		}
		for l.sent-known > ahead {
			if known = l.stored(); l.sent-known > ahead {
				time.Sleep(20 * time.Microsecond)
			}
		}
	}
	for deadline := time.Now().Add(10 * time.Second); l.stored() < l.sent; time.Sleep(20 * time.Microsecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d reports are missing: %+v", l.sent-l.stored(), l.sent, l.c.Status().Losses())
		}
	}
	return nil
}

// pack encodes rows as Key-Write reports with one copy, as the other stores keep
// one.
func pack(rows []byte, size int) (all [][]byte, err error) {
	w := dta.NewWriter(1, 0)
	w.Begin(make([]byte, size))
	for ; len(rows) > 0; rows = rows[rowSize:] {
		r := dta.Report{Primitive: dta.KeyWrite, Redundancy: 1, Key: rows[:keySize], Data: rows[keySize:rowSize]}
		err := w.AddReport(&r)
		if err == dta.ErrFull {
			all = append(all, w.Finish())
			w.Begin(make([]byte, size))
			err = w.AddReport(&r)
		}
		if err != nil {
			return nil, err
		}
	}
	return append(all, w.Finish()), nil
}
