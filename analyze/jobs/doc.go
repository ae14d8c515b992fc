// Package jobs finds the jobs of a fabric in its flow records, and says what each waits
// for: hosts that exchange data in steps, as distributed training does. It reads records
// alone. A job of a configuration is analysed alike.
//
// The mark of a job is that its flows carry the same bytes in every step, whatever time the
// steps take. Flows that do so together, and hosts that all send and receive, are one job.
// Manual: docs/jobs.md.
package jobs
