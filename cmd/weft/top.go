package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/scenario/live"
)

// topSort is an order of ports, the greatest first.
type topSort struct {
	key  byte
	name string
	less func(a, b *topPort) int
}

// topSorts are the orders of ports, by the key that chooses them.
var topSorts = []topSort{
	{'l', "load", func(a, b *topPort) int { return cmp.Compare(b.LoadShare, a.LoadShare) }},
	{'u', "queue", func(a, b *topPort) int { return cmp.Compare(b.QueueBytes, a.QueueBytes) }},
	{'p', "paused", func(a, b *topPort) int { return cmp.Compare(b.PausedShare, a.PausedShare) }},
	{'o', "lost", func(a, b *topPort) int { return cmp.Compare(b.LostPackets, a.LostPackets) }},
}

// topFlags are the flags of weft top.
type topFlags struct {
	targetFlags
	every time.Duration
	count int
	sort  string
	rows  int
	host  bool
	drops bool
}

func (a *app) topCommand() *cobra.Command {
	f := topFlags{every: time.Second, sort: "load", rows: 20}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the busiest ports and flows of a running controller",
		Long: `Watch the busiest ports, paused ports and the largest flows of the last second of a
running controller, and its open incidents. On a terminal it redraws every --every
until q or Ctrl-C; the keys l, u, p and o sort ports by load, queue, share of time
paused and lost packets. Elsewhere it prints one table. With -o json it prints one
object per line and refresh, --count of them.

With --host it shows this Linux machine instead, without any controller: rates, losses
and pauses of its interfaces, its TCP connections, and what makes them slow.`,
		Example: `  weft top
  weft top --host
  weft top --sort paused --every 500ms
  weft top --count 10 -o json --server http://127.0.0.1:8080`,
		Args: argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(a, cmd) },
	}
	f.register(cmd)
	fl := cmd.Flags()
	fl.DurationVar(&f.every, "every", f.every, "real time between two refreshes")
	fl.IntVar(&f.count, "count", 0, "number of refreshes (default: until it is interrupted, or 1 without a terminal and -o json)")
	fl.StringVar(&f.sort, "sort", f.sort, "sort ports by load, queue, paused or lost")
	knownValues(cmd, "sort", "load", "queue", "paused", "lost")
	fl.IntVar(&f.rows, "rows", f.rows, "maximum number of ports, and of flows, without a terminal")
	fl.BoolVar(&f.host, "host", false, "show this machine: its interfaces, TCP connections, and what makes them slow")
	fl.BoolVar(&f.drops, "drops", false, dropsHelp)
	return cmd
}

func (f *topFlags) run(a *app, cmd *cobra.Command) error {
	order := slices.IndexFunc(topSorts, func(s topSort) bool { return s.name == f.sort })
	switch {
	case f.every < 100*time.Millisecond:
		return usagef("--every %v, want at least 100ms", f.every)
	case f.count < 0:
		return usagef("--count %d, want 0 or more", f.count)
	case f.rows < 1 || f.rows > maxTop:
		return usagef("--rows %d, want 1 to %d", f.rows, maxTop)
	case f.scenarioFile != "":
		return usagef("--scenario: want a controller; weft demo --scenario %s is one", f.scenarioFile)
	}
	if f.host {
		return a.topHost(cmd, f)
	}
	t, err := f.open(cmd, "", live.StartOptions{})
	if err != nil {
		return err
	}
	defer t.close()
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	v := topView{order: order, rows: f.rows, read: func(ctx context.Context) (*topSnapshot, error) { return readTop(ctx, t, f.rows) }}
	out := cmd.OutOrStdout()
	file, _ := out.(*os.File)
	if a.format != "json" && f.count == 0 && file != nil && screenOf(out).width > 0 {
		return t.explain(v.watch(ctx, os.Stdin, file, f.every))
	}
	count := f.count
	if count == 0 && a.format != "json" {
		count = 1
	}
	return t.explain(v.printEach(ctx, out, a.format == "json", f.every, count))
}

// topPort is a port with its name.
type topPort struct {
	Name string `json:"name"`
	api.PortState
}

// topSnapshot is what one refresh shows.
type topSnapshot struct {
	Time      time.Time      `json:"time"`
	Health    string         `json:"health"`
	NoData    *api.NoData    `json:"no_data,omitempty"`
	Ports     []topPort      `json:"ports"`
	Paused    int            `json:"paused_ports"`
	Flows     []api.Flow     `json:"flows"`
	Incidents []api.Incident `json:"incidents"`
}

// readTop queries what one refresh shows.
func readTop(ctx context.Context, t *target, flows int) (*topSnapshot, error) {
	topology, err := t.Topology(ctx)
	if err != nil {
		return nil, err
	}
	state, err := t.State(ctx, time.Time{})
	if err != nil {
		return nil, err
	}
	health, err := t.Health(ctx)
	if err != nil {
		return nil, err
	}
	s := &topSnapshot{Time: state.Time, Health: health.State, NoData: health.NoData, Ports: []topPort{}, Flows: []api.Flow{}, Incidents: []api.Incident{}}
	names := portNames(&topology)
	for _, p := range state.Ports {
		if p.PausedShare > 0 {
			s.Paused++
		}
		s.Ports = append(s.Ports, topPort{names[api.PortRef{Node: p.Node, Port: p.Port}], p})
	}
	page, err := t.Flows(ctx, api.FlowsQuery{
		Range: api.Range{From: state.Time.Add(-time.Second), To: state.Time.Add(time.Millisecond)}, Sort: "rate",
		Paging: api.Paging{Limit: flows},
	})
	if err != nil {
		return nil, err
	}
	s.Flows = append(s.Flows, page.Items...)
	open, err := t.Incidents(ctx, api.IncidentsQuery{State: "open", Paging: api.Paging{Limit: maxTop}})
	for _, in := range open.Items {
		if in.Severity != "notice" {
			s.Incidents = append(s.Incidents, in)
		}
	}
	return s, err
}

// topView is the state of the display.
type topView struct {
	order int // in topSorts
	rows  int // of each table
	read  func(ctx context.Context) (*topSnapshot, error)
}

// printEach prints snapshots without controlling a terminal; count 0: until ctx ends.
func (v *topView) printEach(ctx context.Context, out io.Writer, asJSON bool, every time.Duration, count int) error {
	for n := 0; count == 0 || n < count; n++ {
		if n > 0 {
			wait(ctx, every)
		}
		if ctx.Err() != nil {
			return nil
		}
		s, err := v.read(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		v.sort(s)
		if asJSON {
			s.Ports = s.Ports[:min(len(s.Ports), v.rows)]
			err = json.NewEncoder(out).Encode(s)
		} else {
			_, err = fmt.Fprint(out, v.render(s, screen{}, 0))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *topView) sort(s *topSnapshot) {
	slices.SortStableFunc(s.Ports, func(a, b topPort) int { return topSorts[v.order].less(&a, &b) })
}
