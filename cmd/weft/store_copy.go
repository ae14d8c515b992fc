package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/clickhouse"
	"github.com/weft-telemetry/weft/store/embedded"
	"github.com/weft-telemetry/weft/store/transfer"
)

// storePassword is where commands find the password of ClickHouse, as weft serve does.
const storePassword = "WEFT_STORE_PASSWORD"

func (a *app) storeCopyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "copy FROM TO",
		Short: "Copy all records of a store into an empty one",
		Long: `Copy all records of a store into an empty one. Each is a DuckDB file or the address of
a database in ClickHouse. Retention does not apply: every record is copied. Stop the
service that writes to FROM: what it adds meanwhile may be missing.

The password of ClickHouse is in the environment, as WEFT_STORE_PASSWORD.`,
		Example: `  weft store copy weft.duckdb clickhouse://weft@db1:9000/weft
  weft store copy clickhouse://weft@db1:9000/weft weft.duckdb`,
		Args: argumentCount(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if !clickhouse.IsURL(args[0]) {
				if _, err := os.Stat(args[0]); err != nil {
					return usageError{err} // to open it would create it
				}
			}
			from, err := openAnyStore(ctx, args[0])
			if err != nil {
				return err
			}
			to, err := openAnyStore(ctx, args[1])
			if err != nil {
				return errors.Join(err, from.Close())
			}
			copied, err := transfer.Copy(ctx, from, to)
			if err = errors.Join(err, to.Close(), from.Close()); errors.Is(err, transfer.ErrNotEmpty) {
				return usagef("%s: %v", args[1], err)
			} else if err != nil {
				return err
			}
			if a.format == "json" {
				return printJSON(cmd.OutOrStdout(), copied)
			}
			var t table
			t.row("KIND", "COPIED")
			for _, kind := range store.Kinds() {
				t.row(kind, copied[kind])
			}
			return t.print(cmd.OutOrStdout())
		},
	}
}

// anyStore is a store of any engine.
type anyStore interface {
	serviceStore
	transfer.Target
}

// openAnyStore opens a DuckDB file, or a database by its address.
func openAnyStore(ctx context.Context, name string) (anyStore, error) {
	if clickhouse.IsURL(name) {
		c, err := clickHouseConfig(name, os.Getenv(storePassword))
		if err != nil {
			return nil, err
		}
		return clickhouse.Open(ctx, c)
	}
	c := embedded.DefaultConfig()
	s, err := embedded.Open(name, c)
	if errors.Is(err, embedded.ErrForeign) {
		return nil, usageError{err}
	}
	return s, err
}
