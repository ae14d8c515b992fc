package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/internal/fileerror"
)

// Environment variables that name the controller to query. Those of weft serve
// come from its settings.
const (
	serverVariable = "WEFT_SERVER"
	tokenVariable  = "WEFT_TOKEN"
)

// warnUnknownVariables warns about WEFT_ variables that no command reads: a
// misspelled one would otherwise be ignored silently.
func warnUnknownVariables(w io.Writer, environ []string) {
	known := []string{serverVariable, tokenVariable}
	for _, s := range serve.Settings() {
		known = append(known, s.Env())
	}
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "WEFT_") || slices.Contains(known, name) {
			continue
		}
		near := slices.MinFunc(known, func(a, b string) int {
			return fileerror.EditDistance(name,
				a) - fileerror.EditDistance(name, b)
		})
		fmt.Fprintf(w, "weft: warning: environment variable %s is unknown and ignored; did you mean %s?\n", name, near)
	}
}
