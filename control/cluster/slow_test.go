package cluster

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/stream/inproc"
	"github.com/weft-telemetry/weft/stream/member"
)

// TestSlowMemberIsShed: the others take the parts of a member that makes no progress, though it
// lives, and what is stored is the same.
func TestSlowMemberIsShed(t *testing.T) {
	want := shipped.alone(t)
	b := newBed(t, &shipped)
	leases := inproc.NewLeases()
	b.leader.Shed = ShedConfig{Leases: leases, After: 100 * time.Millisecond, For: time.Hour}
	stuck := make(chan struct{}, bedPartitions)
	for id, work := range map[string]member.Work{
		"good": b.analyzers.Work,
		"stuck": func(ctx context.Context, _ int, _ uint64) error {
			stuck <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		m, err := member.New(member.Config{Group: FlowGroup, ID: id, Partitions: bedPartitions, Interval: 10 * time.Millisecond}, leases, work)
		if err != nil {
			t.Fatal(err)
		}
		b.members.Go(func() {
			if err := m.Run(b.ctx); err != nil {
				t.Error(err)
			}
		})
	}
	<-stuck
	<-stuck // it has its share of the parts
	b.works(b.leader.Work, 0, nil)
	compare(t, want, b.replay())
	if n := b.leader.Sheds(); n != 1 {
		t.Errorf("%d members were shed; want 1", n)
	}
}

// TestSlowWatch: a part that is behind all the time is too slow; parts that are behind in turn are
// not.
func TestSlowWatch(t *testing.T) {
	s := slowWatch{cfg: ShedConfig{After: time.Second}}
	at := func(ms int, missing ...uint32) []uint32 {
		return s.observe(time.UnixMilli(int64(ms)), missing)
	}
	for ms, missing := range [][]uint32{{1}, {1, 2}, {2}, {2}, nil, {2}, {3}} {
		if late := at(400*ms, missing...); late != nil {
			t.Errorf("after %d ms %d are too slow; want none", 400*ms, late)
		}
	}
	for ms := 2400; ms < 3400; ms += 100 {
		if late := at(ms, 3, uint32(ms/100)); late != nil {
			t.Errorf("after %d ms %d are too slow; want none yet", ms, late)
		}
	}
	if late := at(3500, 0, 3); !slices.Equal(late, []uint32{3}) {
		t.Errorf("after a second %d are too slow; want 3", late)
	}
	if late := at(3600, 3); late != nil {
		t.Errorf("at once again %d are too slow; want none yet", late)
	}
}
