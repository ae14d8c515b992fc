// Package rootcause answers hosts that complain about a flow: it gathers what
// switches tell of it, waits for what is late, has the graph diagnosed, looks
// again before it calls a deadlock standing, and remembers what comes again and
// again. The matching is analyze/diagnose's; who sends polls is the hosts'
// business. For people: docs/diagnosis.md.
package rootcause
