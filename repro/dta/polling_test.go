package dta

import (
	"testing"

	"github.com/weft-telemetry/weft/repro/claim"
)

// A poller alone sees every entry of the ring that can be read, again and
// again; together with a collector it continues, and both have rates.
func TestPollingBesideCollecting(t *testing.T) {
	const capacity = 1 << 10
	table, err := openLists(1, capacity, ofSixteen, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Region().Close()
	p, c := &poller{t: table, buf: make([]byte, 0, 4*capacity)}, &collector{w: table.Writer(0), burst: capacity}
	if err := c.collect(2 * capacity); err != nil {
		t.Fatal(err)
	}
	const readable = capacity - ofSixteen
	if err := p.poll(readable); err != nil {
		t.Fatal(err)
	}
	want := uint64(0)
	for i := 2*capacity/ofSixteen - readable/ofSixteen; i < 2*capacity/ofSixteen; i++ {
		want += uint64(byte(i + 1)) // the first entry of a batch counts them
	}
	if p.sum != want {
		t.Errorf("entries read sum up to %d; want %d", p.sum, want)
	}
	if err := p.poll(readable); err != nil || p.sum != 2*want {
		t.Errorf("read again, they sum up to %d, %v; want %d", p.sum, err, 2*want)
	}
	read, collected, daily, err := readWhileCollecting(p, c, 1<<16)
	if err != nil || read <= 0 || collected <= 0 || daily <= 0 {
		t.Errorf("beside each other: %v, %v and %v M/s, %v; want all above 0", read, collected, daily, err)
	}
}

func TestTranslatedReachesTheList(t *testing.T) {
	table, err := openLists(3, 64, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Region().Close()
	m := &timing{o: claim.Options{Quick: true}}
	m.addTranslator(table, appendRun{batch: 4, entry: 4, spread: func(i int) uint32 { return uint32(i % 2) }})
	if _, err := m.rates(); err != nil {
		t.Fatal(err)
	}
	all := rounds * uint64(m.counts[0])
	for id, want := range []uint64{all / 2, all / 2, 0} {
		if got, err := table.Head(uint32(id)); err != nil || got != want {
			t.Errorf("list %d has %d entries, %v; want %d", id, got, err, want)
		}
	}
}
