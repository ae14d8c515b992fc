package main

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/collect/bound"
	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/slothash"
)

// valueView is the answer for one key of a Key-Write memory.
type valueView struct {
	Key     string `json:"key"`
	Outcome string `json:"outcome"`
	Value   string `json:"value,omitempty"` // in hex
	Votes   int    `json:"votes"`
	bound.Bound
}

func (a *app) queryKeyWriteCommand() *cobra.Command {
	var q keywrite.Query
	cmd := &cobra.Command{
		Use:   "kw FILE KEY…",
		Short: "Newest value of keys (Key-Write)",
		Args:  argumentCount(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if q.Consensus < 0 || q.Consensus > slothash.MaxCopies {
				return usagef("--consensus %d, want 0 to %d", q.Consensus, slothash.MaxCopies)
			}
			if err := checkCopies(q.Copies, 0); err != nil {
				return err
			}
			t, done, err := openMemory(args[0], keywrite.View)
			if err != nil {
				return err
			}
			defer done()
			var views []valueView
			for _, s := range args[1:] {
				key, err := parseKey(s)
				if err != nil {
					return err
				}
				got, err := t.Read(key, q)
				if err != nil {
					return usagef("key %q: %w", s, err)
				}
				views = append(views, valueView{
					s, got.Outcome.String(), hex.EncodeToString(got.Value), got.Votes,
					got.Bound,
				})
			}
			if a.format == "json" {
				return printJSON(cmd.OutOrStdout(), views)
			}
			var out table
			out.row("KEY", "OUTCOME", "VALUE", "COPIES", "EMPTY ≤", "WRONG ≤")
			for _, v := range views {
				out.row(v.Key, v.Outcome, formatValue(v.Value), v.Votes, formatProbability(v.Empty),
					formatProbability(v.Wrong))
			}
			return out.print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().IntVar(&q.Copies, "copies", 0, "copies per key that the reports asked for, 1 to 4; 0 if unknown")
	cmd.Flags().IntVar(&q.Consensus, "consensus", 0,
		"number of equal copies that an answer needs; 0 means the plurality")
	return cmd
}

// formatValue formats bytes in hex, and up to eight of them also as a big-endian
// number.
func formatValue(digits string) string {
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) == 0 || len(b) > 8 {
		return digits
	}
	var word [8]byte
	copy(word[8-len(b):], b)
	return fmt.Sprintf("%s (%d)", digits, binary.BigEndian.Uint64(word[:]))
}
