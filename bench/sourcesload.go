package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/analyze/commodity"
	ingestsflow "github.com/weft-telemetry/weft/ingest/sflow"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/sflow"
)

// samplesEach is how many samples a datagram has: more do not fit beside their headers.
const samplesEach = 6

// sampledSwitch is a switch that sends samples, and what decodes and analyses them.
type sampledSwitch struct {
	agent   netip.Addr
	decoder source.Decoder
}

func newSampledSwitch() (*sampledSwitch, error) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		return nil, err
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		return nil, err
	}
	analyzer, err := commodity.New(commodity.DefaultConfig(topo.NewIntent(routes)))
	if err != nil {
		return nil, err
	}
	known, err := sourceFabric(f)
	if err != nil {
		return nil, err
	}
	d, err := (&ingestsflow.Config{}).NewDecoder(known, source.Output{Sample: func(s *portstat.Sample) { analyzer.AddSample(s) }})
	return &sampledSwitch{f.Node(f.Switches()[0]).IPv4.Netip(), d}, err
}

// datagram returns the datagram of a number, sent after a time.
func (s *sampledSwitch) datagram(seq uint32, uptime time.Duration) []byte {
	h := sflow.Header{Agent: s.agent, Seq: seq, Uptime: uptime, Samples: samplesEach}
	b := h.AppendTo(nil)
	for j := range samplesEach {
		frame := tcpFrame(128)
		frame[35] = byte(int(seq)*samplesEach + j) // of the source port: many flows
		one := sflow.Sample{
			Kind: sflow.Flow, Rate: 4096, In: sflow.Interface{Value: uint32(1 + j%4)}, Out: sflow.Interface{Value: uint32(1 + (j+1)%4)}, Has: sflow.HasPacket,
			Packet: sflow.Packet{Protocol: sflow.HeaderEthernet, Length: 1518, Stripped: 4, Header: frame},
		}
		b = one.AppendTo(b)
	}
	return b
}

// benchTogether sends samples to a socket at a rate, while targets send counters every second:
// both are to arrive whole.
func benchTogether(ctx context.Context, samplesPerSecond, targets, ports, rounds int) ([]Result, error) {
	sw, err := newSampledSwitch()
	if err != nil {
		return nil, err
	}
	cfg := ingestsflow.Config{Listen: netip.MustParseAddrPort("127.0.0.1:0")}
	socket, err := cfg.OpenSocket(sw.decoder, nil)
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	receiving, stopReceiving := context.WithCancel(ctx)
	defer stopReceiving()
	received := make(chan error, 1)
	go func() { received <- socket.Run(receiving, nil) }()

	sending, stopSending := context.WithCancel(ctx)
	defer stopSending()
	type outcome struct {
		samples int
		took    time.Duration
		err     error
	}
	sent := make(chan outcome, 1)
	go func() {
		n, took, err := sw.send(sending, socket.Addr(), samplesPerSecond)
		sent <- outcome{n, took, err}
	}()
	list, err := benchGNMI(ctx, targets, ports, rounds)
	stopSending()
	load := <-sent
	stopReceiving()
	if err := errors.Join(err, load.err, <-received); err != nil {
		return nil, err
	}
	c := socket.Counters()
	r := higherIsBetter(fmt.Sprintf("sFlow samples at %d K/s, beside these targets", samplesPerSecond/1000), float64(c.Out), "", "sent", float64(load.samples), 1)
	r.Note = fmt.Sprintf("%.1f K samples/s were sent for %.1f s", float64(load.samples)/load.took.Seconds()/1000, load.took.Seconds())
	addLosses(&r, c)
	return append(list, r), nil
}

// send sends datagrams until the context ends: what is due is sent every millisecond.
func (s *sampledSwitch) send(ctx context.Context, to netip.AddrPort, samplesPerSecond int) (samples int, took time.Duration, err error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for {
		took = time.Since(began)
		for due := int(took.Seconds() * float64(samplesPerSecond)); samples < due; samples += samplesEach {
			if _, err := conn.Write(s.datagram(uint32(samples/samplesEach), time.Hour+took)); err != nil {
				return samples, took, err
			}
		}
		select {
		case <-ctx.Done():
			return samples, took, nil
		case <-tick.C:
		}
	}
}

// addLosses names what a source lost, and fails the result with it.
func addLosses(r *Result, c source.Counters) {
	for _, l := range c.Losses {
		if l.Count > 0 && !l.Expected {
			r.Note += fmt.Sprintf("; %d %s", l.Count, l.Reason)
			r.Pass = false
		}
	}
}
