package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/topo"
)

func (a *app) topoCheckCommand() *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check for unreachable hosts, forwarding loops and cyclic buffer dependencies",
		Long: `Check a topology and its routes for unreachable hosts, forwarding loops, and cyclic
buffer dependencies (CBD), which can cause a PFC deadlock.

The exit code is 3 if there is a fault or, with --strict, a warning. A cyclic buffer
dependency is a warning: it matters only where PFC is enabled.`,
		Args: argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, routes, err := readRoutes(args[0])
			if err != nil {
				return err
			}
			v := newCheckView(doc.Fabric, topo.Check(routes))
			if a.format == "json" {
				err = printJSON(cmd.OutOrStdout(), v)
			} else {
				err = v.print(cmd.OutOrStdout())
			}
			if err == nil && (v.Faults > 0 || strict && v.Warnings > 0) {
				err = errFault
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "treat warnings as errors")
	return cmd
}

// checkView is the findings of a check, with the names of nodes and ports.
type checkView struct {
	Fabric   string        `json:"fabric"`
	Faults   int           `json:"faults"`
	Warnings int           `json:"warnings"`
	Findings []findingView `json:"findings"`
}

type findingView struct {
	Severity string   `json:"severity"`
	Problem  string   `json:"problem"`
	Text     string   `json:"text"`
	Nodes    []string `json:"nodes,omitempty"`
	Ports    []string `json:"ports,omitempty"`
}

func newCheckView(f *topo.Fabric, findings []topo.Finding) *checkView {
	v := &checkView{Fabric: f.Name(), Findings: []findingView{}}
	for _, found := range findings {
		if found.Severity == topo.Fault {
			v.Faults++
		} else {
			v.Warnings++
		}
		fv := findingView{Severity: found.Severity.String(), Problem: string(found.Problem), Text: found.Text}
		for _, n := range found.Nodes {
			fv.Nodes = append(fv.Nodes, f.Node(n).Name)
		}
		for _, p := range found.Ports {
			fv.Ports = append(fv.Ports, f.PortRef(p))
		}
		v.Findings = append(v.Findings, fv)
	}
	return v
}

func (v *checkView) print(w io.Writer) error {
	for _, f := range v.Findings {
		fmt.Fprintf(w, "%s: %s\n", f.Severity, f.Text)
	}
	_, err := fmt.Fprintf(w, "%d faults, %d warnings\n", v.Faults, v.Warnings)
	return err
}
