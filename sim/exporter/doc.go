// Package exporter makes a simulated switch count what switches on sale count:
// totals of every port, watermarks of queues and priority groups, one of N
// packets, and every packet that the switch dropped and knows of. Its records are
// those of model/portstat, as any source of a real switch makes them.
package exporter
