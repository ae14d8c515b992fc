package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/collect/count"
)

// sumView is the answer for one key of a Key-Increment memory.
type sumView struct {
	Key string `json:"key"`
	Sum uint64 `json:"sum"`
	count.Bound
}

func (a *app) queryCountCommand() *cobra.Command {
	copies := 2
	cmd := &cobra.Command{
		Use:   "count FILE KEY…",
		Short: "Sum of keys (Key-Increment)",
		Long: `Print the sum of each key. It is never below the true sum unless something was
subtracted; other keys in the same cells can make it larger (EXCESS).`,
		Args: argumentCount(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkCopies(copies, 1); err != nil {
				return err
			}
			t, done, err := openMemory(args[0], count.View)
			if err != nil {
				return err
			}
			defer done()
			var views []sumView
			for _, s := range args[1:] {
				key, err := parseKey(s)
				if err != nil {
					return err
				}
				got, err := t.Read(key, copies)
				if err != nil {
					return usagef("key %q: %w", s, err)
				}
				views = append(views, sumView{s, got.Sum, got.Bound})
			}
			if a.format == "json" {
				return printJSON(cmd.OutOrStdout(), views)
			}
			var out table
			out.row("KEY", "SUM", "EXCESS")
			for _, v := range views {
				out.row(v.Key, v.Sum, fmt.Sprintf("≤ %.3g, except with probability %s", v.Excess,
					formatProbability(v.Failing)))
			}
			return out.print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().IntVar(&copies, "copies", copies, "copies per key that the reports asked for, 1 to 4")
	return cmd
}
