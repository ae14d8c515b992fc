package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/ports"
)

// watchFlags are the flags of commands that watch a labelled scenario.
type watchFlags struct {
	runFlags
	ports.Options
}

func (f *watchFlags) add(cmd *cobra.Command) {
	f.runFlags.add(cmd)
	cmd.Flags().BoolVar(&f.Adaptive, "adaptive", false, "make ports that are not heard of label more often")
}

// play runs the scenario of a file.
func (f *watchFlags) play(cmd *cobra.Command, args []string) (*ports.Played, error) {
	s, err := f.scenario(cmd, args)
	if err != nil {
		return nil, err
	}
	f.Channel = ports.Channel{Delay: s.Management.Delay, Loss: s.Management.Loss, Seed: s.Seed}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	bar := newProgressBar(cmd.ErrOrStderr(), f.quiet)
	p, err := ports.Play(ctx, s, f.Options, bar.show)
	bar.clear()
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return nil, err
		}
		return nil, usageError{err}
	}
	bar.done(p.Result)
	return p, nil
}

// portsFlags are the questions of weft ports.
type portsFlags struct {
	watchFlags
	asked     portsAsked
	span      spanFlags
	congested string
	heat      bool
	svg       string
	steps     int
	silent    bool
}

func (a *app) portsCommand() *cobra.Command {
	var f portsFlags
	cmd := &cobra.Command{
		Use:   "ports [FILE]",
		Short: "Queue, latency and load of every port, by labels",
		Long: `Play a scenario whose switches write labels into passing packets, and tell what
the labels say: of every port the newest queue depth, time in the switch,
utilisation and age, and in how many windows with traffic it was heard of.

--congested names the ports whose queues were at least so deep between --from
and --to, --heat draws queue depth over ports and time, --silent names the ports
that had traffic in the last window and were not heard of (exit code 3 if any).

Without FILE a controller is asked (--server): for the present state of all
ports, with --port for one port over time, with --heat for the map.`,
		Example: `  weft ports examples/labels.yaml
  weft ports examples/labels.yaml --congested 100KB --from 1ms --to 2ms
  weft ports examples/labels.yaml --heat --svg heat.svg
  weft ports examples/labels.yaml --adaptive --silent -o json
  weft ports --server http://127.0.0.1:8080
  weft ports --port 'leaf0>spine1' --last 10s
  weft ports --heat --metric load_bps --last 1m --svg heat.svg`,
		Args: argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			asked, err := f.asked.wanted(cmd, strings.Join(args, ""), "congested", "silent", "window", "adaptive", "seed", "duration", "quiet")
			switch {
			case err != nil:
				return err
			case asked:
				return f.ask(a, cmd)
			}
			if err := serverOnly(cmd, f.asked.own()...); err != nil {
				return err
			}
			return f.run(a, cmd, args)
		},
	}
	f.add(cmd)
	fl := cmd.Flags()
	fl.DurationVar(&f.Window, "window", 0, "windows of coverage; 0 means twice the labelling interval")
	fl.StringVar(&f.congested, "congested", "", "ports whose queues were at least so deep, such as 100KB")
	fl.BoolVar(&f.heat, "heat", false, "a map of queue depth over ports and time")
	fl.StringVar(&f.svg, "svg", "", "with --heat: write the map to this file")
	fl.IntVar(&f.steps, "steps", 60, "with --heat: columns of the map")
	fl.BoolVar(&f.silent, "silent", false, "ports with traffic but no news in the last window")
	f.span.add(cmd)
	f.asked.add(cmd)
	return cmd
}

func (f *portsFlags) run(a *app, cmd *cobra.Command, args []string) error {
	from, until, err := f.span.ofRun()
	switch {
	case err != nil:
		return err
	case f.Window < 0:
		return usagef("--window %v, want 0 or more", f.Window)
	case f.steps < 1 || f.steps > 1000:
		return usagef("--steps %d, want 1 to 1000", f.steps)
	case f.svg != "" && !f.heat:
		return usagef("--svg is for --heat")
	}
	if err := checkWritable("svg", f.svg); err != nil {
		return err
	}
	var depth model.Bytes
	if f.congested != "" {
		if depth, err = model.ParseBytes(f.congested); err != nil {
			return usagef("--congested: %w", err)
		}
		if depth < 0 {
			return usagef("--congested %s, want 0 or more", f.congested)
		}
	}
	p, err := f.play(cmd, args)
	if err != nil {
		return err
	}
	to := cmp.Or(model.Time(until), p.Result.Run.End)
	v := newPortsView(p)
	if f.congested != "" {
		v.addCongested(p, model.Time(from), to, depth)
	}
	if f.heat {
		h := heatOf(p, model.Time(from), to, f.steps)
		v.addHeat(h)
		if f.svg != "" {
			if err := os.WriteFile(f.svg, []byte(h.SVG()), 0o666); err != nil {
				return err
			}
		}
	}
	if a.format == "json" {
		err = printJSON(cmd.OutOrStdout(), v)
	} else {
		err = f.print(cmd.OutOrStdout(), v)
	}
	if err == nil && f.silent && len(v.Silent) > 0 {
		return errFault
	}
	return err
}

// print shows what was asked for: the table of ports unless something else was.
func (f *portsFlags) print(w io.Writer, v *portsView) error {
	if f.congested == "" && !f.heat && !f.silent {
		if err := v.printPorts(w); err != nil {
			return err
		}
	}
	if f.congested != "" {
		if err := v.printCongested(w, f.congested); err != nil {
			return err
		}
	}
	if f.heat {
		if err := v.printHeat(w); err != nil {
			return err
		}
	}
	if f.silent {
		v.printSilent(w)
	}
	return v.printOverhead(w)
}

// heatOf is the board's heat map as a drawing.
func heatOf(p *ports.Played, from, to model.Time, steps int) plot.Heat {
	step := max(to.Sub(from)/time.Duration(steps), 1)
	h := p.Watch.Board().Heatmap(from, step, steps)
	out := plot.Heat{
		Title: "deepest queue that labels saw", XTitle: "time (µs)",
		Label: func(v float64) string { return model.Bytes(v).String() },
	}
	for i := range steps + 1 {
		out.X = append(out.X, float64(from.Add(time.Duration(i)*step))/1e3)
	}
	for i, port := range h.Ports {
		out.Rows = append(out.Rows, p.Fabric().LinkName(port))
		row := make([]float64, steps)
		for j, d := range h.Depth[i] {
			row[j] = float64(d)
		}
		out.Values = append(out.Values, row)
	}
	return out
}
