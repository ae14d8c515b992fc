package jobs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestStandingJob: a job of which only some steps are whole is found with its hosts, and says
// that it stands; what the others send again and again differs from step to step.
func TestStandingJob(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(3, 7).Draw(t, "size")
		hosts := rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7}).Draw(t, "hosts")[:size]
		all := rapid.Bool().Draw(t, "all-to-all")
		var r recording
		at := 3
		for range rapid.IntRange(2, 3).Draw(t, "whole steps") {
			r.exchange(hosts, all, 100, at, 3, 0, 1_200_000)
			at += 3 + rapid.IntRange(3, 9).Draw(t, "compute")
		}
		// From then on packets are sent again and again.
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "again"), 1))
		for i, h := range hosts {
			for k := 1; k < size; k++ {
				if !all && k > 1 {
					continue
				}
				for s := range 50 + rng.IntN(150) {
					r.send(h, hosts[(i+k)%size], 100, at+s, 1, 20_000<<rng.IntN(5))
				}
			}
		}
		for i := range rapid.IntRange(0, 10).Draw(t, "others") {
			src, dst := rapid.IntRange(0, 7).Draw(t, "src"), rapid.IntRange(0, 7).Draw(t, "dst")
			if src != dst {
				r.send(src, dst, 1000+i, rapid.IntRange(0, 140).Draw(t, "at"), rapid.IntRange(1, 10).Draw(t, "slots"), 5_000_000)
			}
		}
		list := NewActivity(r.list).Infer()
		if len(list) != 1 || !slices.Equal(sorted(list[0].Hosts), names(hosts)) {
			t.Fatalf("found %s; want one job of %v", describe(list), names(hosts))
		}
		e := &Evidence{Pauses: []HostPause{{Host: list[0].Hosts[0], Switch: "tor0", Share: 0.4}}}
		if f := list[0].Assess(e)[0]; f.Cause != SlowHost || f.Host != list[0].Hosts[0] {
			t.Fatalf("%+v; want the host that pauses", f)
		}
	})
}

// TestOthersDoNotStand: flows that do not repeat, and pairs that answer each other, are no job.
func TestOthersDoNotStand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r recording
		for i := range rapid.IntRange(10, 60).Draw(t, "flows") {
			src, dst := rapid.IntRange(0, 9).Draw(t, "src"), rapid.IntRange(0, 9).Draw(t, "dst")
			at := rapid.IntRange(0, 50).Draw(t, "at")
			for range rapid.IntRange(1, 4).Draw(t, "bursts") {
				n := rapid.IntRange(1, 12).Draw(t, "slots")
				if src != dst {
					r.send(src, dst, 1000+i, at, n, rapid.Uint64Range(50_000, 20_000_000).Draw(t, "bytes"))
				}
				at += n + rapid.IntRange(3, 60).Draw(t, "silence")
			}
		}
		for n := range 20 {
			r.send(10, 11, 1, 17*n, 1+n%3, uint64(200_000*(1+n%7)))
			r.send(11, 10, 1, 17*n, 1+n%3, uint64(200_000*(1+n%7)))
		}
		for _, j := range NewActivity(r.list).Infer() {
			if j.Stands {
				t.Fatalf("%s stands; want none", describe([]*Job{j}))
			}
		}
	})
}

func sorted(hosts []string) []string {
	hosts = slices.Clone(hosts)
	slices.SortFunc(hosts, compareNames)
	return hosts
}

func describe(list []*Job) (text string) {
	for _, j := range list {
		text += fmt.Sprintf("%s %v stands %v; ", j.Pattern, sorted(j.Hosts), j.Stands)
	}
	return text
}

// ringStep records a part of a ring's step: how many of the 2(n-1) chunks each host sent.
func (r *recording) ringStep(first int, chunks []int) {
	n := len(chunks)
	for h, sent := range chunks {
		for k := range sent {
			r.send(h, (h+1)%n, 100, first+k, 1, 200_000)
		}
	}
}

// TestUnfinishedStep: a ring of five stands in a step after eight whole ones. Each host may be
// ahead of the next by a chunk for each host between them and the one that all wait for.
func TestUnfinishedStep(t *testing.T) {
	const n, whole = 5, 8
	for name, one := range map[string]struct {
		chunks    []int // of the step that does not end
		after     func(r *recording, at int)
		cause     Cause
		host      string
		slots     int // of silence after it
		congested string
	}{
		"a rank does not send":     {chunks: []int{5, 6, 2, 3, 4}, cause: Compute, host: "h2", slots: 100},
		"the job has ended":        {chunks: []int{8, 8, 8, 8, 8}, cause: None, slots: 100},
		"the range ends":           {chunks: []int{5, 6, 2, 3, 4}, cause: None, slots: 2},
		"the path holds a flow":    {chunks: []int{5, 6, 2, 3, 4}, cause: Congestion, slots: 100, after: func(r *recording, at int) { r.send(2, 3, 100, at, 100, 200_000) }},
		"all have the same chunks": {chunks: []int{4, 4, 4, 4, 4}, cause: None, slots: 100},
	} {
		t.Run(name, func(t *testing.T) {
			var r recording
			at := 0
			for range whole + 1 {
				r.ringStep(at, []int{8, 8, 8, 8, 8})
				at += 14
			}
			r.ringStep(at, one.chunks)
			if one.after != nil {
				one.after(&r, at+8)
			}
			r.send(7, 6, 1, at+8+one.slots, 1, 5000) // the range goes on
			list := NewActivity(r.list).Infer()
			if len(list) != 1 {
				t.Fatalf("found %s; want the ring", describe(list))
			}
			if f := list[0].Assess(&Evidence{})[0]; f.Cause != one.cause || f.Host != one.host {
				t.Errorf("%+v; want %s %s", f, one.cause, one.host)
			}
		})
	}
}
