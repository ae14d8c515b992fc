// Command weft sees every thread of a datacenter fabric. This package is
// wiring only: it reads flags, calls the rooms that do the work, and prints.
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
	exitError = 1 // something failed, or a claim or goal was not met
	exitUsage = 2 // the command line or an input file is wrong
	exitFault = 3 // the command worked and found a fault
)

// errFault ends a command that has printed the faults it found.
var errFault = errors.New("faults found")

// errMissed ends a command that has printed the goals or claims not met.
var errMissed = errors.New("goals missed")

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
	format  string // of -o
	started bool   // flags and arguments were understood
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
		Short: "See every thread of a datacenter fabric",
		Long: `Weft sees every thread of a datacenter fabric: which flows ran where, what each
lost, how deep each queue was, which path a packet took, and why a flow is slow.

Begin with:
  weft demo                     the whole system on a small fabric, no set-up
  weft topo gen fat-tree --k 4  a fabric as a file you can read and change
  weft run examples/incast.yaml a scenario in the simulator, with a verdict
  weft ports examples/labels.yaml
                                queue and latency of every port, by labels
  weft trace examples/trace.yaml
                                the way of packets that were lost or went round
  weft probe examples/traced-blackhole.yaml --suspects 1
                                packets on purpose: what is lost, where and how
  weft repro list               what the papers claim, to be measured here

While weft demo or weft serve runs, ask it with weft incidents, flows, trace,
ports, probe, counter, debug and diagnose (--server URL). weft replay plays what
it recorded.

Exit codes: 0 fine, 1 error or a goal missed, 2 usage or malformed input,
3 the command worked and found a fault.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			warnUnknownVariables(cmd.ErrOrStderr(), os.Environ())
			if a.format != "table" && a.format != "json" {
				return usagef("output format %q, want table or json", a.format)
			}
			a.started = true
			return nil
		},
	}
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().StringVarP(&a.format, "output", "o", "table", "output format: table or json")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	commandGroup(
		root,
		a.topoCommand(),
		a.runCommand(),
		a.flowsCommand(),
		a.traceCommand(),
		a.counterCommand(),
		a.debugCommand(),
		a.demoCommand(),
		a.serveCommand(),
		a.replayCommand(),
		a.incidentsCommand(),
		a.diagnoseCommand(),
		a.probeCommand(),
		a.portsCommand(),
		a.flowLatencyCommand(),
		a.collectCommand(),
		a.translateCommand(),
		a.queryCommand(),
		a.storeCommand(),
		a.flowsetCommand(),
		a.benchCommand(),
		a.reproCommand(),
		wiresharkCommand(),
		a.versionCommand(),
		manCommand(),
	)
	return root
}
