package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gnmipb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"

	"github.com/weft-telemetry/weft/ingest/gnmi"
	"github.com/weft-telemetry/weft/ingest/sai"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/topo"
)

// gnmiTarget sends the counters of some ports every second, as SONiC does: one JSON
// object of strings for each port, with all counters.
type gnmiTarget struct {
	gnmipb.UnimplementedGNMIServer
	names    []string
	rounds   int
	sent     atomic.Uint64 // tables
	finished atomic.Int64  // streams that have sent all rounds
}

// Subscribe is part of the gNMI service. It answers the paths of ports alone.
func (t *gnmiTarget) Subscribe(stream gnmipb.GNMI_SubscribeServer) error {
	req, err := stream.Recv()
	if err != nil {
		return err
	}
	var paths []*gnmipb.Path
	for _, s := range req.GetSubscribe().GetSubscription() {
		if p := s.GetPath(); len(p.GetElem()) == 2 && p.Elem[0].Name == "COUNTERS" {
			paths = append(paths, p)
		}
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for round := 1; round <= t.rounds; round++ {
		counters := map[string]string{}
		for i, name := range t.names {
			counters[name] = fmt.Sprint(round * 1000 * (i + 1))
			if strings.Contains(name, "PAUSE_DURATION") {
				counters[name] = fmt.Sprint(round * 1000)
			}
		}
		body, err := json.Marshal(counters)
		if err != nil {
			return err
		}
		for _, p := range paths {
			err := stream.Send(&gnmipb.SubscribeResponse{Response: &gnmipb.SubscribeResponse_Update{Update: &gnmipb.Notification{
				Timestamp: time.Now().UnixNano(), Update: []*gnmipb.Update{{Path: p, Val: &gnmipb.TypedValue{Value: &gnmipb.TypedValue_JsonIetfVal{JsonIetfVal: body}}}},
			}}})
			if err != nil {
				return err
			}
			t.sent.Add(1)
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-tick.C:
		}
	}
	t.finished.Add(1)
	<-stream.Context().Done()
	return nil
}

// benchGNMI follows targets for some rounds of counters, one a second, until all that they
// sent has been taken. Targets and Weft share the machine: on one that does other work both
// take longer, and what is judged is whether anything was lost.
func benchGNMI(ctx context.Context, targets, ports, rounds int) ([]Result, error) {
	f, err := starFabric(targets, ports)
	if err != nil {
		return nil, err
	}
	known, err := sourceFabric(f)
	if err != nil {
		return nil, err
	}
	t := &gnmiTarget{names: sai.Names(), rounds: rounds}
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	gnmipb.RegisterGNMIServer(server, t)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer server.Stop()
	cfg := gnmi.Source.NewConfig().(*gnmi.Config)
	cfg.TLS = gnmi.TLSOff
	for i := range known.Switches {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		serving.Go(func() { server.Serve(l) })
		cfg.Targets = append(cfg.Targets, known.Switches[i].Name+"="+l.Addr().String())
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	var readings atomic.Uint64
	d, err := cfg.NewDecoder(known, source.Output{Reading: func(*portstat.Reading) { readings.Add(1) }})
	if err != nil {
		return nil, err
	}
	client, err := cfg.OpenSocket(d, nil)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	began, start := time.Now(), processTime()
	ended := make(chan error, 1)
	go func() { ended <- client.Run(ctx, nil) }()
	done := func() bool { return t.finished.Load() >= int64(targets) && client.Counters().Out >= t.sent.Load() }
	for ctx.Err() == nil && !done() {
		time.Sleep(10 * time.Millisecond)
	}
	took, cpu := time.Since(began), processTime()-start
	c := client.Counters()
	cancel()
	if err := <-ended; err != nil {
		return nil, err
	}
	r := higherIsBetter(fmt.Sprintf("port tables of %d gNMI targets × %d ports at 1 s", targets, ports), float64(c.Out), "", "sent by the targets", float64(t.sent.Load()), 1)
	r.Note = fmt.Sprintf("%d readings in %.1f s, %.0f µs of CPU for a table, the targets' part included", readings.Load(), took.Seconds(), float64(cpu.Microseconds())/float64(max(c.Out, 1)))
	addLosses(&r, c)
	return []Result{r}, nil
}

// starFabric has switches with ports to hosts alone: what it connects is of no
// account here.
func starFabric(switches, ports int) (*topo.Fabric, error) {
	b := topo.NewBuilder("star")
	for i := range switches {
		sw := b.AddNode(topo.NodeSpec{Name: fmt.Sprintf("tor%d", i), Role: topo.ToR, Pod: topo.NoPod})
		for p := range ports {
			host := b.AddNode(topo.NodeSpec{Name: fmt.Sprintf("h%d-%d", i, p), Role: topo.Host, Pod: topo.NoPod})
			b.AddLink(topo.End{Node: sw, Port: fmt.Sprintf("Ethernet%d", 4*p)}, topo.End{Node: host}, topo.LinkSpec{Rate: 100 * model.Gbps})
		}
	}
	return b.Build()
}
