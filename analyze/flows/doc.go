// Package flows turns the flowsets of many switches into flow records: it puts
// chunks together, decodes each flowset by itself, then with its neighbours'
// help, and grades every answer. What the records mean (paths, loops, losses)
// is for the packages beside it to say.
// Origin: docs/papers.md#flowradar. Layout: docs/formats/flowset.md.
package flows
