package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/dataplane/ebpf"
	"github.com/weft-telemetry/weft/dataplane/hostcounters"
	"github.com/weft-telemetry/weft/inhost/evidence"
	"github.com/weft-telemetry/weft/inhost/settings"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// hostView is what this host did between two snapshots.
type hostView struct {
	Time        time.Time          `json:"time"`
	Seconds     float64            `json:"seconds"`
	Verdicts    []evidence.Verdict `json:"verdicts"`
	Interfaces  []interfaceRate    `json:"interfaces"`
	Connections []connectionRate   `json:"connections"` // the fastest first
	// QueuePairs are those of RDMA devices; MoreQueuePairs is how many there are beyond.
	QueuePairs     []evidence.QueuePair `json:"queue_pairs,omitempty"`
	MoreQueuePairs uint64               `json:"more_queue_pairs,omitempty"`
	Drops          map[string]uint64    `json:"drops,omitempty"`
	Settings       *settings.Host       `json:"settings,omitempty"`
	Missing        []string             `json:"missing,omitempty"`
}

type interfaceRate struct {
	Name       string  `json:"name"`
	Up         bool    `json:"up"`
	ReceiveBps float64 `json:"receive_bps"`
	SendBps    float64 `json:"send_bps"`
	Lost       uint64  `json:"lost_packets"` // that it could not receive, or send
	Damaged    uint64  `json:"damaged"`
	Pauses     uint64  `json:"pauses_received"`
	QueueBytes uint64  `json:"queue_bytes"`
}

type connectionRate struct {
	Name          string  `json:"name"`
	SendBps       float64 `json:"send_bps"`
	ReceiveBps    float64 `json:"receive_bps"`
	RTTNs         int64   `json:"rtt_ns"`
	MinRTTNs      int64   `json:"min_rtt_ns"`
	Retransmitted uint64  `json:"retransmitted"`
	PeerLimited   float64 `json:"peer_limited_share"`
}

// compareSnapshots returns what happened between two snapshots.
func compareSnapshots(before, after *evidence.Snapshot) *hostView {
	seconds := max(after.Time.Sub(before.Time).Seconds(), 1e-3)
	rate := func(was, now uint64) float64 { return 8 * float64(now-min(was, now)) / seconds }
	v := &hostView{Time: after.Time, Seconds: seconds, Verdicts: evidence.Verdicts(before, after), Missing: after.Missing, Interfaces: []interfaceRate{}, Connections: []connectionRate{}}
	v.QueuePairs, v.MoreQueuePairs = after.QueuePairs, after.MoreQueuePairs
	for reason, n := range after.Drops {
		if was := before.Drops[reason]; n > was {
			if v.Drops == nil {
				v.Drops = map[string]uint64{}
			}
			v.Drops[reason] = n - was
		}
	}
	for i := range after.Interfaces {
		now := &after.Interfaces[i]
		old := slices.IndexFunc(before.Interfaces, func(x evidence.Interface) bool { return x.Name == now.Name })
		if old < 0 {
			continue
		}
		was := &before.Interfaces[old]
		grown := func(was, now uint64) uint64 { return now - min(was, now) }
		v.Interfaces = append(v.Interfaces, interfaceRate{
			Name: now.Name, Up: now.Up, ReceiveBps: rate(was.ReceivedBytes, now.ReceivedBytes), SendBps: rate(was.SentBytes, now.SentBytes),
			Lost:    grown(was.Missed, now.Missed) + grown(was.SendDropped, now.SendDropped) + grown(was.QueueDropped, now.QueueDropped),
			Damaged: grown(was.CRCErrors, now.CRCErrors), QueueBytes: now.QueueBytes,
			Pauses: grown(was.Driver[evidence.PauseReceived], now.Driver[evidence.PauseReceived]),
		})
	}
	for i := range after.Connections {
		now := &after.Connections[i]
		old := slices.IndexFunc(before.Connections, func(x evidence.Connection) bool { return x.Local == now.Local && x.Remote == now.Remote })
		if old < 0 {
			continue
		}
		was := &before.Connections[old]
		c := connectionRate{
			Name: fmt.Sprintf("%v > %v", now.Local, now.Remote), SendBps: rate(was.BytesAcked, now.BytesAcked), ReceiveBps: rate(was.BytesReceived, now.BytesReceived),
			RTTNs: int64(now.RTT), MinRTTNs: int64(now.MinRTT), Retransmitted: now.Retransmitted - min(was.Retransmitted, now.Retransmitted),
		}
		if busy := now.Busy - was.Busy; busy > 0 {
			c.PeerLimited = float64(now.PeerLimited-was.PeerLimited) / float64(busy)
		}
		v.Connections = append(v.Connections, c)
	}
	slices.SortStableFunc(v.Connections, func(a, b connectionRate) int {
		return cmp.Compare(b.SendBps+b.ReceiveBps, a.SendBps+a.ReceiveBps)
	})
	return v
}

