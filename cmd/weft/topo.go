package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
)

func (a *app) topoCommand() *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "topo",
		Short: "Generate, discover, show, check and convert topologies",
		Long: `Generate, discover, show, check and convert topologies.

A topology is a file: Weft YAML or JSON, an HPCC simulator topology, one of the
htsim simulators (.topo), or a containerlab lab (.clab.yml). The format is detected by name and content.`,
	}, a.topoGenCommand(), a.topoShowCommand(), a.topoCheckCommand(), a.topoConvertCommand(), a.topoDiscoverCommand())
}

func (a *app) topoGenCommand() *cobra.Command {
	var kinds []*cobra.Command
	for _, kind := range topo.Kinds() {
		kinds = append(kinds, a.topoKindCommand(kind))
	}
	return commandGroup(&cobra.Command{
		Use:   "gen KIND",
		Short: "Write a generated topology to standard output",
		Example: `  weft topo gen fat-tree --k 4 > fabric.yaml
  weft topo gen leaf-spine --leaves 8 --spines 4 --rate 400Gb/s --host-rate 100Gb/s
  weft topo gen fat-tree --k 8 --to dot | dot -Tsvg > fabric.svg`,
	}, kinds...)
}

// topoKindCommand is the command of one generator; its parameters are flags.
func (a *app) topoKindCommand(kind topo.Kind) *cobra.Command {
	var to, name string
	params := map[string]*string{}
	cmd := &cobra.Command{
		Use:   kind.Name,
		Short: kind.About,
		Args:  argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			format, err := a.fileFormat(to)
			if err != nil {
				return err
			}
			spec := topo.Spec{Kind: kind.Name, Name: name, Params: map[string]string{}}
			for p, v := range params {
				if cmd.Flags().Changed(p) {
					spec.Params[p] = *v
				}
			}
			f, err := topo.Generate(spec)
			var bad *topo.ParamError
			if errors.As(err, &bad) {
				return usageError{err}
			}
			if err != nil {
				return err
			}
			return file.Write(cmd.OutOrStdout(), format, &file.Document{Fabric: f})
		},
	}
	for _, p := range kind.Params {
		params[p.Name] = cmd.Flags().String(p.Name, p.Default, p.About)
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the fabric")
	addToFlag(cmd, &to)
	return cmd
}

func (a *app) topoConvertCommand() *cobra.Command {
	var to, out, routes string
	cmd := &cobra.Command{
		Use:   "convert FILE",
		Short: "Convert a topology to another format",
		Long: `Convert a topology to another format, to standard output or to a file.

The HPCC format cannot hold static routes: --routes writes them to a separate file
with lines "switch destination next_hop".`,
		Example: `  weft topo convert lab.clab.yml > fabric.yaml
  weft topo convert topology.txt --out fabric.json
  weft topo convert fabric.yaml --to dot | dot -Tsvg > fabric.svg`,
		Args: argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out != "" && !cmd.Flags().Changed("to") {
				known, ok := file.FormatByName(out)
				if !ok {
					return usagef("--out %s: unknown file name extension, add --to with one of %s", out,
						strings.Join(outputFormats, ", "))
				}
				to = string(known)
			}
			format, err := a.fileFormat(to)
			if err != nil {
				return err
			}
			doc, err := file.Read(args[0])
			if err != nil {
				return err
			}
			if routes != "" {
				if err := writeFile(routes, func(w io.Writer) error { return file.WriteHPCCRoutes(w, doc) }); err != nil {
					return err
				}
			}
			write := func(w io.Writer) error { return file.Write(w, format, doc) }
			if out == "" {
				return write(cmd.OutOrStdout())
			}
			return writeFile(out, write)
		},
	}
	addToFlag(cmd, &to)
	cmd.Flags().StringVar(&out, "out", "", "output file; its extension selects the format unless --to is given")
	cmd.Flags().StringVar(&routes, "routes", "", "output file for static routes in HPCC format")
	return cmd
}

// outputFormats are the formats that can be written.
var outputFormats = []string{string(file.YAML), string(file.JSON), string(file.Dot), string(file.HPCC)}

func addToFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "to", "", "format: "+strings.Join(outputFormats,
		", ")+" (default yaml, or json with -o json)")
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(outputFormats, cobra.ShellCompDirectiveNoFileComp))
}

// fileFormat parses --to. -o json means --to json.
func (a *app) fileFormat(to string) (file.Format, error) {
	if to == "" && a.format == "json" {
		return file.JSON, nil
	}
	if to == "" {
		return file.YAML, nil
	}
	if !slices.Contains(outputFormats, to) {
		return "", usagef("--to %s, want one of %s", to, strings.Join(outputFormats, ", "))
	}
	return file.Format(to), nil
}

// writeFile writes a file atomically: a failure leaves no partial file.
func writeFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".weft-*")
	if pe := (*os.PathError)(nil); errors.As(err, &pe) {
		pe.Path = path // the user knows this path, not the temporary one
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	if err := errors.Join(f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// readRoutes reads a topology file with the routes that it intends.
func readRoutes(path string) (*file.Document, *topo.Routes, error) {
	doc, err := file.Read(path)
	if err != nil {
		return nil, nil, err
	}
	routes, err := doc.Routes()
	return doc, routes, err
}
