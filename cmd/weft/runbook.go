package main

import (
	"fmt"
	"io"

	"github.com/weft-telemetry/weft/control/api"
)

// printRunbook prints what to do about an incident, with the commands of each system.
func printRunbook(out io.Writer, steps []api.RunbookStep) error {
	if len(steps) == 0 {
		return nil
	}
	fmt.Fprintln(out, "\nrunbook")
	for i := range steps {
		s := &steps[i]
		changes := ""
		if s.Changes {
			changes = ", changes it"
		}
		fmt.Fprintf(out, "%d. %s (on %s%s)\n", i+1, s.Text, s.Node, changes)
		for _, c := range s.Commands {
			system := c.System
			for _, line := range c.Lines {
				if _, err := fmt.Fprintf(out, "   %-8s %s\n", system, line); err != nil {
					return err
				}
				system = ""
			}
		}
	}
	return nil
}
