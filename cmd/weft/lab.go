package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/dataplane/lab"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

func (a *app) labCommand() *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "lab",
		Short: "Build a fabric of Linux network namespaces, with real forwarding, traffic and faults",
		Long: `Build a fabric on this machine: a network namespace for every node, a veth pair for
every link, the kernel's forwarding with ECMP by the routes of the topology, and an agent
(weft agent) for every switch. Faults are real: routes of the kernel's tables, links that
are down, packets that an eBPF program drops.

Nothing outside of the namespaces, whose names begin with weft-, is touched. What a lab
that was killed has left is removed at the next start, and by weft lab down. Needs root
and Linux 5.17.`,
		Example: `  weft topo gen leaf-spine --leaves 4 --spines 2 --hosts 2 > fabric.yaml
  weft serve --topology fabric.yaml --controller-slot 50ms &
  weft lab up fabric.yaml --slot 50ms &
  weft lab fault fabric.yaml blackhole leaf1 h5
  weft incidents`,
	}, a.labUpCommand(), a.labDownCommand(), a.labFaultCommand())
}

func (a *app) labUpCommand() *cobra.Command {
	var f agentFlags
	var pairs int
	var pause time.Duration
	cmd := &cobra.Command{
		Use:   "up FABRIC",
		Short: "Build a fabric, send traffic, and report, until interrupted",
		Long: `Build the fabric of a topology file, send UDP between all hosts, and have the switches
report to weft serve. When it is interrupted, the fabric is removed, and the books of the
traffic are printed: packets sent and received.`,
		Args: argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, routes, err := readRoutes(args[0])
			if err != nil {
				return err
			}
			if pairs < 0 || pause < time.Millisecond {
				return usagef("--pairs %d, --pause %v; want at least 0, and at least 1ms", pairs, pause)
			}
			cfg, key, err := f.config(args[0])
			if err != nil {
				return err
			}
			lists := control.DefaultListPlan(doc.Fabric)
			setMirrorLists(&cfg, &lists)
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return runLab(ctx, cmd.OutOrStdout(), lab.Config{Routes: routes, Agent: cfg, Key: key, List: lists.FlowsetList}, pairs, pause)
		},
	}
	cmd.Flags().IntVar(&pairs, "pairs", 1, "flows from every host to every other; 0 sends nothing")
	cmd.Flags().DurationVar(&pause, "pause", 10*time.Millisecond, "time between two packets of a flow")
	f.register(cmd)
	return cmd
}

func runLab(ctx context.Context, w io.Writer, cfg lab.Config, pairs int, pause time.Duration) (err error) {
	l, err := lab.Up(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	traffic, err := lab.NewTraffic(l, pairs, pause)
	if err != nil {
		return err
	}
	books := traffic.Flows()
	defer func() { err = errors.Join(err, traffic.Close()) }()
	fmt.Fprintf(w, "%s in network namespaces, %s; reports to %v. Ctrl-C removes them.\n",
		nodeCount(l.Fabric()), plural.Count(len(books), "flow"), cfg.Agent.To)
	agents, stopAgents := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { err = l.Run(agents) })
	traffic.Run(ctx)
	stopAgents() // after the traffic: its last packets are counted
	wg.Wait()
	sent, received := uint64(0), uint64(0)
	for _, f := range books {
		sent += f.Sent.Load()
		received += f.Received.Load()
	}
	fmt.Fprintf(w, "%s sent, %d received\n", plural.Count(sent, "packet"), received)
	for _, id := range l.Fabric().Switches() {
		s := l.Agent(id).Stats()
		for _, lost := range s.Losses() {
			if lost.Count > 0 {
				fmt.Fprintf(w, "%s lost %d %s: %s\n", l.Fabric().Node(id).Name, lost.Count, lost.Unit, lost.Reason)
			}
		}
	}
	return err
}

func (a *app) labDownCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove what labs have left",
		Long:  `Remove the network namespaces of labs, and with them their interfaces, routes and programs.`,
		Args:  argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			removed, err := lab.Remove()
			fmt.Fprintf(cmd.OutOrStdout(), "removed %s\n", plural.Count(len(removed), "network namespace"))
			return err
		},
	}
}

func (a *app) labFaultCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "fault FABRIC KIND NODE …",
		Short: "Inject a fault into a lab that is up, until interrupted",
		Long: `Inject a fault into the lab of another process. It is repaired when this command is
interrupted.

  blackhole NODE HOST      NODE discards packets to HOST
  misroute NODE HOST PORT  NODE forwards packets to HOST by PORT; where the next node
                           sends them back, that is a loop
  drop NODE PORT SHARE     PORT of NODE drops a share of what it sends, such as 0.02
  link-down NODE PORT      the link of PORT is down`,
		Example: `  weft lab fault fabric.yaml blackhole leaf1 h5
  weft lab fault fabric.yaml drop spine0 Ethernet8 0.02`,
		Args: argumentCount(4, 5),
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, routes, err := readRoutes(args[0])
			if err != nil {
				return err
			}
			fault, err := parseFault(doc.Fabric, args[1:])
			if err != nil {
				return err
			}
			l, err := lab.Open(routes)
			if err != nil {
				return err
			}
			defer l.Leave()
			repair, err := fault(l)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "injected %s. Ctrl-C repairs it.\n", strings.Join(args[1:], " "))
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			<-ctx.Done()
			return repair()
		},
	}
}

// parseFault returns what injects a fault, and returns what repairs it.
func parseFault(f *topo.Fabric, args []string) (func(*lab.Lab) (func() error, error), error) {
	at, ok := f.ByName(args[1])
	if !ok {
		return nil, usagef("no node %q in the topology", args[1])
	}
	want := map[string]int{"blackhole": 3, "misroute": 4, "drop": 4, "link-down": 3}[args[0]]
	if want != len(args) {
		return nil, usagef("%s with %s, want blackhole NODE HOST, misroute NODE HOST PORT, drop NODE PORT SHARE or link-down NODE PORT",
			args[0], plural.Count(len(args)-1, "argument"))
	}
	switch args[0] {
	case "blackhole", "misroute":
		host, ok := f.ByName(args[2])
		if !ok || f.Node(host).Role != topo.Host {
			return nil, usagef("no host %q in the topology", args[2])
		}
		if args[0] == "blackhole" {
			return func(l *lab.Lab) (func() error, error) {
				return func() error { return l.RestoreRoute(at, host) }, l.Blackhole(at, host)
			}, nil
		}
		p := f.Node(at).PortByName(args[3])
		if p == nil {
			return nil, usagef("%s has no port %q", args[1], args[3])
		}
		return func(l *lab.Lab) (func() error, error) {
			return func() error { return l.RestoreRoute(at, host) }, l.Misroute(at, host, p.ID)
		}, nil
	}
	p := f.Node(at).PortByName(args[2])
	if p == nil {
		return nil, usagef("%s has no port %q", args[1], args[2])
	}
	port := model.Port{Node: at, Port: p.ID}
	if args[0] == "link-down" {
		return func(l *lab.Lab) (func() error, error) {
			return func() error { return l.SetLink(port, true) }, l.SetLink(port, false)
		}, nil
	}
	share, err := strconv.ParseFloat(args[3], 64)
	if err != nil || !(share > 0 && share <= 1) {
		return nil, usagef("a share of %q, want above 0 and at most 1", args[3])
	}
	return func(l *lab.Lab) (func() error, error) {
		drop, err := l.DropSilently(port, share)
		if err != nil {
			return nil, err
		}
		return drop.Close, nil
	}, nil
}
