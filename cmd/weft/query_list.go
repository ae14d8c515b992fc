package main

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
)

// listView is entries of a list and the cursor after them.
type listView struct {
	Head    uint64      `json:"head"`    // entries ever written
	First   uint64      `json:"first"`   // number of the first one shown
	Entries []string    `json:"entries"` // in hex
	Cursor  list.Cursor `json:"cursor"`
	Paths   []slowPath  `json:"paths,omitempty"` // the decoded entries, with --slow-paths or --heavy-keys
}

// slowPath is a result of weft collect --slow-paths, or without hops of --heavy-keys.
type slowPath struct {
	Key  string   `json:"key"`
	Sum  uint64   `json:"sum"`
	Hops []uint32 `json:"hops,omitempty"`
}

func newSlowPath(entry []byte) (slowPath, error) {
	m, err := translate.ParseMatch(entry)
	if err != nil {
		return slowPath{}, err
	}
	p := slowPath{Sum: m.Sum, Hops: m.Path, Key: "0x" + hex.EncodeToString(m.Key)}
	var k model.FlowKey
	if k.Parse(m.Key) == nil {
		p.Key = k.String()
	} else if a, ok := netip.AddrFromSlice(m.Key); ok {
		p.Key = a.String()
	}
	return p, nil
}

func (a *app) queryListCommand() *cobra.Command {
	var newest, from uint64
	var slow, heavy bool
	limit := 100
	cmd := &cobra.Command{
		Use:   "list FILE LIST",
		Short: "Entries of a list (Append)",
		Long: `Print the entries of a list, oldest first, and the number of the next entry. Pass
that number as --from to continue; the next call also reports how many entries were
overwritten in between.`,
		Args: argumentCount(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return usagef("--limit %d, want at least 1", limit)
			}
			t, done, err := openMemory(args[0], list.View)
			if err != nil {
				return err
			}
			defer done()
			id, err := strconv.ParseUint(args[1], 10, 32)
			if err != nil || id >= uint64(t.Lists()) {
				return usagef("list %q, want 0 to %d", args[1], t.Lists()-1)
			}
			c, err := t.CursorAtOldest(uint32(id))
			switch {
			case err != nil:
				return err
			case cmd.Flags().Changed("from"):
				c.Next = from
			case cmd.Flags().Changed("newest"):
				if c, err = t.CursorBeforeNewest(uint32(id), newest); err != nil {
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
				if !slow && !heavy {
					continue
				}
				p, err := newSlowPath(e)
				if err != nil {
					return usagef("list %d: %w; want the list of weft collect --slow-paths or --heavy-keys", id, err)
				}
				v.Paths = append(v.Paths, p)
			}
			v.First = c.Next - uint64(len(v.Entries))
			if v.Head, err = t.Head(uint32(id)); err != nil {
				return err
			}
			return a.printList(cmd, v)
		},
	}
	cmd.Flags().Uint64Var(&newest, "newest", 0, "show only the N newest entries")
	cmd.Flags().Uint64Var(&from, "from", 0, "number of the first entry to show, counted from the list's first")
	cmd.Flags().IntVar(&limit, "limit", limit, "maximum number of entries")
	cmd.Flags().BoolVar(&slow, "slow-paths", false, "decode results of weft collect --slow-paths: key, sum and hops")
	cmd.Flags().BoolVar(&heavy, "heavy-keys", false, "decode results of weft collect --heavy-keys: key and sum")
	cmd.MarkFlagsMutuallyExclusive("newest", "from")
	cmd.MarkFlagsMutuallyExclusive("slow-paths", "heavy-keys")
	return cmd
}

func (a *app) printList(cmd *cobra.Command, v listView) error {
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), v)
	}
	var out table
	if v.Paths == nil {
		out.row("ENTRY", "DATA")
		for i, e := range v.Entries {
			out.row(v.First+uint64(i), formatValue(e))
		}
	} else {
		out.row("ENTRY", "KEY", "SUM", "HOPS")
		for i, p := range v.Paths {
			out.row(v.First+uint64(i), p.Key, p.Sum, strings.Trim(strings.ReplaceAll(fmt.Sprint(p.Hops), " ", " > "),
				"[]"))
		}
	}
	if err := out.print(cmd.OutOrStdout()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(),
		"\n%d of %d entries, %d overwritten before they were read; continue with --from %d\n",
		len(v.Entries), v.Head, v.Cursor.Lost, v.Cursor.Next)
	return err
}
