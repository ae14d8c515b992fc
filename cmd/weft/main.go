// Command weft is telemetry for datacenter fabrics. This package is wiring only: it
// parses flags, calls the packages that do the work, and prints.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/repro"
	"github.com/weft-telemetry/weft/topo/file"
)

// Exit codes, the same for every command.
const (
	exitFine  = 0
	exitError = 1 // an error, or a claim or expectation that was not met
	exitUsage = 2 // an error in the command line or an input file
	exitFault = 3 // the command succeeded and found a fault
)

// errFault is returned by a command that has printed the faults it found.
var errFault = errors.New("faults found")

// errMissed is returned by a command that has printed the claims or expectations
// that were not met.
var errMissed = errors.New("expectations not met")

func main() {
	a := &app{papers: repro.Papers()}
	os.Exit(a.run(os.Args[1:], os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit code.
func (a *app) run(args []string, stdout, stderr io.Writer) int {
	root := a.command()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	code := a.exitCode(err)
	if err != nil && !errors.Is(err, errFault) && !errors.Is(err, errMissed) {
		fmt.Fprintf(stderr, "weft: %v\n", err)
		if code == exitUsage && !a.started {
			fmt.Fprintln(stderr, hint(cmd))
		}
	}
	return code
}

// app is the state of one command line.
type app struct {
	papers  []repro.Paper
	format  string // value of -o
	started bool   // flags and arguments are valid
}

func (a *app) exitCode(err error) int {
	var malformed *file.Error
	var usage usageError
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, errFault):
		return exitFault
	case !a.started, errors.As(err, &malformed), errors.As(err, &usage):
		return exitUsage
	default:
		return exitError
	}
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "weft",
		Short: "Telemetry for datacenter fabrics",
		Long: `Weft is telemetry for datacenter fabrics: the path, rate and losses of every flow,
the depth of every queue, packet traces, and the root cause of slow RDMA flows.

Start with:
  weft demo                     run everything on a simulated fabric with faults
  weft serve --topology fabric.yaml
                                monitor a fabric: console, API, incidents
  weft topo gen fat-tree --k 4  generate a topology file
  weft run examples/incast.yaml simulate a scenario and check its expectations

Query commands ask a running weft demo or weft serve (--server URL), or run a
scenario FILE in the simulator and ask it:
  weft incidents                what is wrong: cause, location, impact
  weft top                      busiest ports and flows, live
  weft flows                    flows with paths, rates and losses
  weft ports                    queue depth, latency and load of every port
  weft trace                    paths of packets that were dropped or looped
  weft why                      why a flow or a host is slow, from all that is known
  weft diagnose                 ask the switches why a flow is slow
  weft probe                    active probes: which packets are dropped, where, why
  weft counter                  link load, latency and custom counters
  weft debug                    mark packets, so that every switch mirrors them

For example:
  weft flows examples/flow-faults.yaml
  weft trace examples/trace.yaml --filter trace.drop
  weft probe examples/traced-blackhole.yaml --suspects 1

Exit codes: 0 success, 1 error or expectation not met, 2 usage error or malformed
input, 3 the command succeeded and found a fault.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			warnUnknownVariables(cmd.ErrOrStderr(), os.Environ())
			if a.format != "table" && a.format != "json" {
				return usagef("output format %q, want table or json", a.format)
			}
			if err := cmd.ValidateFlagGroups(); err != nil { // cobra does so after this
				return usageError{err}
			}
			a.started = true
			return nil
		},
	}
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().StringVarP(&a.format, "output", "o", "table", "output format: table or json")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"},
		cobra.ShellCompDirectiveNoFileComp))
	commandGroup(
		root,
		a.topoCommand(),
		a.checkCommand(),
		a.whatifCommand(),
		a.proveCommand(),
		a.scoreCommand(),
		a.runCommand(),
		a.flowsCommand(),
		a.jobsCommand(),
		a.traceCommand(),
		a.counterCommand(),
		a.debugCommand(),
		a.demoCommand(),
		a.serveCommand(),
		a.replayCommand(),
		a.incidentsCommand(),
		a.topCommand(),
		a.healthCommand(),
		a.sourcesCommand(), a.routesCommand(),
		a.diagnoseCommand(),
		a.whyCommand(),
		a.probeCommand(),
		a.portsCommand(),
		a.flowLatencyCommand(),
		a.collectCommand(),
		a.translateCommand(),
		a.agentCommand(),
		a.labCommand(),
		a.keysCommand(),
		a.queryCommand(),
		a.storeCommand(),
		a.flowsetCommand(),
		a.benchCommand(),
		a.reproCommand(),
		wiresharkCommand(),
		schemaCommand(),
		a.versionCommand(),
		manCommand(),
	)
	return root
}
