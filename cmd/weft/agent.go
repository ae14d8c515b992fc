package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/dataplane/agent"
	"github.com/weft-telemetry/weft/dataplane/ebpf"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
	"github.com/weft-telemetry/weft/wire/dta"
)

// agentFlags are the flags that agents and labs share.
type agentFlags struct {
	to, keys string
	flows    int
	slot     time.Duration
	mirror   bool
	sample   uint32
}

func (f *agentFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.to, "to", netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), dta.Port).String(), "UDP address of weft serve: its dta.listen")
	fl.StringVar(&f.keys, "keys", "", "key file, to authenticate reports; weft keys new writes one")
	fl.IntVar(&f.flows, "flows", 1000, "flows of a slot that the tables are sized for, of each address family")
	fl.DurationVar(&f.slot, "slot", 10*time.Millisecond, "length of a slot: controller.slot of weft serve")
	fl.BoolVar(&f.mirror, "mirror", false, "mirror TCP packets with SYN, FIN or RST, and marked packets, for traces")
	fl.Uint32Var(&f.sample, "sample", 0, "mirror one in this many packets, too, the same at all agents; 0: none")
}

// config returns the configuration, and the key of each node.
func (f *agentFlags) config(topology string) (cfg agent.Config, key func(model.NodeID) *dta.MAC, err error) {
	cfg = agent.DefaultConfig()
	cfg.Flowset.Slot = f.slot
	if err := cfg.SetFlows(f.flows); err != nil {
		return cfg, nil, usageError{err}
	}
	if cfg.To, err = parseTarget("to", "udp://"+strings.TrimPrefix(f.to, "udp://")); err != nil {
		return cfg, nil, err
	}
	if f.mirror || f.sample > 0 {
		mirrors := agent.DefaultMirrors()
		mirrors.SampleOneIn = f.sample
		if !f.mirror {
			mirrors.TCPFlags, mirrors.DebugMask = false, 0
		}
		cfg.Mirrors = &mirrors
	}
	if f.keys == "" {
		return cfg, func(model.NodeID) *dta.MAC { return nil }, nil
	}
	key, err = reporterKeys(topology, f.keys)
	return cfg, key, err
}

