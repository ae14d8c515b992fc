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

	"github.com/weft-telemetry/weft/analyze/commodity"
	"github.com/weft-telemetry/weft/ingest/identity"
	ingestsflow "github.com/weft-telemetry/weft/ingest/sflow"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/sflow"
)

var sourcesSuite = Suite{
	Name:  "sources",
	About: "sFlow samples decoded and used, compared with goflow2's pipeline to JSON; counters of 300 gNMI targets",
	Input: "datagrams of 6 samples with 128 bytes of header each; 300 targets of 64 ports, all counters of SONiC every second, over loopback",
	run: func(ctx context.Context) ([]Result, error) {
		flow, err := benchSFlow(ctx)
		if err != nil {
			return nil, err
		}
		counters, err := benchGNMI(ctx, 300, 64, 5)
		return append([]Result{flow}, counters...), err
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
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		return Result{}, err
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		return Result{}, err
	}
	analyzer, err := commodity.New(commodity.DefaultConfig(topo.NewIntent(routes)))
	if err != nil {
		return Result{}, err
	}
	known, err := sourceFabric(f)
	if err != nil {
		return Result{}, err
	}
	used := 0
	d, err := (&ingestsflow.Config{}).NewDecoder(known, source.Output{Sample: func(s *portstat.Sample) {
		used++
		analyzer.AddSample(s)
	}})
	if err != nil {
		return Result{}, err
	}
	const samples, datagrams = 6, 64
	agent := f.Node(f.Switches()[0]).IPv4.Netip()
	var input [datagrams][]byte
	for i := range input {
		h := sflow.Header{Agent: agent, Seq: uint32(i), Uptime: time.Hour, Samples: samples}
		b := h.AppendTo(nil)
		for j := range samples {
			frame := tcpFrame(128)
			frame[35] = byte(i*samples + j) // of the source port: many flows
			s := sflow.Sample{
				Kind: sflow.Flow, Rate: 4096, In: sflow.Interface{Value: uint32(1 + j%4)}, Out: sflow.Interface{Value: uint32(1 + (j+1)%4)}, Has: sflow.HasPacket,
				Packet: sflow.Packet{Protocol: sflow.HeaderEthernet, Length: 1518, Stripped: 4, Header: frame},
			}
			b = s.AppendTo(b)
		}
		input[i] = b
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
	from := netip.AddrPortFrom(agent, 6343)
	at := model.Time(0)
	message := goflow.Message{Src: from, Dst: from, Received: time.Unix(0, 0)}
	ns, err := alternateRounds(ctx, func(n int) {
		for i := range n {
			at += model.Time(time.Millisecond)
			if !d.Decode(at, from, input[i%datagrams]) {
				panic("bench: weft does not use the datagram")
			}
		}
	}, func(n int) {
		for i := range n {
			message.Payload = input[i%datagrams]
			if err := pipe.DecodeFlow(&message); err != nil {
				panic(fmt.Sprintf("bench: goflow2 rejects the datagram: %v", err))
			}
		}
	})
	if err != nil {
		return Result{}, err
	}
	if used == 0 || sink.messages == 0 {
		return Result{}, fmt.Errorf("%d samples used by weft, %d messages of goflow2; want both above 0", used, sink.messages)
	}
	r := lowerIsBetter("sFlow sample, decoded and analysed", ns[0]/samples, "ns", "goflow2 to JSON", ns[1]/samples, 3)
	r.Note = "one core takes " + strconv.Itoa(int(1e9/(ns[0]/samples)/1000)) + " K samples/s"
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
