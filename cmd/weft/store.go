package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/embedded"
)

func (a *app) storeCommand() *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "store",
		Short: "Inspect, check, repair, export and copy a store",
		Long: `Inspect, check, repair, export and copy a store.

Only one process can open a file: stop the one that writes it, or query its API.
A file of an older schema version is upgraded.`,
	}, a.storeInfoCommand(), a.storeCheckCommand(), a.storeRepairCommand(), a.storeExportCommand(), a.storeCopyCommand())
}

func (a *app) storeInfoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "info FILE",
		Short: "Show what a store file holds",
		Args:  argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(args[0], func(s *embedded.Store) error {
				info, err := s.Info(cmd.Context())
				if err != nil {
					return err
				}
				if a.format == "json" {
					return printJSON(cmd.OutOrStdout(), info)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "schema %d, %s of data in a file of %s\n\n", info.Schema,
					model.FormatBytes(info.Size), model.FormatBytes(info.File))
				var t table
				t.row("KIND", "ROWS", "OLDEST", "NEWEST")
				for _, k := range info.Kinds {
					if k.Rows == 0 {
						t.row(k.Kind, 0, "-", "-")
						continue
					}
					t.row(k.Kind, k.Rows, k.Oldest.Format(time.RFC3339Nano), k.Newest.Format(time.RFC3339Nano))
				}
				return t.print(cmd.OutOrStdout())
			})
		},
	}
}

func (a *app) storeExportCommand() *cobra.Command {
	var out, from, to string
	var kinds []string
	cmd := &cobra.Command{
		Use:   "export FILE --out DIR",
		Short: "Write a store file's tables as Parquet",
		Example: `  weft store export weft.duckdb --out tables
  weft store export weft.duckdb --out tables --kind flows,losses --from 2026-03-01T12:00:00Z --to 2026-03-01T13:00:00Z`,
		Args: argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if out == "" {
				return usagef("--out is missing, want a directory")
			}
			begin, err := instant("--from", from)
			if err != nil {
				return err
			}
			end, err := instant("--to", to)
			if err != nil {
				return err
			}
			if !end.IsZero() && !begin.Before(end) {
				return usagef("--from %s and --to %s, want --from before --to", from, to)
			}
			chosen := store.Kinds()
			if len(kinds) > 0 {
				chosen = nil
			}
			for _, name := range kinds {
				kind, err := store.ParseKind(name)
				if err != nil {
					return usageError{err}
				}
				chosen = append(chosen, kind)
			}
			return withStore(args[0], func(s *embedded.Store) error {
				return a.export(ctx, cmd, s, out, chosen, begin, end)
			})
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "directory to write KIND.parquet to")
	cmd.Flags().StringSliceVar(&kinds, "kind", nil, "tables to export (default all)")
	cmd.Flags().StringVar(&from, "from", "", "start of the range, RFC 3339 (default: the oldest record)")
	cmd.Flags().StringVar(&to, "to", "", "end of the range (exclusive), RFC 3339 (default: the newest record)")
	return cmd
}

func (a *app) export(ctx context.Context, cmd *cobra.Command, s *embedded.Store, dir string, kinds []store.Kind, begin, end time.Time) error {
	rows := map[store.Kind]uint64{}
	var t table
	t.row("KIND", "ROWS")
	for _, kind := range kinds {
		n, err := s.Export(ctx, dir, kind, begin, end)
		if err != nil {
			return err
		}
		rows[kind] = n
		t.row(kind, n)
	}
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), rows)
	}
	return t.print(cmd.OutOrStdout())
}

// instant parses the time of a flag; empty is the zero time.
func instant(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, usagef("%s %s, want a time such as 2026-03-01T12:00:00Z", flag, text)
	}
	return at, nil
}

// withStore opens an existing file, calls do, and closes it.
func withStore(path string, do func(*embedded.Store) error) error {
	if _, err := os.Stat(path); err != nil {
		return usageError{err} // Open would create it
	}
	s, err := embedded.Open(path, embedded.DefaultConfig())
	if errors.Is(err, embedded.ErrForeign) {
		return usageError{err}
	} else if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}
