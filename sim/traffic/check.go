package traffic

import (
	"fmt"
	"math"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Check reports whether a simulator can run a list between these hosts, which
// must ascend by id: every field is in its range, the hosts exist, and no flow
// waits for itself, directly or in a cycle.
func Check(flows []Flow, hosts []Host) error {
	if len(flows) > MaxFlows {
		return fmt.Errorf("%d flows, want at most %d", len(flows), MaxFlows)
	}
	var total model.Bytes
	var after int
	for i := range flows {
		f := &flows[i]
		if err := f.check(hosts); err != nil {
			return fmt.Errorf("flow %d: %w", i, err)
		}
		if f.Bytes > math.MaxInt64-total {
			return fmt.Errorf("flow %d: the flows up to here carry more than %v, want less", i, model.Bytes(math.MaxInt64))
		}
		total += f.Bytes
		for _, a := range f.After {
			if a < 0 || a >= len(flows) || a == i {
				return fmt.Errorf("flow %d: after flow %d, want another from 0 to %d", i, a, len(flows)-1)
			}
		}
		if after += len(f.After); after > MaxAfter {
			return fmt.Errorf("flow %d: the flows up to here wait for more than %d others, want fewer", i, MaxAfter)
		}
	}
	if after == 0 {
		return nil
	}
	return checkOrder(flows, after)
}

func (f *Flow) check(hosts []Host) error {
	if err := f.checkEnds(hosts); err != nil {
		return err
	}
	if err := f.class().check(); err != nil {
		return err
	}
	switch {
	case f.Start < 0 || f.Start > MaxTime:
		return fmt.Errorf("start %v, want from 0 to %v", f.Start, MaxTime)
	case f.Delay < 0 || model.Time(f.Delay) > MaxTime:
		return fmt.Errorf("delay %v, want from 0 to %v", f.Delay, MaxTime)
	case f.Group < 0 || f.Group > MaxFlows:
		return fmt.Errorf("group %d, want from 0 to %d", f.Group, MaxFlows)
	case f.Compute < 0 || model.Time(f.Compute) > MaxTime:
		return fmt.Errorf("computation of %v, want from 0 to %v", f.Compute, MaxTime)
	case f.IsComputation():
		return nil
	case f.Compute > 0:
		return fmt.Errorf("computation from host %d to host %d, want one host", f.Src, f.Dst)
	case f.Stop == 0:
		return checkBytes("size", f.Bytes)
	case f.Bytes != 0:
		return fmt.Errorf("size %v and stop %v, want one of the two", f.Bytes, f.Stop)
	case f.Stop <= f.Start || f.Stop > MaxTime:
		return fmt.Errorf("stop %v, want after the start at %v, to %v", f.Stop, f.Start, MaxTime)
	}
	return nil
}

func (f *Flow) checkEnds(hosts []Host) error {
	if _, ok := find(hosts, f.Src); !ok {
		return fmt.Errorf("source %d is not a host of the fabric", f.Src)
	}
	none := model.Addr{}
	if f.To != none {
		if f.From != none && f.From.Is4() != f.To.Is4() {
			return fmt.Errorf("from %v to %v, want two addresses of one family", f.From, f.To)
		}
		return nil
	}
	if _, ok := find(hosts, f.Dst); !ok {
		return fmt.Errorf("destination %d is not a host of the fabric", f.Dst)
	}
	if f.Src == f.Dst && (f.Bytes != 0 || f.Stop != 0) {
		return fmt.Errorf("source and destination %d, want two hosts", f.Src)
	}
	return nil
}

// checkOrder removes flows that wait for none of the remaining ones, until none
// is left. It fails on a cycle.
func checkOrder(flows []Flow, after int) error {
	waits := make([]int32, len(flows))    // flows that it still waits for
	first := make([]int, len(flows)+1)    // index of its first follower
	followers := make([]int32, after)     // flows that wait for it
	ready := make([]int32, 0, len(flows)) // removed, in order
	for i := range flows {
		waits[i] = int32(len(flows[i].After))
		if waits[i] == 0 {
			ready = append(ready, int32(i))
		}
		for _, a := range flows[i].After {
			first[a+1]++
		}
	}
	for i := range flows {
		first[i+1] += first[i]
	}
	at := make([]int, len(flows))
	copy(at, first)
	for i := range flows {
		for _, a := range flows[i].After {
			followers[at[a]] = int32(i)
			at[a]++
		}
	}
	for next := 0; next < len(ready); next++ {
		i := ready[next]
		for _, f := range followers[first[i]:first[i+1]] {
			if waits[f]--; waits[f] == 0 {
				ready = append(ready, f)
			}
		}
	}
	if len(ready) == len(flows) {
		return nil
	}
	for i, n := range waits {
		if n > 0 {
			return fmt.Errorf("flow %d is in or after a cycle of flows that wait for each other", i)
		}
	}
	panic("traffic: a flow neither waits nor was removed")
}

func checkStart(start model.Time) error {
	if start < 0 || start > MaxTime {
		return fmt.Errorf("start %v, want from 0 to %v", start, MaxTime)
	}
	return nil
}

func checkBytes(field string, n model.Bytes) error {
	if n < 1 || n > MaxBytes {
		return fmt.Errorf("%s %v, want from %v to %v", field, n, model.Bytes(1), MaxBytes)
	}
	return nil
}

// checkSpan checks a duration of at least least from start on.
func checkSpan(field string, d, least time.Duration, start model.Time) error {
	if d < least || model.Time(d) > MaxTime-start {
		return fmt.Errorf("%s %v, want from %v to %v", field, d, least, MaxTime-start)
	}
	return nil
}

// checkRounds checks that count rounds, period apart, end before MaxTime. A
// single round needs no period.
func checkRounds(field string, count int, period time.Duration, start model.Time) error {
	if count < 1 || count > MaxFlows {
		return fmt.Errorf("%s %d, want from 1 to %d", field, count, MaxFlows)
	}
	if count == 1 {
		return nil
	}
	most := time.Duration(MaxTime-start) / time.Duration(count)
	if period < 1 || period > most {
		return fmt.Errorf("period %v for %d rounds, want from 1ns to %v", period, count, most)
	}
	return nil
}

// checkCount rejects a product of counts above MaxFlows, before it overflows.
func checkCount(factors ...int) error {
	n := 1
	for _, f := range factors {
		if f > 0 && n > MaxFlows/f {
			return fmt.Errorf("%v flows (the product), want at most %d", factors, MaxFlows)
		}
		n *= f
	}
	return nil
}
