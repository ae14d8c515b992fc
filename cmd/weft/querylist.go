package main

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/collect/list"
)

// listView is entries of a list and the cursor behind them.
type listView struct {
	Head    uint64      `json:"head"`    // entries ever written
	First   uint64      `json:"first"`   // number of the first one shown
	Entries []string    `json:"entries"` // in hex
	Cursor  list.Cursor `json:"cursor"`
}

func (a *app) queryListCommand() *cobra.Command {
	var newest, from uint64
	limit := 100
	cmd := &cobra.Command{
		Use:   "list FILE LIST",
		Short: "Entries of a list (Append)",
		Long: `Print the entries of a list, oldest first, and the number of the next one. With
that number as --from, the next call goes on where this one ended, and tells how
many entries were overwritten in between.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, done, err := view(args[0], list.View)
			if err != nil {
				return err
			}
			defer done()
			id, err := strconv.ParseUint(args[1], 10, 32)
			if err != nil || id >= uint64(t.Lists()) {
				return usagef("list %q, want 0 to %d", args[1], t.Lists()-1)
			}
			c, err := t.Oldest(uint32(id))
			switch {
			case err != nil:
				return err
			case cmd.Flags().Changed("from"):
				c.Next = from
			case cmd.Flags().Changed("newest"):
				if c, err = t.Newest(uint32(id), newest); err != nil {
					return err
				}
			}
			raw, err := t.Read(nil, &c, limit)
			if err != nil {
				return usagef("list %d from %d: %w", id, c.Next, err)
			}
			class, err := t.Class(uint32(id))
			if err != nil {
				return err
			}
			v := listView{Entries: []string{}, Cursor: c}
			for e := range class.Entries(raw) {
				v.Entries = append(v.Entries, hex.EncodeToString(e))
			}
			v.First = c.Next - uint64(len(v.Entries))
			if v.Head, err = t.Head(uint32(id)); err != nil {
				return err
			}
			return a.printList(cmd, v)
		},
	}
	cmd.Flags().Uint64Var(&newest, "newest", 0, "only the newest so many entries")
	cmd.Flags().Uint64Var(&from, "from", 0, "the entry to begin with, counted from the list's first")
	cmd.Flags().IntVar(&limit, "limit", limit, "at most so many entries")
	cmd.MarkFlagsMutuallyExclusive("newest", "from")
	return cmd
}

func (a *app) printList(cmd *cobra.Command, v listView) error {
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), v)
	}
	var out table
	out.row("ENTRY", "DATA")
	for i, e := range v.Entries {
		out.row(v.First+uint64(i), value(e))
	}
	if err := out.print(cmd.OutOrStdout()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "\n%d of %d entries, %d overwritten before they were read; go on with --from %d\n",
		len(v.Entries), v.Head, v.Cursor.Lost, v.Cursor.Next)
	return err
}