// print prints interfaces, connections and verdicts.
func (v *hostView) print(w io.Writer, rows int) error {
	fmt.Fprintf(w, "this host  %s  %s  %s\n", v.Time.UTC().Format("15:04:05.000"), plural.Count(len(v.Interfaces), "interface"),
		plural.Count(len(v.Connections), "TCP connection"))
	var t table
	t.row("INTERFACE", "LINK", "RECEIVE", "SEND", "LOST", "DAMAGED", "PAUSES", "QUEUE")
	for _, in := range v.Interfaces[:min(len(v.Interfaces), rows)] {
		link := "down"
		if in.Up {
			link = "up"
		}
		t.row(in.Name, link, model.FormatRate(model.Rate(in.ReceiveBps)), model.FormatRate(model.Rate(in.SendBps)), in.Lost, in.Damaged, in.Pauses,
			model.FormatBytes(model.Bytes(in.QueueBytes)))
	}
	if err := t.print(w); err != nil {
		return err
	}
	if len(v.Connections) > 0 {
		fmt.Fprintln(w)
		var c table
		c.row("TCP CONNECTION", "SEND", "RECEIVE", "RTT", "LEAST RTT", "SENT AGAIN", "WAITS FOR PEER")
		for _, x := range v.Connections[:min(len(v.Connections), rows)] {
			c.row(x.Name, model.FormatRate(model.Rate(x.SendBps)), model.FormatRate(model.Rate(x.ReceiveBps)), model.FormatDuration(time.Duration(x.RTTNs)),
				model.FormatDuration(time.Duration(x.MinRTTNs)), x.Retransmitted, model.FormatShare(x.PeerLimited))
		}
		if err := c.print(w); err != nil {
			return err
		}
	}
	if err := v.printQueuePairs(w, rows); err != nil {
		return err
	}
	if err := v.printSettings(w, rows); err != nil {
		return err
	}
	if len(v.Drops) > 0 {
		fmt.Fprintln(w)
		var d table
		d.row("DROPPED BY THE KERNEL", "PACKETS")
		for _, reason := range slices.Sorted(maps.Keys(v.Drops)) {
			d.row(reason, v.Drops[reason])
		}
		if err := d.print(w); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	v.printVerdicts(w)
	return nil
}

// printQueuePairs prints those of RDMA devices; first those of programs that are not ready to send.
func (v *hostView) printQueuePairs(w io.Writer, rows int) error {
	if len(v.QueuePairs) == 0 {
		return nil
	}
	rank := func(q *evidence.QueuePair) int {
		switch {
		case q.PID == 0:
			return 2
		case q.State == "RTS":
			return 1
		}
		return 0
	}
	list := slices.Clone(v.QueuePairs)
	slices.SortStableFunc(list, func(a, b evidence.QueuePair) int { return cmp.Compare(rank(&a), rank(&b)) })
	fmt.Fprintln(w)
	var t table
	t.row("QUEUE PAIR", "PORT", "REMOTE", "TYPE", "STATE", "PROCESS")
	for _, q := range list[:min(len(list), rows)] {
		port, remote := "-", "-"
		if q.Port > 0 {
			port = strconv.Itoa(q.Port)
		}
		if q.Remote > 0 {
			remote = strconv.FormatUint(uint64(q.Remote), 10)
		}
		t.row(fmt.Sprintf("%s %d", q.Device, q.Number), port, remote, q.Type, q.State, q.Owner())
	}
	if err := t.print(w); err != nil {
		return err
	}
	if more := uint64(max(0, len(list)-rows)) + v.MoreQueuePairs; more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
	return nil
}

func (v *hostView) printVerdicts(w io.Writer) {
	if len(v.Verdicts) == 0 {
		fmt.Fprintf(w, "no cause found on this host in %.1f s\n", v.Seconds)
	}
	for _, x := range v.Verdicts {
		fmt.Fprintf(w, "%s (%s): %s", x.Where, x.Object, x.Text)
		if len(x.Evidence) > 0 {
			fmt.Fprintf(w, " (%s)", strings.Join(x.Evidence, "; "))
		}
		fmt.Fprintln(w)
	}
	for _, m := range v.Missing {
		fmt.Fprintf(w, "not known: %s\n", m)
	}
}

// hostReader reads snapshots of this host, with the reasons of drops if they are wanted.
func hostReader(drops bool) (read func() *evidence.Snapshot, stop func(), err error) {
	if !drops {
		return hostcounters.Read, func() {}, nil
	}
	d, err := ebpf.WatchDrops()
	if err != nil {
		return nil, nil, err
	}
	read = func() *evidence.Snapshot {
		s := hostcounters.Read()
		if s.Drops, err = d.Counts(); err != nil {
			s.Missing = append(s.Missing, "drops: "+err.Error())
		}
		return s
	}
	return read, func() { _ = d.Close() }, nil // the kernel detaches it anyway
}

// dropsHelp is the help of --drops.
const dropsHelp = "with --host: also count the packets that the kernel drops, by its reason; needs root or CAP_BPF and CAP_PERFMON, and Linux 5.17"

// topHost prints what this host did in each interval; count 0: until interrupted.
func (a *app) topHost(cmd *cobra.Command, f *topFlags) error {
	every, count, rows := f.every, f.count, f.rows
	read, end, err := hostReader(f.drops)
	if err != nil {
		return err
	}
	defer end()
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	out := cmd.OutOrStdout()
	file, _ := out.(*os.File)
	live := a.format != "json" && count == 0 && file != nil && screenOf(out).width > 0
	if count == 0 && !live && a.format != "json" {
		count = 1
	}
	if live {
		fmt.Fprint(out, enterScreen)
		defer fmt.Fprint(out, leaveScreen)
	}
	before := read()
	for n := 0; count == 0 || n < count; n++ {
		if wait(ctx, every); ctx.Err() != nil {
			return nil
		}
		after := read()
		v := compareSnapshots(before, after)
		v.addSettings()
		before = after
		if a.format == "json" {
			if err := json.NewEncoder(out).Encode(v); err != nil {
				return err
			}
			continue
		}
		if live {
			fmt.Fprint(out, cursorHome+clearBelow)
		}
		if err := v.print(out, rows); err != nil {
			return err
		}
	}
	return nil
}

// whyHost says why flows of this host are slow, from its own counters.
func (a *app) whyHost(ctx context.Context, w io.Writer, over time.Duration, drops bool) error {
	read, end, err := hostReader(drops)
	if err != nil {
		return err
	}
	defer end()
	before := read()
	wait(ctx, over)
	v := compareSnapshots(before, read())
	v.addSettings()
	if a.format == "json" {
		err = printJSON(w, v)
	} else {
		v.printVerdicts(w)
		err = v.printSettings(w, len(v.Interfaces))
	}
	if err == nil && len(v.Verdicts) > 0 {
		err = errFault
	}
	return err
}
