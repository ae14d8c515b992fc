package scenario

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/weft-telemetry/weft/model"
)

type memory struct {
	bytes.Buffer
	closed bool
}

func (m *memory) Close() error { m.closed = true; return nil }

// A capture has every frame of both ends, in order of time.
func TestCapture(t *testing.T) {
	s := mustParse(t, busy+"output: {pcap: [s0>h0]}\n")
	var file memory
	x, err := assemble(s, Options{Capture: func(_ model.Port, name string) (io.WriteCloser, error) {
		if name != "s0:Ethernet0" {
			t.Errorf("capture of %s; want s0:Ethernet0", name)
		}
		return &file, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.simulate(context.Background(), zeroWall, nil); err != nil {
		t.Fatal(err)
	}
	if err := x.captures[0].close(); err != nil || !file.closed {
		t.Fatalf("close = %v, closed %v; want nil, true", err, file.closed)
	}
	r, err := pcapgo.NewNgReader(&file.Buffer, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	var frames [2]int64
	var last time.Time
	for {
		_, info, err := r.ReadPacketData()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if info.Timestamp.Before(last) {
			t.Fatalf("frame at %v after one at %v; want them in order", info.Timestamp, last)
		}
		last = info.Timestamp
		frames[info.InterfaceIndex]++
	}
	p := x.net.Port(s.Output.Capture[0])
	if want := [2]int64{p.TxPkts, p.Peer().TxPkts}; frames != want || want[0] == 0 || want[1] == 0 {
		t.Errorf("captured %v frames of the two ends; want %v", frames, want)
	}
}
