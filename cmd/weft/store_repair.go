package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/store/embedded"
)

func (a *app) storeCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Read all of a store file and report damage",
		Long: `Read all of a store file, with its write-ahead log, and report damage: every block
has a checksum. The file is not changed. The exit code is 3 if something is damaged.`,
		Args: argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			c, err := embedded.CheckFile(ctx, args[0])
			if err != nil {
				return storeFileError(err)
			}
			if a.format == "json" {
				err = printJSON(cmd.OutOrStdout(), c)
			} else {
				err = printCheck(cmd, c)
			}
			if err == nil && !c.Intact() {
				err = errFault
			}
			return err
		},
	}
}

func printCheck(cmd *cobra.Command, c *embedded.FileCheck) error {
	out := cmd.OutOrStdout()
	if c.Intact() {
		fmt.Fprintf(out, "%s is not damaged.\n\n", c.File)
	} else {
		fmt.Fprintf(out, "%s is damaged; weft store repair %s salvages what can be read.\n", c.File, c.File)
		if c.Damage != "" {
			fmt.Fprintln(out, c.Damage)
		}
		fmt.Fprintln(out)
	}
	if len(c.Tables) == 0 {
		return nil
	}
	var t table
	t.row("TABLE", "ROWS", "DAMAGED", "DAMAGE")
	for _, one := range c.Tables {
		damage := one.Damage
		if damage == "" {
			damage = "-"
		}
		t.row(one.Table, one.Rows, one.Damaged, damage)
	}
	return t.print(out)
}

func (a *app) storeRepairCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "repair FILE",
		Short: "Salvage what can be read of a damaged store file",
		Long: `Salvage what can be read of a damaged store file into a new one. The damaged file
is kept: it is renamed to FILE.damaged-TIME, and the new one takes its name; with
--to it stays, and the new file has another name.`,
		Example: `  weft store repair weft.duckdb
  weft store repair weft.duckdb --to salvaged.duckdb`,
		Args: argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if to == "" {
				to = args[0]
			} else if _, err := os.Lstat(to); err == nil {
				return usagef("--to %s exists, want a new file", to)
			}
			r, err := embedded.RepairFile(ctx, args[0], to, embedded.DefaultConfig())
			if err != nil {
				return storeFileError(err)
			}
			if a.format == "json" {
				return printJSON(cmd.OutOrStdout(), r)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d rows salvaged into %s, at most %d lost. The damaged file is %s.\n", r.Salvaged, to, r.Lost, r.File)
			if r.Problem != "" {
				fmt.Fprintln(cmd.OutOrStdout(), r.Problem)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "new file to write to (default: FILE, which is renamed)")
	return cmd
}

// storeFileError marks errors about the file that was given.
func storeFileError(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, embedded.ErrForeign) {
		return usageError{err}
	}
	return err
}
