package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/collect/bound"
	"github.com/weft-telemetry/weft/collect/postcard"
)

// pathView is the answer for one key of a Postcarding memory.
type pathView struct {
	Key     string    `json:"key"`
	Outcome string    `json:"outcome"`
	Hops    []*uint32 `json:"hops"` // null where a hop did not report
	Copies  int       `json:"copies"`
	bound.Bound
}

func (a *app) queryPostcardCommand() *cobra.Command {
	var q postcard.Query
	var values string
	cmd := &cobra.Command{
		Use:   "postcard FILE KEY…",
		Short: "Values along the path of keys (Postcarding)",
		Args:  argumentCount(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkCopies(q.Copies, 0); err != nil {
				return err
			}
			t, done, err := openMemory(args[0], postcard.View)
			if err != nil {
				return err
			}
			defer done()
			if values != "" {
				if q.Values, err = readValues(values, t.Config().Bits); err != nil {
					return usageError{err}
				}
			}
			var views []pathView
			for _, s := range args[1:] {
				key, err := parseKey(s)
				if err != nil {
					return err
				}
				got, err := t.Read(key, q)
				if err != nil {
					return usagef("key %q: %w", s, err)
				}
				v := pathView{s, got.Outcome.String(), []*uint32{}, got.Valid, got.Bound}
				for _, hop := range got.Hops {
					at := &hop
					if hop == postcard.Blank {
						at = nil
					}
					v.Hops = append(v.Hops, at)
				}
				views = append(views, v)
			}
			if a.format == "json" {
				return printJSON(cmd.OutOrStdout(), views)
			}
			var out table
			out.row("KEY", "OUTCOME", "HOPS", "COPIES", "EMPTY ≤", "WRONG ≤")
			for _, v := range views {
				var hops []string
				for _, h := range v.Hops {
					if h == nil {
						hops = append(hops, "-")
					} else {
						hops = append(hops, strconv.FormatUint(uint64(*h), 10))
					}
				}
				out.row(v.Key, v.Outcome, strings.Join(hops, " > "), v.Copies, formatProbability(v.Empty),
					formatProbability(v.Wrong))
			}
			return out.print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().IntVar(&q.Copies, "copies", 0, "copies per key that the reports asked for, 1 to 4; 0 if unknown")
	cmd.Flags().BoolVar(&q.Partial, "partial", false, "also accept paths with missing hops")
	cmd.Flags().StringVar(&values, "values", "", "file with all values a hop can report, one number per line")
	return cmd
}

// readValues reads the set of possible hop values from a file.
func readValues(path string, bits int) (*postcard.Values, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var values []uint32
	for i, field := range strings.Fields(string(text)) {
		v, err := strconv.ParseUint(field, 0, 32)
		if err != nil {
			return nil, fmt.Errorf("%s: value %d is %q, want a 32-bit number", path, i+1, field)
		}
		values = append(values, uint32(v))
	}
	return postcard.NewValues(bits, values...)
}
