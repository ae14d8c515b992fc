package main

import (
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/scenario/tour"
)

func (a *app) demoCommand() *cobra.Command {
	cfg := tour.DefaultConfig()
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Tour the system end to end on a small idle fabric",
		Long: `Tour the system end to end on a small idle fabric. No configuration, no root.

Real packets walk through a fat-tree by its switches' forwarding tables. Every
switch labels them and reports over DTA through a UDP socket on 127.0.0.1. One
switch is broken on purpose; the reports and the intended routes alone must say
which. The exit code is 0 if they do, 1 if they do not.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if cfg.K < 4 || cfg.K > 16 || cfg.K%2 != 0 {
				return usagef("--k %d, want an even number from 4 to 16", cfg.K)
			}
			if cfg.Flows < 1 || cfg.Flows > 1_000_000 {
				return usagef("--flows %d, want 1 to 1000000", cfg.Flows)
			}
			r, err := tour.Run(ctx, cfg)
			if err != nil {
				return err
			}
			if a.format == "json" {
				err = printJSON(cmd.OutOrStdout(), r)
			} else {
				err = printTour(cmd.OutOrStdout(), r, cfg.Seed)
			}
			if err == nil && !r.Right() {
				err = errMissed
			}
			return err
		},
	}
	cmd.Flags().IntVar(&cfg.K, "k", cfg.K, "size of the fat-tree")
	cmd.Flags().IntVar(&cfg.Flows, "flows", cfg.Flows, "packets to send, one per flow")
	cmd.Flags().Uint64Var(&cfg.Seed, "seed", cfg.Seed, "decides flows, routes and the fault; the same seed replays")
	cmd.Flags().StringVar(&cfg.Pcap, "pcap", "", "write every frame to this pcapng file")
	return cmd
}

func printTour(w io.Writer, r *tour.Report, seed uint64) error {
	fmt.Fprintf(w, "Fabric    %s: %d hosts, %d switches, %d links, seed %d\n", r.Fabric, r.Hosts, r.Switches, r.Links, seed)
	fmt.Fprintf(w, "Packets   %d sent, %d delivered, of these %d restored bit for bit after %d labels\n", r.Sent, r.Delivered, r.Identical, r.Labels)
	t := r.Transport
	fmt.Fprintf(w, "Reports   %d in %d datagrams (%d bytes) over UDP, %d lost, %d malformed\n\n", t.Reports, t.Datagrams, t.Bytes, t.Lost, t.Malformed)
	fmt.Fprintf(w, "One packet's way, as its labels tell it: %v\n\n", r.Sample.Flow)
	var hops table
	hops.row("HOP", "IN", "OUT", "LABEL TIME", "SINCE LAST HOP")
	for i, h := range r.Sample.Hops {
		since := "-"
		if i > 0 {
			since = h.Link.String()
		}
		hops.row(i+1, h.In, h.Out, h.At, since)
	}
	if err := hops.print(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nBroken    %s drops packets to %s\n", r.Injected.Switch, r.Injected.Host)
	switch {
	case t.Lost+t.Malformed > 0:
		fmt.Fprintln(w, "Found     no verdict: reports are missing, so where packets end is not known")
	case len(r.Found) == 0:
		fmt.Fprintln(w, "Found     nothing")
	}
	for _, f := range r.Found {
		fmt.Fprintf(w, "Found     packets to %s end at %s, which is not where the routes end\n", f.Host, f.Switch)
	}
	verdict := "right: the reports name the broken switch and nothing else"
	if !r.Right() {
		verdict = "WRONG"
	}
	fmt.Fprintf(w, "Verdict   %s\n", verdict)
	if r.Pcap != "" {
		fmt.Fprintf(w, "Capture   %d frames in %s; 'weft wireshark > weft.lua', then: wireshark -X lua_script:weft.lua %s\n", r.Frames, r.Pcap, r.Pcap)
	} else {
		fmt.Fprintln(w, "\nNext: weft demo --seed 2, weft demo --pcap tour.pcapng, weft topo gen fat-tree --k 4, weft help")
	}
	return nil
}
