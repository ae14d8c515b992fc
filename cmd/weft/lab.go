package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/dataplane/lab"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

func (a *app) labCommand() *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "lab",
		Short: "Build a fabric of Linux network namespaces, with real forwarding, traffic and faults",
		Long: `Build a fabric on this machine: a network namespace for every node, a veth pair for
every link, the kernel's forwarding with ECMP by the routes of the topology, and an agent
(weft agent) for every switch. Faults are real: routes of the kernel's tables, links that
are down, packets that an eBPF program drops. With --routing bgp the switches run FRR, and
learn their routes from one another.

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
	traffic := lab.TrafficConfig{IPv4: true}
	var family, rate, routing string
	cmd := &cobra.Command{
		Use:   "up FABRIC",
		Short: "Build a fabric, send traffic, and report, until interrupted",
		Long: `Build the fabric of a topology file, send UDP and TCP between all hosts, and have the
switches report to weft serve. When it is interrupted, the fabric is removed, and the books
of the traffic are printed: packets sent and received, and bytes of TCP.

With --routing bgp each switch runs zebra and bgpd of FRR (package frr) in its namespace,
with an AS number of its own, and learns the routes to hosts over its links to switches
(BGP unnumbered). Traffic begins when all have converged to the intended next hops. vtysh
--vty_socket /run/weft-frr/weft-NODE shows what a switch knows.`,
		Args: argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, routes, err := readRoutes(args[0])
			if err != nil {
				return err
			}
			if traffic.UDP < 0 || traffic.TCP < 0 || traffic.Pause < time.Millisecond {
				return usagef("--pairs %d, --tcp %d, --pause %v; want at least 0, 0 and 1ms", traffic.UDP, traffic.TCP, traffic.Pause)
			}
			switch family {
			case "4", "6", "both":
				traffic.IPv4, traffic.IPv6 = family != "6", family != "4"
			default:
				return usagef("--ip %q, want 4, 6 or both", family)
			}
			limit := model.Rate(0)
			if rate != "" {
				if limit, err = model.ParseRate(rate); err != nil {
					return usagef("--rate: %v", err)
				}
			}
			cfg, key, err := f.config(args[0])
			if err != nil {
				return err
			}
			lists := control.DefaultListPlan(doc.Fabric)
			setMirrorLists(&cfg, &lists)
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return runLab(ctx, cmd.OutOrStdout(), lab.Config{Routes: routes, Agent: cfg, Key: key, List: lists.FlowsetList, Rate: limit, BGP: routing == "bgp"}, traffic)
		},
	}
	cmd.Flags().IntVar(&traffic.UDP, "pairs", 1, "UDP flows from every host to every other; 0: none")
	cmd.Flags().IntVar(&traffic.TCP, "tcp", 0, "TCP connections from every host to every other; 0: none")
	cmd.Flags().DurationVar(&traffic.Pause, "pause", 10*time.Millisecond, "time between two packets of a UDP flow, and two messages of 4 KiB of a connection")
	cmd.Flags().StringVar(&family, "ip", "4", "addresses of the traffic: 4, 6 or both")
	cmd.Flags().StringVar(&routing, "routing", "static", "routes of switches: static, the intended ones, or bgp, which they learn by FRR")
	cmd.Flags().StringVar(&rate, "rate", "", "rate of every port, such as 100Mb/s; empty: not limited")
	knownValues(cmd, "routing", "static", "bgp")
	f.register(cmd)
	return cmd
}

func runLab(ctx context.Context, w io.Writer, cfg lab.Config, send lab.TrafficConfig) (err error) {
	l, err := lab.Up(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if err := l.Converge(ctx); err != nil {
		return err
	}
	traffic, err := lab.NewTraffic(l, send)
	if err != nil {
		return err
	}
	books := traffic.Flows()
	defer func() { err = errors.Join(err, traffic.Close()) }()
	routes := ""
	if cfg.BGP {
		routes = ", routes by BGP"
	}
	fmt.Fprintf(w, "%s in network namespaces, %s%s; reports to %v. Ctrl-C removes them.\n",
		nodeCount(l.Fabric()), plural.Count(len(books), "flow"), routes, cfg.Agent.To)
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
	printConnections(w, traffic.Connections())
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

// printConnections prints the books of streams.
func printConnections(w io.Writer, list []*lab.Connection) {
	sent, received, again := uint64(0), uint64(0), uint64(0)
	for _, c := range list {
		sent += c.Sent.Load()
		received += c.Received.Load()
		again += c.Again.Load()
		if c.Damaged.Load() {
			fmt.Fprintf(w, "damaged: the stream of %v received other bytes than were sent\n", c.Key())
		}
		if err := c.Err(); err != nil {
			fmt.Fprintf(w, "not in the packets: %v\n", err)
		}
	}
	if len(list) > 0 {
		fmt.Fprintf(w, "%s: %v sent, %v received, %d segments sent again\n", plural.Count(len(list), "connection"), model.Bytes(sent), model.Bytes(received), again)
	}
}

func (a *app) labDownCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove what labs have left",
		Long:  `Remove the network namespaces of labs, and with them their interfaces, routes, programs and routers.`,
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
  corrupt NODE PORT SHARE  PORT of a switch damages the payload of a share of what it
                           sends; receivers drop it
  rate NODE PORT RATE      PORT sends no faster than RATE, such as 10Mb/s; its queue
                           drops what waits for more than 20 ms
  delay NODE PORT TIME     PORT delays what it sends, such as 5ms; needs netem
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