func (a *app) agentCommand() *cobra.Command {
	var f agentFlags
	var topology, node, status, hook string
	var interfaces []string
	var attach, detach, settings bool
	var watch hostWatchFlags
	cmd := &cobra.Command{
		Use:   "agent --topology FILE [--attach] | --host | --settings",
		Short: "Count the flows of this Linux machine in the kernel and report them",
		Long: `Count every packet of every flow that arrives at this machine's interfaces, with an
eBPF program in the kernel, and report the counts of each slot to weft serve. The
machine is a node of the topology: a router, a gateway or a switch that runs Linux.

Without --attach nothing is attached: the interfaces, their ports in the topology and
their counters are printed. The program changes no packet, and the kernel detaches it
when the agent ends, however it ends. --detach detaches the programs of all agents of
this machine.

--mirror and --sample report the start of selected packets, too, with ports and time, of
which weft trace shows the paths.

With --host it watches this machine as a host instead: it logs and counts what its own
counters show (weft why --host), and asks the controller of --server to diagnose TCP
connections that are slow. It attaches nothing but what --drops needs.

With --settings it writes how the interfaces of this machine are set up, as JSON for weft
check --hosts: MTU, PFC, ETS, priorities of DSCPs, pause frames and ECN. What a driver does
not answer is named. It changes nothing and needs no privilege.

Interfaces are those that have the name of a port of the node, unless --interface names
them. --hook tc is tcx on Linux 6.6 and later, and clsact on older kernels from 5.17
on, where --detach removes what an agent that was killed has left; --hook xdp needs a
driver with XDP. Needs root, or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON.`,
		Example: `  weft agent --topology fabric.yaml --node leaf0
  weft agent --topology fabric.yaml --node leaf0 --attach --to 10.0.0.5:40040 --keys weft.keys
  weft agent --topology fabric.yaml --node gw0 --attach --interface eth0=1 --interface eth1=2
  weft agent --host --status 127.0.0.1:9476 --server https://weft.example:8443
  weft agent --settings > h0.json
  weft agent --detach`,
		Args: argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if detach {
				return detachAgents(cmd.OutOrStdout())
			}
			if settings {
				return printSettings(cmd.OutOrStdout())
			}
			if watch.host {
				return watch.run(cmd, status)
			}
			if topology == "" {
				return usagef("--topology is missing, want the topology file of the fabric")
			}
			doc, err := file.Read(topology)
			if err != nil {
				return err
			}
			cfg, key, err := f.config(topology)
			if err != nil {
				return err
			}
			id, ok := doc.Fabric.ByName(node)
			if !ok {
				return usagef("--node %q is not in %s, want one of its nodes", node, topology)
			}
			lists := control.DefaultListPlan(doc.Fabric)
			if cfg.Flowset.List = lists.FlowsetList(id); cfg.Flowset.List == control.NoList {
				return usagef("--node %s is a host, want a switch: hosts have no list of flowsets", node)
			}
			setMirrorLists(&cfg, &lists)
			cfg.Node, cfg.Key = id, key(id)
			if cfg.Interfaces, err = chooseInterfaces(doc.Fabric.Node(id), interfaces, ebpf.Hook(hook)); err != nil {
				return err
			}
			if !attach {
				return a.printInterfaces(cmd.OutOrStdout(), cfg.Interfaces)
			}
			return runAgent(cmd, cfg, status)
		},
	}
	host, _ := os.Hostname() // without one --node has no default
	fl := cmd.Flags()
	fl.StringVar(&topology, "topology", "", "topology file of the fabric")
	fl.StringVar(&node, "node", host, "name of this machine in the topology")
	fl.StringArrayVar(&interfaces, "interface", nil, "interface to observe, NAME or NAME=PORT with a number or name of the topology's port; repeatable")
	fl.StringVar(&hook, "hook", string(ebpf.TC), "where packets are counted: "+hookNames())
	fl.StringVar(&status, "status", "", "address that serves /metrics; empty disables it")
	fl.BoolVar(&attach, "attach", false, "attach the program and report")
	fl.BoolVar(&detach, "detach", false, "detach the programs of all agents of this machine, and end")
	fl.BoolVar(&settings, "settings", false, "write the settings of this machine's interfaces as JSON, and end")
	f.register(cmd)
	watch.register(cmd)
	cmd.Flags().Lookup("node").DefValue = "" // the manual is the same on every machine
	cmd.MarkFlagsMutuallyExclusive("attach", "detach", "settings", "host")
	return cmd
}

// setMirrorLists has mirrors go to the lists of the fabric.
func setMirrorLists(cfg *agent.Config, lists *control.ListPlan) {
	if cfg.Mirrors != nil {
		cfg.Mirrors.List, cfg.Mirrors.Lists = lists.Mirrors.First, uint32(lists.Mirrors.Count)
	}
}

func detachAgents(w io.Writer) error {
	n, err := ebpf.DetachEverywhere()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "detached %s\n", plural.Count(n, "program"))
	return nil
}

