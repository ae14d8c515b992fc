package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/internal/complaint"
)

// Variables that say which controller is asked. Those of weft serve are its
// settings.
const (
	serverVariable = "WEFT_SERVER"
	tokenVariable  = "WEFT_TOKEN"
)

// warnOfVariables tells of variables that are called as Weft's are and that it
// does not know: somebody believes that they say something.
func warnOfVariables(w io.Writer, environ []string) {
	known := []string{serverVariable, tokenVariable}
	for _, s := range serve.Settings() {
		known = append(known, s.Env())
	}
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "WEFT_") || slices.Contains(known, name) {
			continue
		}
		near := slices.MinFunc(known, func(a, b string) int { return complaint.Distance(name, a) - complaint.Distance(name, b) })
		fmt.Fprintf(w, "weft: variable %s is not known and not read, want one such as %s\n", name, near)
	}
}
