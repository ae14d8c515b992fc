package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// knownValues has a flag refuse what is not one of its values before anything runs, and
// the shell complete them. Its default, which may be empty, is one of them too.
func knownValues(cmd *cobra.Command, flag string, values ...string) {
	f := cmd.Flags().Lookup(flag)
	f.Value = &oneOf{f.Value, f.DefValue, values}
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// oneOf is a flag that takes one of the values.
type oneOf struct {
	pflag.Value
	unset  string
	values []string
}

// Set sets the flag. flagError says what it takes.
func (o *oneOf) Set(v string) error {
	if v != o.unset && !slices.Contains(o.values, v) {
		return errors.New("want " + o.list())
	}
	return o.Value.Set(v)
}

// list returns the values as words: "a, b or c".
func (o *oneOf) list() string {
	if last := len(o.values) - 1; last > 0 {
		return strings.Join(o.values[:last], ", ") + " or " + o.values[last]
	}
	return o.values[0]
}
