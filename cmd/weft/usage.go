package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is a complaint about the command line that only the command
// itself could find.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// arguments is how many a command takes; most below 0: any number. The usage
// that is printed below the complaint names them.
func arguments(least, most int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return errors.New("an argument is missing")
		case most >= 0 && len(args) > most:
			return fmt.Errorf("argument %q is one too many", args[most])
		}
		return nil
	}
}

// group makes a command that only holds others: alone it prints its help, and
// a word it does not know is an error.
func group(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.Args = unknownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(subs...)
	return cmd
}

// unknownCommand takes the arguments of a command for ones that it does not have.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	meant := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		meant = ", want " + strings.Join(near, " or ")
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), meant)
}

// flagComplaint says of a flag's value what is wanted instead.
func flagComplaint(_ *cobra.Command, err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	want, ok := map[string]string{
		"bool":     "true or false",
		"duration": "a span of time such as 90s or 5ms",
		"float64":  "a number",
		"int":      "a whole number",
		"uint":     "a whole number from 0 on",
		"uint8":    "a whole number from 0 to 255",
		"uint16":   "a whole number from 0 to 65535",
		"uint32":   "a whole number from 0 to 4294967295",
		"uint64":   "a whole number from 0 on",
	}[bad.GetFlag().Value.Type()]
	if !ok {
		return err
	}
	return fmt.Errorf("--%s %q, want %s", bad.GetFlag().Name, bad.GetValue(), want)
}

// hint is where to read more after a complaint about cmd's command line.
func hint(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return "Run 'weft help' for the commands, or add --help to one of them."
	}
	return fmt.Sprintf("Usage: %s\nRun '%s --help' for more.", cmd.UseLine(), cmd.CommandPath())
}