// hookNames lists the hooks.
func hookNames() string {
	var names []string
	for _, h := range ebpf.Hooks() {
		names = append(names, string(h))
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// chooseInterfaces returns the interfaces to observe.
func chooseInterfaces(n *topo.Node, named []string, hook ebpf.Hook) (list []agent.Interface, err error) {
	if !slices.Contains(ebpf.Hooks(), hook) {
		return nil, usagef("--hook %q, want %s", hook, hookNames())
	}
	for _, one := range named {
		name, port, given := strings.Cut(one, "=")
		if !given {
			port = name
		}
		p := n.PortByName(port)
		if id, err := strconv.ParseUint(port, 10, 16); err == nil {
			p = n.Port(model.PortID(id))
		}
		if p == nil {
			return nil, usagef("--interface %s: %s has no port %s, want NAME=PORT with one of its %s", one, n.Name, port, plural.Count(len(n.Ports), "port"))
		}
		list = append(list, agent.Interface{Name: name, Port: p.ID, Hook: hook})
	}
	if len(named) > 0 {
		return list, nil
	}
	for _, p := range n.Ports {
		if _, err := net.InterfaceByName(p.Name); err == nil {
			list = append(list, agent.Interface{Name: p.Name, Port: p.ID, Hook: hook})
		}
	}
	if len(list) == 0 {
		return nil, usagef("no interface has the name of a port of %s, want --interface NAME=PORT", n.Name)
	}
	return list, nil
}

// interfaceCounters are the kernel's counters of one interface.
type interfaceCounters struct {
	Interface string            `json:"interface"`
	Port      model.PortID      `json:"port"`
	Counters  map[string]uint64 `json:"counters"`
}

// counterNames are columns: files of /sys/class/net/INTERFACE/statistics.
var counterNames = []string{"rx_packets", "rx_bytes", "rx_dropped", "rx_errors", "tx_packets", "tx_bytes", "tx_dropped", "tx_errors"}

func (a *app) printInterfaces(w io.Writer, list []agent.Interface) error {
	var rows []interfaceCounters
	for _, i := range list {
		row := interfaceCounters{i.Name, i.Port, map[string]uint64{}}
		for _, name := range counterNames {
			text, err := os.ReadFile(filepath.Join("/sys/class/net", i.Name, "statistics", name))
			if err != nil {
				return fmt.Errorf("counters of interface %s: %w", i.Name, err)
			}
			if row.Counters[name], err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err != nil {
				return fmt.Errorf("counter %s of interface %s: %w", name, i.Name, err)
			}
		}
		rows = append(rows, row)
	}
	if a.format == "json" {
		return printJSON(w, rows)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head := []string{"INTERFACE", "PORT"}
	for _, name := range counterNames {
		head = append(head, strings.ToUpper(strings.ReplaceAll(name, "_", " ")))
	}
	fmt.Fprintln(t, strings.Join(head, "\t"))
	for _, r := range rows {
		cells := []string{r.Interface, strconv.Itoa(int(r.Port))}
		for _, name := range counterNames {
			cells = append(cells, strconv.FormatUint(r.Counters[name], 10))
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	fmt.Fprintln(t, "\nNothing is attached. --attach counts flows at these interfaces.")
	return t.Flush()
}

func runAgent(cmd *cobra.Command, cfg agent.Config, status string) error {
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	if policy := multipathPolicy(); policy > 0 {
		log.Warn("next hops of flows with several are not known: net.ipv4.fib_multipath_hash_policy is not 0, so the kernel may take the hash of card or socket; see docs/agent.md", "policy", policy)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	one, err := agent.New(cfg)
	if err != nil {
		return err
	}
	var names []string
	for _, i := range cfg.Interfaces {
		names = append(names, i.Name)
	}
	slices.Sort(names)
	log.Info("attached", "interfaces", names, "to", cfg.To, "slot", cfg.Flowset.Slot, "authenticated", cfg.Key != nil)
	err = serveMetrics(ctx, status, one, one.Run)
	s := one.Stats()
	log.Info("detached", "packets", s.Exported.Packets, "flows", s.Exported.Flows, "slots", s.Exported.Slots, "datagrams", s.Datagrams)
	for _, l := range s.Losses() {
		if l.Count > 0 {
			log.Warn("lost", l.Unit, l.Count, "reason", l.Reason)
		}
	}
	return err
}

// multipathPolicy is how the kernel chooses among next hops; -1: not known.
func multipathPolicy() int {
	text, err := os.ReadFile("/proc/sys/net/ipv4/fib_multipath_hash_policy")
	if err != nil {
		return -1
	}
	policy, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return -1
	}
	return policy
}

// serveMetrics serves metrics while run runs. An empty address serves none.
func serveMetrics(ctx context.Context, address string, metrics prometheus.Collector, run func(context.Context) error) error {
	if address == "" {
		return run(ctx)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--status: %w", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	err = errors.Join(run(ctx), server.Close())
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}
