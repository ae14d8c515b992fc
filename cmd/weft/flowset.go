package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	wire "github.com/weft-telemetry/weft/wire/flowset"
)

func (a *app) flowsetCommand() *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "flowset",
		Short: "Size flowset tables",
	}, a.flowsetPlanCommand())
}

func (a *app) flowsetPlanCommand() *cobra.Command {
	var (
		flows  int
		target float64
		net    bool
		slot   time.Duration
	)
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Compute filter and table sizes for a number of flows",
		Long: `Compute the sizes of a flowset's filter and table, so that all flows of a slot are
decoded in a given share of the slots. With --net neighbouring switches are decoded
jointly, which takes fewer cells.`,
		Example: `  weft flowset plan --flows 100000
  weft flowset plan --flows 100000 --target 0.999 --net -o json`,
		Args: argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if slot <= 0 {
				return usagef("--slot %v, want more than 0", slot)
			}
			mode := flowset.Single
			if net {
				mode = flowset.Net
			}
			s, err := flowset.Plan(flows, target, mode)
			if err != nil {
				return usageError{err}
			}
			v := newPlanView(&s, slot)
			if a.format == "json" {
				return printJSON(cmd.OutOrStdout(), v)
			}
			return v.print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().IntVar(&flows, "flows", 100_000, "number of flows per slot and address family")
	cmd.Flags().Float64Var(&target, "target", 0.99, "share of slots in which all flows must be decoded, at most 0.999")
	cmd.Flags().BoolVar(&net, "net", false, "decode neighbouring switches jointly")
	cmd.Flags().DurationVar(&slot, "slot", 10*time.Millisecond, "slot length, for the export rate")
	return cmd
}

// planView is a flowset sizing with its memory for each cell layout.
type planView struct {
	Flows  int     `json:"flows"`
	Target float64 `json:"target"`
	Mode   string  `json:"mode"`
	Slot   string  `json:"slot"`
	Filter struct {
		Hashes          uint8   `json:"hashes"`
		Bits            uint32  `json:"bits"`
		BitsPerFlow     float64 `json:"bits_per_flow"`
		NoFalsePositive float64 `json:"no_false_positive"`
		ScatteredHashes int     `json:"scattered_hashes"`
		ScatteredBits   uint64  `json:"scattered_bits"`
	} `json:"filter"`
	Table struct {
		Tables       uint8   `json:"tables"`
		TableCells   uint32  `json:"cells_per_table"`
		Cells        int     `json:"cells"`
		CellsPerFlow float64 `json:"cells_per_flow"`
	} `json:"table"`
	Layouts []layoutView `json:"layouts"`
}

type layoutView struct {
	Name   string      `json:"name"`
	Cell   int         `json:"cell_bytes"`
	Memory model.Bytes `json:"memory_bytes"`
	Export float64     `json:"export_gbps"` // of one table per slot, without headers
}

func newPlanView(s *flowset.Sizing, slot time.Duration) *planView {
	v := &planView{Flows: s.Flows, Target: s.Target, Mode: s.Mode.String(), Slot: slot.String()}
	f := &v.Filter
	f.Hashes, f.Bits, f.BitsPerFlow = s.FilterHashes, s.FilterBits, float64(s.FilterBits)/float64(s.Flows)
	f.NoFalsePositive, f.ScatteredHashes, f.ScatteredBits = s.NoFalsePositive, s.ScatteredHashes, s.ScatteredBits
	t := &v.Table
	t.Tables, t.TableCells, t.Cells, t.CellsPerFlow = s.Tables, s.TableCells, s.Cells(), s.CellsPerFlow
	for _, l := range []struct {
		name   string
		layout wire.Layout
	}{
		{"paper: key, flows, packets", flowset.PaperLayout},
		{"IPv4, narrow: with ports", flowset.NarrowLayout4},
		{"IPv6, narrow: with ports", flowset.NarrowLayout6},
		{"IPv4 with bytes and ports", flowset.Layout4},
		{"IPv6 with bytes and ports", flowset.Layout6},
	} {
		m := s.Memory(l.layout)
		v.Layouts = append(v.Layouts, layoutView{l.name, l.layout.Size(), m, float64(m) * 8 / slot.Seconds() / 1e9})
	}
	return v
}

func (v *planView) print(w io.Writer) error {
	how := "each flowset on its own"
	if v.Mode == flowset.Net.String() {
		how = "neighbouring switches jointly"
	}
	fmt.Fprintf(w, "%s per slot of %s, all decoded in %g %% of slots, %s\n\n", plural.Count(v.Flows, "flow"), v.Slot,
		v.Target*100, how)
	f, t := &v.Filter, &v.Table
	fmt.Fprintf(w, "filter  k_f = %d, m_f = %d bits: %.1f per flow, no false positive in %.2f %% of slots\n",
		f.Hashes, f.Bits, f.BitsPerFlow, f.NoFalsePositive*100)
	fmt.Fprintf(w, "        (k_f = %d, m_f = %d with bits spread over all words, as in the paper)\n",
		f.ScatteredHashes, f.ScatteredBits)
	fmt.Fprintf(w, "table   k_c = %d, m_c = %d cells: %.3f per flow, %d in each sub-table\n\n", t.Tables, t.Cells,
		t.CellsPerFlow, t.TableCells)
	var tab table
	tab.row("CELL LAYOUT", "CELL", "MEMORY", "EXPORT")
	for _, l := range v.Layouts {
		tab.row(l.Name, fmt.Sprintf("%d B", l.Cell), figure(float64(l.Memory)/1e6, "MB"), figure(l.Export, "Gb/s"))
	}
	return tab.print(w)
}
