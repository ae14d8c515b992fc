package engine

import "testing"

// TestGrowthAndDecline takes a queue from ten events to many and back, across
// every width of buckets, beside the twin.
func TestGrowthAndDecline(t *testing.T) {
	most := 60_000
	if testing.Short() {
		most = 6_000
	}
	for _, d := range distributions {
		t.Run(d.name, func(t *testing.T) {
			p := &pair{t: t}
			delay, i := d.delays(2), 0
			next := func() Time { i++; return delay[i%len(delay)] }
			for size := 10; size <= most; size = size*5/2 + 1 {
				for p.queue.Len() < size {
					p.push(p.now + next())
				}
				p.hold(size, next)
				p.checkChunks()
			}
			for size := most; size >= 10; size /= 3 {
				for p.queue.Len() > size {
					p.pop(Forever)
				}
				p.hold(size, next)
			}
			p.drain()
		})
	}
}

// TestWidthFollowsDensity holds a fabric of three sizes in turn, up and down,
// and asks how many events a bucket of the fitted rung takes in.
func TestWidthFollowsDensity(t *testing.T) {
	var q Queue[event]
	delay, i := distributions[0].delays(3), 0
	var now Time
	for _, size := range []int{100, 1_000, 10_000, 1_000, 100} {
		for q.Len() > size {
			now, _, _ = q.Pop(Forever)
		}
		for ; q.Len() < size; i++ {
			q.Push(now+delay[i%len(delay)], event{})
		}
		// Two buckets of the grid: the first is still of the old width.
		begin, popped := now, q.popped
		for now < begin+2<<gridShift {
			now, _, _ = q.Pop(Forever)
			q.Push(now+delay[i%len(delay)], event{})
			i++
		}
		r := &q.rungs[5]
		if r.top != gridShift {
			t.Fatalf("with %d events pending, rung 5 divides buckets of 1<<%d ps; want 1<<%d", size, r.top, gridShift)
		}
		perBucket := float64(q.popped-popped) / float64(now-begin) * float64(Time(1)<<r.shift)
		if perBucket < occupancy/2 || perBucket > occupancy*3 {
			t.Errorf("with %d events pending, buckets of 1<<%d ps take %.1f events; want about %d to %d",
				size, r.shift, perBucket, occupancy, 2*occupancy)
		}
	}
}

// TestLongNearIsDivided pushes in order, which makes near long, and then for
// its front: near must be divided, not shifted event by event.
func TestLongNearIsDivided(t *testing.T) {
	p := &pair{t: t}
	for i := range Time(5000) {
		p.push(i * Millisecond)
	}
	for i := range Time(5000) {
		p.push(5000 - i)
	}
	if n := len(p.queue.near) - p.queue.head; n > 2*spillDistance {
		t.Errorf("near holds %d events after pushes for its front; want them on rungs", n)
	}
	p.drain()
}

// TestPresentTakesNoMemory pushes for the present as fast as it pops.
func TestPresentTakesNoMemory(t *testing.T) {
	p := &pair{t: t}
	for range 10 {
		p.push(0)
	}
	p.hold(10_000, func() Time { return 0 })
	if n := cap(p.queue.near); n > 200 {
		t.Errorf("ten events held at one time take room for %d; want a few times ten", n)
	}
}

func TestQueueAllocatesNothing(t *testing.T) {
	for _, d := range distributions {
		for _, size := range []int{100, 10_000} {
			var q Queue[event]
			delay, i := d.delays(4), 0
			hold := func(ops int) {
				for range ops {
					at, ev, _ := q.Pop(Forever)
					q.Push(at+delay[i%len(delay)], ev)
					i++
				}
			}
			for q.Len() < size {
				q.Push(delay[q.Len()%len(delay)], event{})
			}
			hold(500_000)
			if n := testing.AllocsPerRun(5, func() { hold(20_000) }); n != 0 {
				t.Errorf("%s, %d pending: 20,000 × Pop and Push allocate %v times; want 0", d.name, size, n)
			}
		}
	}
}
