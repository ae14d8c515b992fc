package bench

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"time"

	"github.com/netsampler/goflow2/v2/format"
	_ "github.com/netsampler/goflow2/v2/format/json" // the pipeline's format
	protoproducer "github.com/netsampler/goflow2/v2/producer/proto"
	goflow "github.com/netsampler/goflow2/v2/utils"

	"github.com/weft-telemetry/weft/ingest/identity"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/sflow"
)

var sourcesSuite = Suite{
	Name:  "sources",
	About: "sFlow samples decoded and used, compared with goflow2's pipeline to JSON; counters of 300 gNMI targets beside 50 K samples/s",
	Input: "datagrams of 6 samples with 128 bytes of header each; 300 targets of 64 ports, all counters of SONiC every second, over loopback, and at the same time 50 K samples/s",
	run: func(ctx context.Context) ([]Result, error) {
		flow, err := benchSFlow(ctx)
		if err != nil {
			return nil, err
		}
		both, err := benchTogether(ctx, 50_000, 300, 64, 5)
		return append([]Result{flow}, both...), err
	},
}

// sourceFabric is what sources know of a fabric whose ports have their numbers as
// ifIndexes.
func sourceFabric(f *topo.Fabric) (*source.Fabric, error) {
	s := &source.Fabric{}
	var list []identity.Switch
	for _, id := range f.Switches() {
		n := f.Node(id)
		port := func(text string) (model.PortID, bool) {
			if p := n.PortByName(text); p != nil {
				return p.ID, true
			}
			return 0, false
		}
		indexes, err := identity.ParseIndexes(identity.ByPort, len(n.Ports), nil, port)
		if err != nil {
			return nil, err
		}
		s.Switches = append(s.Switches, source.Switch{
			ID: id, Name: n.Name, Ports: len(n.Ports), Port: port,
			PortName: func(p model.PortID) string { return n.Ports[p-1].Name },
			Rate:     func(p model.PortID) model.Rate { return n.Ports[p-1].Rate },
		})
		list = append(list, identity.Switch{ID: id, Name: n.Name, Addrs: []netip.Addr{n.IPv4.Netip()}, Ports: len(n.Ports), Port: port, Indexes: indexes})
	}
	var err error
	s.Identity, err = identity.New(list)
	return s, err
}

// benchSFlow compares Weft from the datagram to the analysis with goflow2 from the
// datagram to JSON, which is discarded.
func benchSFlow(ctx context.Context) (Result, error) {
	sw, err := newSampledSwitch()
	if err != nil {
		return Result{}, err
	}
	var input [64][]byte
	for i := range input {
		input[i] = sw.datagram(uint32(i), time.Hour)
	}
	mapping, err := (&protoproducer.ProducerConfig{}).Compile() // as goflow2 itself does without a file
	if err != nil {
		return Result{}, err
	}
	producer, err := protoproducer.CreateProtoProducer(mapping, protoproducer.CreateSamplingSystem)
	if err != nil {
		return Result{}, err
	}
	asJSON, err := format.FindFormat("json")
	if err != nil {
		return Result{}, err
	}
	sink := &countingTransport{to: io.Discard}
	pipe := goflow.NewSFlowPipe(&goflow.PipeConfig{Format: asJSON, Transport: sink, Producer: producer})
	defer pipe.Close()
	from := netip.AddrPortFrom(sw.agent, sflow.Port)
	at := model.Time(0)
	message := goflow.Message{Src: from, Dst: from, Received: time.Unix(0, 0)}
	ns, err := alternateRounds(ctx, func(n int) {
		for i := range n {
			at += model.Time(time.Millisecond)
			if !sw.decoder.Decode(at, from, input[i%len(input)]) {
				panic("bench: weft does not use the datagram")
			}
		}
	}, func(n int) {
		for i := range n {
			message.Payload = input[i%len(input)]
			if err := pipe.DecodeFlow(&message); err != nil {
				panic(fmt.Sprintf("bench: goflow2 rejects the datagram: %v", err))
			}
		}
	})
	if err != nil {
		return Result{}, err
	}
	if used := sw.decoder.Counters().Out; used == 0 || sink.messages == 0 {
		return Result{}, fmt.Errorf("%d samples used by weft, %d messages of goflow2; want both above 0", used, sink.messages)
	}
	r := lowerIsBetter("sFlow sample, decoded and analysed", ns[0]/samplesEach, "ns", "goflow2 to JSON", ns[1]/samplesEach, 3)
	r.Note = "one core takes " + strconv.Itoa(int(1e9/(ns[0]/samplesEach)/1000)) + " K samples/s"
	return r, nil
}

// countingTransport counts messages of goflow2.
type countingTransport struct {
	to       io.Writer
	messages int
}

// Send is part of goflow2's transport.
func (t *countingTransport) Send(_, data []byte) error {
	t.messages++
	_, err := t.to.Write(data)
	return err
}
