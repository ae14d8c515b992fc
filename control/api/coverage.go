package api

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/control/flowreduce"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// Coverage says what of a range is stored, and so is in an answer.
type Coverage struct {
	KeptFrom *time.Time    `json:"kept_from,omitempty" doc:"First stored slot of any flow; absent if none is stored"`
	KeptTo   *time.Time    `json:"kept_to,omitempty" doc:"Last stored slot"`
	Complete bool          `json:"complete" doc:"Nothing is known to be missing"`
	Missing  []CoverageGap `json:"missing" doc:"What is not in the answer"`
	Text     string        `json:"text" doc:"All of it in one line"`
}

// CoverageGap is a part of a range that is not in an answer.
type CoverageGap struct {
	Reason  string    `json:"reason" enum:"not-stored,reduced" doc:"not-stored: no record is from this part, as it is older than the first one; reduced: flows beyond those that are stored of a slot (controller.keep_flows), which are in the counters of reduced flows"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Flows   uint64    `json:"flows,omitempty" doc:"Of reduced flows: the most in one slot"`
	Packets uint64    `json:"packets,omitempty"`
	Bytes   uint64    `json:"bytes,omitempty"`
}

// flowCoverage says what of the flows of a range is missing.
func (s *Server) flowCoverage(ctx context.Context, q record.Query, from, to time.Time) (c Coverage, err error) {
	c.Missing = []CoverageGap{}
	if from.IsZero() {
		c.Missing = append(c.Missing, CoverageGap{Reason: "not-stored", From: q.From, To: q.To})
		c.Text = "no flow is stored"
		return c, nil
	}
	c.KeptFrom, c.KeptTo = &from, &to
	c.Text = fmt.Sprintf("flows are stored from %s to %s", formatTime(from), formatTime(to))
	if end := earlier(from, q.To); end.After(q.From) {
		c.Missing = append(c.Missing, CoverageGap{Reason: "not-stored", From: q.From, To: end})
		c.Text += fmt.Sprintf(", of %s asked for", q.To.Sub(q.From).Round(time.Millisecond))
	}
	gap, err := s.reducedFlows(ctx, q)
	if err != nil {
		return c, err
	}
	if gap.Packets > 0 || gap.Flows > 0 {
		c.Missing = append(c.Missing, gap)
		c.Text += fmt.Sprintf("; %d packets (%s) of up to %d flows in a slot are only in the counters of reduced flows (controller.keep_flows)",
			gap.Packets, model.FormatBytes(model.Bytes(gap.Bytes)), gap.Flows)
	}
	c.Complete = len(c.Missing) == 0
	return c, nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// reducedFlows adds up the flows of a range that are only in counters. These are of
// whole seconds.
func (s *Server) reducedFlows(ctx context.Context, q record.Query) (gap CoverageGap, err error) {
	from := q.From.Truncate(time.Second)
	cq := record.Query{From: from, To: q.To, Name: flowreduce.All}
	if span := q.To.Sub(from); span > time.Minute {
		cq.Step = max(time.Second, span/1000)
	}
	gap = CoverageGap{Reason: "reduced"}
	_, _, err = walkRecords(ctx, s, s.deps.Records.Counters, cq, func(r *record.Counter) bool {
		if gap.To.IsZero() { // newest first
			gap.To = r.Time.Add(r.Period)
		}
		gap.From = r.Time
		gap.Packets += r.Packets
		gap.Bytes += r.Bytes
		gap.Flows = max(gap.Flows, uint64(r.Flows))
		return true
	})
	return gap, err
}
