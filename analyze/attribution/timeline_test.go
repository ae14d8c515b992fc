package attribution

import (
	"testing"

	"github.com/weft-telemetry/weft/model"
)

func TestDrawTimeline(t *testing.T) {
	row := func(port model.PortID, r TimelineRow) TimelineRow {
		r.Place.Port, r.Reported = model.Port{Node: 1, Port: port}, true
		return r
	}
	line := Timeline{From: 100, To: 200, Rows: []TimelineRow{
		row(1, TimelineRow{Paused: []Span{{110, 150}}, Packet: []Span{{130, 155}}}),
		row(10, TimelineRow{Congested: []Span{{100, 170}, {196, 200}}, Paused: []Span{{120, 131}}, Packet: []Span{{155, 180}}}),
		{Place: Place{Queue: Queue{Port: model.Port{Node: 2, Port: 3}}}, Packet: []Span{{180, 190}}},
	}}
	want := "1:1   ·██▓▓*····\n" +
		"1:10  ░░█░░▒▒*··\n" +
		"2:3   ????????*?\n"
	if got := line.Draw(plainNames{}, 10); got != want {
		t.Errorf("drawing\n%swant\n%s", got, want)
	}
	if got := line.Draw(plainNames{}, 0) + (&Timeline{From: 5, To: 5}).Draw(plainNames{}, 10); got != "" {
		t.Errorf("drawing without columns or time: %q", got)
	}
}
