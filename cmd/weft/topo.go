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
	return group(&cobra.Command{
		Use:   "topo",
		Short: "Generate, show, check and convert fabrics",
		Long: `Generate, show, check and convert fabrics.

A fabric is a file: Weft's own YAML or JSON, an HPCC simulator topology, or a
containerlab lab (.clab.yml). The format is told by name and content.`,
	}, a.topoGenCommand(), a.topoShowCommand(), a.topoCheckCommand(), a.topoConvertCommand())
}

func (a *app) topoGenCommand() *cobra.Command {
	var kinds []*cobra.Command
	for _, kind := range topo.Kinds() {
		kinds = append(kinds, a.topoKindCommand(kind))
	}
	return group(&cobra.Command{
		Use:   "gen KIND",
		Short: "Write a generated fabric to standard output",
		Example: `  weft topo gen fat-tree --k 4 > fabric.yaml
  weft topo gen leaf-spine --leaves 8 --spines 4 --rate 400Gb/s --host-rate 100Gb/s
  weft topo gen fat-tree --k 8 --to dot | dot -Tsvg > fabric.svg`,
	}, kinds...)
}

// topoKindCommand makes one generator a command; its parameters are flags.
func (a *app) topoKindCommand(kind topo.Kind) *cobra.Command {
	var to, name string
	params := map[string]*string{}
	cmd := &cobra.Command{
		Use:   kind.Name,
		Short: kind.About,
		Args:  arguments(0, 0),
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
		Short: "Write a fabric in another format",
		Long: `Write a fabric in another format, to standard output or to a file.

HPCC's format has no place for static routes: --routes writes them to a file of
their own, in lines "switch destination next_hop".`,
		Example: `  weft topo convert lab.clab.yml > fabric.yaml
  weft topo convert topology.txt --out fabric.json
  weft topo convert fabric.yaml --to dot | dot -Tsvg > fabric.svg`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out != "" && !cmd.Flags().Changed("to") {
				known, ok := file.FormatOf(out)
				if !ok {
					return usagef("--out %s: its name does not tell the format, want --to with it: %s", out, strings.Join(written, ", "))
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
	cmd.Flags().StringVar(&out, "out", "", "file to write; its name tells the format unless --to does")
	cmd.Flags().StringVar(&routes, "routes", "", "file for static routes in HPCC's manner")
	return cmd
}

// written lists the formats that can be written.
var written = []string{string(file.YAML), string(file.JSON), string(file.Dot), string(file.HPCC)}

func addToFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "to", "", "format: "+strings.Join(written, ", ")+" (default yaml, or json with -o json)")
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(written, cobra.ShellCompDirectiveNoFileComp))
}

// fileFormat reads --to. -o json asks for the same as --to json.
func (a *app) fileFormat(to string) (file.Format, error) {
	if to == "" && a.format == "json" {
		return file.JSON, nil
	}
	if to == "" {
		return file.YAML, nil
	}
	if !slices.Contains(written, to) {
		return "", usagef("--to %s, want one of %s", to, strings.Join(written, ", "))
	}
	return file.Format(to), nil
}

// writeFile writes a file as a whole: a failure leaves no half of one.
func writeFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".weft-*")
	if pe := (*os.PathError)(nil); errors.As(err, &pe) {
		pe.Path = path // nobody asked for the other one
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
