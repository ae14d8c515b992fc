package epoch_test

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/poll"
)

// A switch answers a poll with one chunk of records.
func Example() {
	var b epoch.Builder
	head := epoch.Header{
		Switch: 12, Event: poll.Event{Host: 5, Number: 77},
		Snapshot: model.Time(3 * time.Millisecond), EpochLength: time.Millisecond,
	}
	if err := b.Reset(head, 1400, 16); err != nil {
		fmt.Println(err)
	}
	b.AddPort(epoch.Port{Port: 4, Priority: 3, Paused: true, Queued: 65536})
	b.AddPause(epoch.Pause{Port: 4, Priority: 3, BurstStart: model.Time(2900 * time.Microsecond), Pauses: 2})
	b.AddCongestionEpisode(epoch.CongestionEpisode{Port: 4, Priority: 3, MaxBytes: 81920})
	b.Finish()

	var chunk epoch.Chunk
	if _, err := chunk.Parse(b.Chunk(0)); err != nil {
		fmt.Println(err)
	}
	fmt.Println("switch", chunk.Switch, "answers request", chunk.Event)
	for r := chunk.Reader(); r.Next(); {
		switch r.Kind() {
		case epoch.KindPort:
			var p epoch.Port
			_, _ = p.Parse(r.Record()) // Chunk.Parse has checked the length
			fmt.Println("port", p.Port, "paused", p.Paused, "queued", p.Queued)
		case epoch.KindPause:
			var p epoch.Pause
			_, _ = p.Parse(r.Record())
			fmt.Println("pauses", p.Pauses, "burst since", chunk.Snapshot.Sub(p.BurstStart))
		case epoch.KindCongestionEpisode:
			var e epoch.CongestionEpisode
			_, _ = e.Parse(r.Record())
			fmt.Println("congestion episode of up to", e.MaxBytes, "bytes")
		}
	}
	// Output:
	// switch 12 answers request 5#77
	// port 4 paused true queued 65536
	// pauses 2 burst since 100µs
	// congestion episode of up to 81920 bytes
}
