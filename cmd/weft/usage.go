package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is an error in the command line that only the command itself can
// detect.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// argumentCount checks the number of arguments; a negative maxArgs means no
// limit. The usage line printed below the error names the arguments.
func argumentCount(minArgs, maxArgs int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < minArgs:
			return errors.New("missing argument")
		case maxArgs >= 0 && len(args) > maxArgs:
			return fmt.Errorf("unexpected argument %q", args[maxArgs])
		}
		return nil
	}
}

// commandGroup makes cmd a parent of subcommands: alone it prints its help, and
// an unknown subcommand is an error.
func commandGroup(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.Args = unknownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(subs...)
	return cmd
}

// unknownCommand rejects arguments of a command that has only subcommands.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	suggestion := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		suggestion = ", want " + strings.Join(near, " or ")
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), suggestion)
}

// flagError replaces pflag's parse error by one that says which value the flag
// takes.
func flagError(_ *cobra.Command, err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	if o, ok := bad.GetFlag().Value.(*oneOf); ok {
		return fmt.Errorf("--%s %q, want %s", bad.GetFlag().Name, bad.GetValue(), o.list())
	}
	want, ok := map[string]string{
		"bool":     "true or false",
		"duration": "a duration such as 90s or 5ms",
		"float64":  "a number",
		"int":      "a whole number",
		"uint":     "a whole number of at least 0",
		"uint8":    "a whole number from 0 to 255",
		"uint16":   "a whole number from 0 to 65535",
		"uint32":   "a whole number from 0 to 4294967295",
		"uint64":   "a whole number of at least 0",
	}[bad.GetFlag().Value.Type()]
	if !ok {
		return err
	}
	return fmt.Errorf("--%s %q, want %s", bad.GetFlag().Name, bad.GetValue(), want)
}

// hint returns the lines printed after an error in cmd's command line.
func hint(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return "Run 'weft help' for the list of commands, or 'weft COMMAND --help' for one of them."
	}
	return fmt.Sprintf("Usage: %s\nRun '%s --help' for more.", cmd.UseLine(), cmd.CommandPath())
}
