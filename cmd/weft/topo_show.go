package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
)

func (a *app) topoShowCommand() *cobra.Command {
	var node, from, to string
	var limit int
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Show a topology, one of its nodes, or the paths between two hosts",
		Example: `  weft topo show fabric.yaml
  weft topo show fabric.yaml --node tor0
  weft topo show fabric.yaml --from h0 --to h15`,
		Args: argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (from == "") != (to == "") {
				return usagef("--from and --to: want both")
			}
			if from != "" && node != "" {
				return usagef("--node and --from: want one of them")
			}
			if limit < 1 {
				return usagef("--limit %d, want at least 1", limit)
			}
			doc, err := file.Read(args[0])
			if err != nil {
				return err
			}
			var view interface{ print(io.Writer) error }
			switch {
			case node != "":
				id, err := findNode(doc.Fabric, node)
				if err != nil {
					return err
				}
				view = newNodeView(doc.Fabric, id)
			case from != "":
				if view, err = newPathsView(doc, from, to, limit); err != nil {
					return err
				}
			default:
				view = newFabricView(doc)
			}
			if a.format == "json" {
				return printJSON(cmd.OutOrStdout(), view)
			}
			return view.print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&node, "node", "", "show the ports of this node")
	cmd.Flags().StringVar(&from, "from", "", "show the paths from this node")
	cmd.Flags().StringVar(&to, "to", "", "show the paths to this node")
	cmd.Flags().IntVar(&limit, "limit", 64, "maximum number of paths to show")
	return cmd
}

func findNode(f *topo.Fabric, name string) (model.NodeID, error) {
	id, ok := f.ByName(name)
	if !ok {
		return 0, usagef("unknown node %q; 'weft topo show' lists the nodes", name)
	}
	return id, nil
}

// fabricView is the summary of a fabric.
type fabricView struct {
	Name      string      `json:"name"`
	Hosts     int         `json:"hosts"`
	Switches  int         `json:"switches"`
	Links     int         `json:"links"`
	Overrides int         `json:"static_routes"`
	Tiers     []tierView  `json:"tiers"`
	Speeds    []speedView `json:"link_kinds"`
}

type tierView struct {
	Role  string   `json:"role"`
	Nodes []string `json:"nodes"`
	Ports string   `json:"ports"`
}

type speedView struct {
	Between string     `json:"between"`
	Rate    model.Rate `json:"rate"`
	Delay   string     `json:"delay"`
	Error   float64    `json:"error_rate"`
	Links   int        `json:"links"`
}

func newFabricView(doc *file.Document) *fabricView {
	f := doc.Fabric
	v := &fabricView{
		Name: f.Name(), Hosts: len(f.Hosts()), Switches: len(f.Switches()), Links: len(f.Links()),
		Overrides: len(doc.Overrides),
	}
	byRole := map[topo.Role][]*topo.Node{}
	for i := range f.Nodes() {
		n := f.Node(model.NodeID(i))
		byRole[n.Role] = append(byRole[n.Role], n)
	}
	var roles []topo.Role
	for r := range byRole {
		roles = append(roles, r)
	}
	// Top tier first, as fabrics are drawn.
	slices.SortFunc(roles, func(x, y topo.Role) int {
		if d := byRole[y][0].Tier - byRole[x][0].Tier; d != 0 {
			return d
		}
		return int(x) - int(y)
	})
	for _, r := range roles {
		t := tierView{Role: r.String(), Ports: portRange(byRole[r])}
		for _, n := range byRole[r] {
			t.Nodes = append(t.Nodes, n.Name)
		}
		v.Tiers = append(v.Tiers, t)
	}
	type kind struct {
		between string
		spec    topo.LinkSpec
	}
	counts := map[kind]int{}
	var order []kind
	for _, l := range f.Links() {
		lo, hi := f.Node(l.A.Node), f.Node(l.B.Node)
		if lo.Tier > hi.Tier {
			lo, hi = hi, lo
		}
		k := kind{lo.Role.String() + "–" + hi.Role.String(), l.LinkSpec}
		if counts[k] == 0 {
			order = append(order, k)
		}
		counts[k]++
	}
	for _, k := range order {
		v.Speeds = append(v.Speeds, speedView{
			k.between, k.spec.Rate, k.spec.Delay.String(), k.spec.ErrorRate,
			counts[k],
		})
	}
	return v
}

