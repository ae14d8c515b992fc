package cluster

import (
	"bytes"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/routeview"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/internal/fieldcodec"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/stream"
	"github.com/weft-telemetry/weft/stream/inproc"
	"github.com/weft-telemetry/weft/wire/nccl"
)

// TestFrameInChunks sends a frame that is larger than a message.
func TestFrameInChunks(t *testing.T) {
	s, err := inproc.New(inproc.Config{Partitions: 1, BufferSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	body := bytes.Repeat([]byte("0123456789"), maxChunk/4)
	if err := publish(s, 0, Header{Run: 1, Number: 2, Part: 3}, 's', body, new([]byte)); err != nil {
		t.Fatal(err)
	}
	sub, err := s.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	var j joiner
	messages, frames := 0, 0
	_, err = sub.Poll(func(m stream.Message) {
		messages++
		h, got, done, err := j.add(m.Data)
		if err != nil {
			t.Error(err)
		}
		if done {
			frames++
			if h.Number != 2 || h.Part != 3 || !bytes.Equal(got, body) {
				t.Errorf("frame %+v of %d bytes; want that of %d", h, len(got), len(body))
			}
		}
	})
	if err != nil || messages != 3 || frames != 1 {
		t.Errorf("%d frames of %d messages, %v; want 1 of 3", frames, messages, err)
	}
}

// FuzzEvent reads anything; what is read is written back the same.
func FuzzEvent(f *testing.F) {
	for _, e := range []event{
		{kind: reportEvent, now: 5, list: 3, data: []byte("report")},
		{kind: slotEvent, slot: 9, lost: []uint32{1, 2}},
		{kind: countersEvent, counters: []control.PortCounters{{At: 1, Packets: 5, Bytes: 2, Discards: 3, Paused: 4}}},
		{kind: readingEvent, reading: &portstat.Reading{To: 1}},
		{kind: sampleEvent, sample: &portstat.Sample{At: 2}},
		{kind: flowRecordEvent, flowRecord: &portstat.FlowRecord{To: 3}},
		{kind: routesEvent, routes: &routeview.Table{Switch: 1, HasRows: true, Rows: []routeview.Row{{Hosts: []model.NodeID{2}, NumHosts: 1}}}},
		{kind: collectivesEvent, collectives: &nccl.Dump{
			Records: []nccl.Record{{Host: "h1", Op: "AllReduce", Time: time.Unix(0, 5)}}, Members: []nccl.Member{{Host: "h2", Launched: map[string]uint64{"AllReduce": 7}}},
		}},
		{kind: noOutPortsEvent},
		{kind: tickEvent, now: -1},
	} {
		c := fieldcodec.NewWriter(nil)
		e.code(c)
		f.Add(c.Written())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var j joiner
		_, _, _, _ = j.add(data)
		var e, again event
		r := fieldcodec.NewReader(data)
		if e.code(r); r.End() != nil {
			return
		}
		w := fieldcodec.NewWriter(nil)
		e.code(w)
		r = fieldcodec.NewReader(w.Written())
		again.code(r)
		w2 := fieldcodec.NewWriter(nil)
		again.code(w2)
		if r.End() != nil || !bytes.Equal(w.Written(), w2.Written()) {
			t.Fatalf("%+v is written and read as %+v, %v", e, again, r.Err())
		}
	})
}
