package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/ingest/gnmi"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/discover"
	"github.com/weft-telemetry/weft/topo/file"
)

// discoverFlags are the flags of weft topo discover.
type discoverFlags struct {
	gnmi    *gnmi.Config
	to      string
	name    string
	rate    string
	delay   time.Duration
	timeout time.Duration
}

func (a *app) topoDiscoverCommand() *cobra.Command {
	f := discoverFlags{gnmi: gnmi.Source.NewConfig().(*gnmi.Config)}
	cmd := &cobra.Command{
		Use:   "discover [NODE.json …]",
		Short: "Write the topology that switches describe by LLDP",
		Long: `Ask switches for their ports, speeds and LLDP neighbours, and write the topology that
they describe. --gnmi asks gNMI targets (SONiC's tables or OpenConfig). Files have the output
of "lldpcli -f json0 show neighbors details" of one node each, by which they are named.
Nodes that were not asked are part of it by what their neighbours say.

What does not fit together goes to standard error: links that one end alone reports, ends
that contradict each other, different speeds. The exit code is 3 then.`,
		Example: `  weft topo discover --gnmi tor0=10.0.0.11:8080,spine0=10.0.0.21:8080 --ca ca.pem > fabric.yaml
  weft topo discover tor0.json spine0.json --rate 100Gb/s
  weft topo discover --gnmi leaf0=10.0.0.31:6030 --model openconfig --tls skip-verify --to dot | dot -Tsvg > fabric.svg`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, args) },
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.gnmi.Targets, "gnmi", nil, "gNMI targets to ask: NAME=ADDRESS:PORT,…")
	fl.StringVar(&f.gnmi.Model, "model", f.gnmi.Model, "what targets have: sonic or openconfig")
	fl.StringVar(&f.gnmi.TLS, "tls", f.gnmi.TLS, "verify, skip-verify or off")
	fl.StringVar(&f.gnmi.CA, "ca", "", "file with the certificates that targets are verified by; empty: the system's")
	fl.StringVar(&f.gnmi.Cert, "cert", "", "file with the client's certificate")
	fl.StringVar(&f.gnmi.Key, "key", "", "file with the client's key")
	fl.StringVar(&f.gnmi.Username, "username", "", "user at the targets")
	fl.StringVar(&f.gnmi.PasswordFile, "password-file", "", "file with the user's password")
	fl.DurationVar(&f.timeout, "timeout", 30*time.Second, "time for the answers of all targets")
	fl.StringVar(&f.name, "name", "discovered", "name of the fabric")
	fl.StringVar(&f.rate, "rate", "100Gb/s", "rate of links whose ends do not say it")
	fl.DurationVar(&f.delay, "delay", time.Microsecond, "delay of links")
	knownValues(cmd, "model", "sonic", gnmi.OpenConfig)
	knownValues(cmd, "tls", gnmi.TLSVerify, gnmi.TLSSkip, gnmi.TLSOff)
	addToFlag(cmd, &f.to)
	return cmd
}

func (f *discoverFlags) run(a *app, cmd *cobra.Command, files []string) error {
	format, err := a.fileFormat(f.to)
	if err != nil {
		return err
	}
	if len(files)+len(f.gnmi.Targets) == 0 {
		return usagef("nothing to ask: want --gnmi NAME=ADDRESS:PORT,… or files of lldpcli")
	}
	rate, err := model.ParseRate(f.rate)
	if err != nil {
		return usageError{fmt.Errorf("--rate: %w", err)}
	}
	var nodes []discover.Node
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return usageError{err}
		}
		n, err := discover.ParseLLDPD(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), text)
		if err != nil {
			return usageError{fmt.Errorf("%s: %w", path, err)}
		}
		nodes = append(nodes, n)
	}
	if len(f.gnmi.Targets) > 0 {
		ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
		defer cancel()
		asked, err := f.gnmi.Discover(ctx)
		if err != nil {
			return err
		}
		nodes = append(nodes, asked...)
	}
	fabric, findings, err := discover.Build(discover.Config{Name: f.name, Link: topo.LinkSpec{Rate: rate, Delay: f.delay}}, nodes)
	for _, text := range findings {
		fmt.Fprintln(cmd.ErrOrStderr(), text)
	}
	if err != nil {
		return err
	}
	if err := file.Write(cmd.OutOrStdout(), format, &file.Document{Fabric: fabric}); err != nil {
		return err
	}
	if len(findings) > 0 {
		return errFault
	}
	return nil
}