// portRange prints how many ports the nodes have: "4", or "2–6".
func portRange(nodes []*topo.Node) string {
	lo, hi := len(nodes[0].Ports), len(nodes[0].Ports)
	for _, n := range nodes {
		lo, hi = min(lo, len(n.Ports)), max(hi, len(n.Ports))
	}
	if lo == hi {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d–%d", lo, hi)
}

func (v *fabricView) print(w io.Writer) error {
	name := v.Name
	if name == "" {
		name = "fabric"
	}
	fmt.Fprintf(w, "%s: %s, %s, %s, %s\n\n", name, plural.Count(v.Hosts, "host"), plural.Count(v.Switches, "switch"),
		plural.Count(v.Links, "link"), plural.Count(v.Overrides, "static route"))
	var tiers table
	tiers.row("ROLE", "NODES", "PORTS", "NAMES")
	for _, t := range v.Tiers {
		tiers.row(t.Role, len(t.Nodes), t.Ports, abbreviate(t.Nodes))
	}
	if err := tiers.print(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	var speeds table
	speeds.row("LINKS", "COUNT", "RATE", "DELAY", "ERROR RATE")
	for _, s := range v.Speeds {
		speeds.row(s.Between, s.Links, s.Rate, s.Delay, s.Error)
	}
	return speeds.print(w)
}

// abbreviate keeps a long list of names on one line.
func abbreviate(names []string) string {
	if len(names) <= 8 {
		return strings.Join(names, " ")
	}
	return strings.Join(names[:6], " ") + " … " + names[len(names)-1]
}

// nodeView is one node with its ports.
type nodeView struct {
	Name  string     `json:"name"`
	ID    uint32     `json:"id"`
	Role  string     `json:"role"`
	IPv4  string     `json:"ipv4"`
	IPv6  string     `json:"ipv6"`
	Nets  []string   `json:"nets,omitempty"`
	Ports []portView `json:"ports"`
}

type portView struct {
	Port  int        `json:"port"`
	Name  string     `json:"name"`
	MAC   string     `json:"mac"`
	Peer  string     `json:"peer"`
	Rate  model.Rate `json:"rate"`
	Delay string     `json:"delay"`
}

func newNodeView(f *topo.Fabric, id model.NodeID) *nodeView {
	n := f.Node(id)
	v := &nodeView{Name: n.Name, ID: uint32(id), Role: n.Role.String(), IPv4: n.IPv4.String(), IPv6: n.IPv6.String()}
	for _, p := range n.Nets {
		v.Nets = append(v.Nets, p.String())
	}
	for _, p := range n.Ports {
		v.Ports = append(v.Ports, portView{
			int(p.ID), p.Name, p.MAC.String(), f.PortRef(p.Peer), p.Rate,
			p.Delay.String(),
		})
	}
	return v
}

func (v *nodeView) print(w io.Writer) error {
	fmt.Fprintf(w, "%s (id %d), %s, %s, %s\n", v.Name, v.ID, v.Role, v.IPv4, v.IPv6)
	if len(v.Nets) > 0 {
		fmt.Fprintf(w, "prefixes %s\n", strings.Join(v.Nets, " "))
	}
	fmt.Fprintln(w)
	var t table
	t.row("PORT", "NAME", "PEER", "RATE", "DELAY", "MAC")
	for _, p := range v.Ports {
		t.row(p.Port, p.Name, p.Peer, p.Rate, p.Delay, p.MAC)
	}
	return t.print(w)
}

// pathsView is the paths that the intended routes allow between two nodes.
type pathsView struct {
	From  string     `json:"from"`
	To    string     `json:"to"`
	All   bool       `json:"all"` // false: there are more than shown
	Paths [][]string `json:"paths"`
}

func newPathsView(doc *file.Document, from, to string, limit int) (*pathsView, error) {
	f := doc.Fabric
	src, err := findNode(f, from)
	if err != nil {
		return nil, err
	}
	dst, err := findNode(f, to)
	if err != nil {
		return nil, err
	}
	routes, err := doc.Routes()
	if err != nil {
		return nil, err
	}
	paths, all := routes.Paths(src, f.Node(dst).IPv4, limit)
	v := &pathsView{From: from, To: to, All: all, Paths: [][]string{}}
	for _, p := range paths {
		var names []string
		for _, hop := range p {
			names = append(names, f.Node(hop.Node).Name)
		}
		v.Paths = append(v.Paths, names)
	}
	return v, nil
}

func (v *pathsView) print(w io.Writer) error {
	more := ""
	if !v.All {
		more = " shown; there are more, see --limit"
	}
	fmt.Fprintf(w, "%s to %s: %s%s\n", v.From, v.To, plural.Count(len(v.Paths), "path"), more)
	for _, p := range v.Paths {
		fmt.Fprintln(w, "  "+strings.Join(p, " > "))
	}
	return nil
}
